// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package dialing says how an MCPServer is dialled: with what URL, host, headers, certificates and tokens. The operator's probe and
// "kubectl mcp" reach a server by the same rules.
package dialing

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/catalog"
	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/resources"
)

// Material is what is sent that comes from Secrets and ConfigMaps. It is held
// in memory alone.
type Material struct {
	Headers []mcpprobe.Header
	OAuth   *mcpprobe.OAuth
	TLS     mcpprobe.TLS
}

// Gather makes the material of the values of catalog.ProbeRefs. What is missing is left
// out.
func Gather(server *mcpv1.MCPServer, values map[catalog.Ref][]byte) Material {
	m := Material{Headers: headers(server, values), OAuth: clientCredentials(server, values)}
	if e := server.Spec.External; e != nil {
		m.TLS = clientTLS(e.TLS, values)
	}
	if t := catalog.ClientTLS(server); t != nil {
		m.TLS = clientTLS(t, values)
	}
	return m
}

// Target is what all targets of server have in common.
func (m *Material) Target(server *mcpv1.MCPServer) mcpprobe.Target {
	t := mcpprobe.Target{URL: URL(server), Headers: m.Headers, OAuth: m.OAuth, TLS: m.TLS}
	if resources.Fronted(server) {
		transport, _ := catalog.Endpoint(server)
		t.Transport = mcpprobe.Transport(transport)
	}
	if p := server.Spec.Probe; p != nil {
		t.Host = p.Host
	}
	return t
}

// URL that is dialled: of the Service, or of what is external, with its query.
func URL(server *mcpv1.MCPServer) string {
	if !resources.HasPods(server) {
		return server.Spec.External.URL
	}
	return resources.URL(server)
}

// Read reads the value of ref; ok is false where its object has no such key.
func Read(ctx context.Context, reader client.Reader, namespace string, ref catalog.Ref) (value []byte, ok bool, err error) {
	name := client.ObjectKey{Namespace: namespace, Name: ref.Name}
	if ref.Kind == catalog.RefSecret {
		var secret corev1.Secret
		err = reader.Get(ctx, name, &secret)
		value, ok = secret.Data[ref.Key]
		return value, ok, err
	}
	var cm corev1.ConfigMap
	err = reader.Get(ctx, name, &cm)
	if value, ok = cm.BinaryData[ref.Key]; !ok {
		var text string
		text, ok = cm.Data[ref.Key]
		value = []byte(text)
	}
	return value, ok, err
}

// headers are those of the connection and of the probe; the probe's win.
func headers(server *mcpv1.MCPServer, values map[catalog.Ref][]byte) []mcpprobe.Header {
	var specs []mcpv1.Header
	if p := server.Spec.Probe; p != nil {
		specs = append(specs, p.Headers...)
	}
	if e := server.Spec.External; e != nil {
		for _, h := range e.Headers {
			if !slices.ContainsFunc(specs, func(o mcpv1.Header) bool { return strings.EqualFold(o.Name, h.Name) }) {
				specs = append(specs, h)
			}
		}
	}
	var out []mcpprobe.Header
	for _, h := range specs {
		if value, ok := headerValue(h, values); ok {
			credential := h.SecretKeyRef != nil || IsCredential(h.Name)
			out = append(out, mcpprobe.Header{Name: h.Name, Value: h.Prefix + value, Credential: credential})
		}
	}
	return out
}

// IsCredential reports whether a header of this name is there to authenticate.
func IsCredential(name string) bool {
	return slices.Contains([]string{"authorization", "x-api-key", "cookie"}, strings.ToLower(name))
}

func headerValue(h mcpv1.Header, values map[catalog.Ref][]byte) (string, bool) {
	if h.Value != nil {
		return *h.Value, true
	}
	for _, ref := range catalog.HeaderRefs([]mcpv1.Header{h}) {
		value, ok := values[ref]
		// A trailing newline is an accident of how the Secret was made.
		return strings.TrimRight(string(value), "\r\n"), ok
	}
	return "", false
}

// clientCredentials are those by whose tokens the connection shows who it is;
// nil for none, and while its secret is missing, as a header is left out then.
func clientCredentials(server *mcpv1.MCPServer, values map[catalog.Ref][]byte) *mcpprobe.OAuth {
	e := server.Spec.External
	if e == nil || e.Auth == nil {
		return nil
	}
	c := &e.Auth.OAuthClientCredentials
	secret, ok := values[catalog.Ref{Kind: catalog.RefSecret, Name: c.ClientSecretRef.Name, Key: c.ClientSecretRef.Key}]
	if !ok {
		return nil
	}
	tls, added := catalog.TokenTLS(e)
	out := &mcpprobe.OAuth{
		TokenURL: c.TokenURL, ClientID: c.ClientID, Secret: strings.TrimRight(string(secret), "\r\n"),
		Scopes: c.Scopes, Audience: c.Audience, Resource: c.Resource, TLS: clientTLS(tls, values),
	}
	out.TLS.System = added
	return out
}

func clientTLS(t *mcpv1.ClientTLS, values map[catalog.Ref][]byte) mcpprobe.TLS {
	if t == nil {
		return mcpprobe.TLS{}
	}
	out := mcpprobe.TLS{ServerName: t.ServerName}
	if t.CA != nil {
		for _, ref := range catalog.TLSRefs(&mcpv1.ClientTLS{CA: t.CA}) {
			out.CAPEM = values[ref]
		}
	}
	if c := t.ClientCertificateRef; c != nil {
		out.CertPEM = values[catalog.Ref{Kind: catalog.RefSecret, Name: c.Name, Key: corev1.TLSCertKey}]
		out.KeyPEM = values[catalog.Ref{Kind: catalog.RefSecret, Name: c.Name, Key: corev1.TLSPrivateKeyKey}]
	}
	return out
}
