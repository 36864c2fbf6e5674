// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/espalier-dev/espalier/internal/resources"
)

// TestServingTLS: without the Secret the server waits and says for what; with
// it the URL, the port and the probe are those of TLS; a rotation rolls nothing
// out and is told to the pods; and a server in front of it learns its authority.
func TestServingTLS(t *testing.T) {
	w := newWorld(t)
	w.server(`{replicas: 2, tls: {secretRef: {name: web-tls}}}`)
	w.tool("alpha", `expression: {text: "'a'"}`)
	w.becomes(map[string]string{"Ready": "False SecretNotFound", "Reconciling": "True SecretNotFound", "ResolvedRefs": "False SecretNotFound", "Stalled": "-"})
	keys := map[string]string{"tls.crt": "a certificate", "tls.key": secretValue, "ca.crt": "an authority"}
	w.secretOf("web-tls", keys)
	w.becomes(map[string]string{"ResolvedRefs": "True ResolvedRefs"})
	w.serve()
	host := "web-mcp." + w.namespace + ".svc"
	if got, want := w.web().Status.URL, "https://"+host+":8080/mcp"; got != want {
		t.Errorf("status.url is %s, want %s", got, want)
	}
	if got := *get(w, "web-mcp", &corev1.Service{}).Spec.Ports[0].AppProtocol; got != "https" {
		t.Errorf("the port's protocol is %s", got)
	}
	for _, target := range w.targeted(2) {
		p := target.Probe
		if diff := cmp.Diff([]string{"an authority", host, "https://" + host + ":8080/mcp"}, []string{string(p.TLS.CAPEM), p.TLS.ServerName, p.URL}); diff != "" {
			t.Errorf("the probe (-want +got):\n%s", diff)
		}
	}
	config, _, err := w.catalog()
	must(t, err)
	if config.TLS == nil || config.TLS.CertFile != "secrets/web-tls/tls.crt" {
		t.Errorf("the catalog has %+v", config.TLS)
	}

	w.rest()
	generation, before := w.generation(), len(w.writes.all())
	keys["tls.crt"] = "another certificate"
	w.secretOf("web-tls", keys)
	w.eventually(soon, "pokes", func() string {
		if n := len(w.writes.since(before, "patch status v1.Pod")); n != 2 {
			return fmt.Sprintf("%d pokes", n)
		}
		return ""
	})
	w.rest()
	if w.generation() != generation {
		t.Error("a rotation rolled the pods")
	}

	w.apply(`{kind: MCPServer, metadata: {name: front}, spec: {upstreams: [{name: web, serverRef: {name: web}}]}}`)
	w.eventually(soon, "the front's mounts", func() string {
		return w.mounts("front", resources.Mounts{{Kind: "Secret", Name: "web-tls", Key: "ca.crt"}})
	})
}

// mounts tells how the credentials that the pods of server mount differ from want.
func (w *world) mounts(server string, want resources.Mounts) string {
	w.Helper()
	d := &appsv1.Deployment{}
	if !w.exists(server+"-mcp", d) {
		return "there is no Deployment"
	}
	return cmp.Diff(want, resources.MountsOf(&d.Spec.Template.Spec))
}
