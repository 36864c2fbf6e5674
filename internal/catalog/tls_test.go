// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// TestTLSInCatalog: where the certificate is, and by what it is verified.
func TestTLSInCatalog(t *testing.T) {
	for spec, want := range map[string]struct {
		tls  serverconfig.ServingTLS
		refs []Ref
	}{
		`tls: {secretRef: {name: web}}`: {
			serverconfig.ServingTLS{CertFile: "secrets/web/tls.crt", KeyFile: "secrets/web/tls.key", CAFile: "secrets/web/ca.crt", ServerName: "web-mcp.ns.svc"},
			[]Ref{{Kind: RefSecret, Name: "web", Key: "ca.crt"}, {Kind: RefSecret, Name: "web", Key: "tls.crt"}, {Kind: RefSecret, Name: "web", Key: "tls.key"}},
		},
		`tls: {secretRef: {name: web}, serverName: mcp.example.com, ca: {configMapKeyRef: {name: ca, key: bundle}}}`: {
			serverconfig.ServingTLS{CertFile: "secrets/web/tls.crt", KeyFile: "secrets/web/tls.key", CAFile: "configmaps/ca/bundle", ServerName: "mcp.example.com"},
			[]Ref{{Kind: RefConfigMap, Name: "ca", Key: "bundle"}, {Kind: RefSecret, Name: "web", Key: "tls.crt"}, {Kind: RefSecret, Name: "web", Key: "tls.key"}},
		},
	} {
		c := Build(serverOf(t, "web", spec), nil, serverconfig.ProbeTrust{})
		if diff := cmp.Diff(&want.tls, c.Config.TLS); diff != "" {
			t.Errorf("%s (-want +got):\n%s", spec, diff)
		}
		if diff := cmp.Diff(want.refs, c.Refs); diff != "" {
			t.Errorf("%s: references (-want +got):\n%s", spec, diff)
		}
		if !slices.Contains(c.Config.Requires, serverconfig.FeatureTLS) || c.Config.Missing() != nil {
			t.Errorf("%s: it requires %v", spec, c.Config.Requires)
		}
	}
	if c := Build(serverOf(t, "web", `{}`), nil, serverconfig.ProbeTrust{}); c.Config.TLS != nil || len(c.Refs) > 0 || len(c.Config.Requires) > 0 {
		t.Errorf("without tls: %+v", c.Config)
	}
}

// TestUpstreamOverTLS: a server in front of one with TLS knows its authority and
// its name, and mounts no key of it.
func TestUpstreamOverTLS(t *testing.T) {
	others := map[string]*mcpv1.MCPServer{
		"plain": serverOf(t, "plain", `{}`), "web": serverOf(t, "web", `tls: {secretRef: {name: web}}`),
	}
	front := serverOf(t, "front", `upstreams: [{name: p, serverRef: {name: plain}}, {name: w, serverRef: {name: web}}]`)
	c := Build(front, nil, serverconfig.ProbeTrust{})
	c.AddUpstreams(front, ResolveUpstreams(front, func(name string) *mcpv1.MCPServer { return others[name] }, address))
	raw, err := json.Marshal([]any{c.Config.Upstreams[0].TLS, c.Config.Upstreams[1].TLS})
	if err != nil {
		t.Fatal(err)
	}
	if want := `[null,{"caFile":"secrets/web/ca.crt","serverName":"web-mcp.ns.svc"}]`; string(raw) != want {
		t.Errorf("got  %s\nwant %s", raw, want)
	}
	if diff := cmp.Diff([]Ref{{Kind: RefSecret, Name: "web", Key: "ca.crt"}}, c.Refs); diff != "" {
		t.Errorf("references (-want +got):\n%s", diff)
	}
}
