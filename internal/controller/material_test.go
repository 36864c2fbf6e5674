// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/resources"
)

// TestDialMaterial: CA and client certificate come from where the spec says,
// and are read anew only when something about them moved.
func TestDialMaterial(t *testing.T) {
	w := newWorld(t, `{type: External, external: {url: "https://x/mcp", tls: {
	  serverName: internal, ca: {configMapKeyRef: {name: ca, key: ca.crt}}, clientCertificateRef: {name: cert}}}}`)
	reads := 0
	objects := []client.Object{
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "ca", Namespace: "ns"}, BinaryData: map[string][]byte{"ca.crt": []byte("CA")}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "cert", Namespace: "ns"}, Data: map[string][]byte{"tls.crt": []byte("CERT"), "tls.key": []byte("KEY")}},
	}
	reader := interceptor.NewClient(fake.NewClientBuilder().WithObjects(objects...).Build(), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			reads++
			return c.Get(ctx, key, obj, opts...)
		},
	})
	r := &MCPServerReconciler{APIReader: reader}
	read := func() int {
		t.Helper()
		before := reads
		if err := r.readDialMaterial(t.Context(), w.scope()); err != nil {
			t.Fatal(err)
		}
		return reads - before
	}
	if n := read(); n == 0 {
		t.Error("nothing was read")
	}
	want := mcpprobe.TLS{ServerName: "internal", CAPEM: []byte("CA"), CertPEM: []byte("CERT"), KeyPEM: []byte("KEY")}
	if diff := cmp.Diff(want, w.memory.dial.TLS); diff != "" {
		t.Errorf("TLS (-want +got):\n%s", diff)
	}
	version := w.memory.dial.version
	if n := read(); n != 0 {
		t.Errorf("%d were read again", n)
	}
	w.secret("cert", "tls.crt", "tls.key")
	if n := read(); n == 0 || w.memory.dial.version == version {
		t.Error("a change was not read")
	}
}

// TestServingMaterial: the probe of a server with a certificate of its own
// trusts the authority beside it, and follows when that changes.
func TestServingMaterial(t *testing.T) {
	w := newWorld(t, `{tls: {secretRef: {name: web}}}`)
	w.secret("web", "tls.crt", "tls.key", "ca.crt")
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "ns"}, Data: map[string][]byte{"tls.crt": []byte("CERT"), "tls.key": []byte("KEY"), "ca.crt": []byte("CA")}}
	r := &MCPServerReconciler{APIReader: fake.NewClientBuilder().WithObjects(secret).Build()}
	if err := r.readDialMaterial(t.Context(), w.scope()); err != nil {
		t.Fatal(err)
	}
	want := mcpprobe.TLS{ServerName: "web-mcp.ns.svc", CAPEM: []byte("CA")}
	if diff := cmp.Diff(want, w.memory.dial.TLS); diff != "" {
		t.Errorf("TLS (-want +got):\n%s", diff)
	}
	before := w.scope().identity()
	w.server.Spec.TLS.ServerName = "mcp.example.com"
	if err := r.readDialMaterial(t.Context(), w.scope()); err != nil {
		t.Fatal(err)
	}
	if w.memory.dial.TLS.ServerName != "mcp.example.com" || w.scope().identity() == before {
		t.Error("another name is dialled as before")
	}
}

// TestCatalogTooLarge: it is told with what to do, the pods keep what they
// have, and the status still names that.
func TestCatalogTooLarge(t *testing.T) {
	w := newWorld(t, `{}`)
	w.serving(1)
	before := w.pass()
	random := rand.New(rand.NewPCG(1, 1))
	var alphabet [64]byte
	copy(alphabet[:], "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
	s := w.scope()
	for i := range 280 {
		text := make([]byte, 16000)
		for j := range text {
			text[j] = alphabet[random.IntN(64)]
		}
		s.registrations = append(s.registrations, w.tool(fmt.Sprintf("big-%03d", i), fmt.Sprintf(`{description: "%s", expression: {text: "''"}}`, text)))
	}
	s.set, s.catalog = nil, nil
	r := &MCPServerReconciler{memory: w.toolMemory}
	p := asProblem(r.buildCatalog(t.Context(), s))
	if p == nil || p.reason != mcpv1.ReasonCatalogTooLarge || !p.stalled || !strings.Contains(p.message, "several MCPServers") {
		t.Fatalf("problem %+v", p)
	}
	s.problems = append(s.problems, p)
	status := serverStatus(s)
	if status.CatalogDigest != before.CatalogDigest || condition(status.Conditions, "Synced") != "False CatalogTooLarge" || *status.ToolCount != 2 {
		t.Errorf("digest %s, Synced %s, %d tools", status.CatalogDigest, condition(status.Conditions, "Synced"), *status.ToolCount)
	}
	if err := (&MCPServerReconciler{}).pokePods(t.Context(), s); err != nil {
		t.Error(err)
	}
	for name, v := range registrationVerdicts(s, conditionVerdict(status.Conditions, "Synced")) {
		if v.served != nil && v.served.status == metav1.ConditionTrue {
			t.Errorf("%s is said to be served", name)
		}
	}
}

// TestMayOwn: whose a child is.
func TestMayOwn(t *testing.T) {
	yes := true
	server := &mcpv1.MCPServer{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "ns", UID: "mine"}}
	tests := map[string]struct {
		labels map[string]string
		owners []metav1.OwnerReference
		reason string // empty: may
	}{
		"its own":         {nil, []metav1.OwnerReference{{APIVersion: "mcp.espalier.dev/v1alpha1", Kind: "MCPServer", Name: "web", UID: "mine", Controller: &yes}}, ""},
		"an orphan":       {resources.Labels(server), nil, ""},
		"not controlled":  {resources.Labels(server), []metav1.OwnerReference{{Kind: "X", Name: "x", UID: "x"}}, ""},
		"a namesake's":    {resources.Labels(server), []metav1.OwnerReference{{APIVersion: "mcp.espalier.dev/v1alpha1", Kind: "MCPServer", Name: "web", UID: "old", Controller: &yes}}, mcpv1.ReasonStarting},
		"another's":       {resources.Labels(server), []metav1.OwnerReference{{APIVersion: "mcp.espalier.dev/v1alpha1", Kind: "MCPServer", Name: "other", UID: "other", Controller: &yes}}, mcpv1.ReasonForeignObject},
		"another kind's":  {resources.Labels(server), []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "MCPServer", Name: "web", UID: "other", Controller: &yes}}, mcpv1.ReasonForeignObject},
		"nobody's":        {nil, nil, mcpv1.ReasonForeignObject},
		"managed by Helm": {map[string]string{mcpv1.LabelServer: "web", mcpv1.LabelManagedBy: "Helm"}, nil, mcpv1.ReasonForeignObject},
		"of another name": {map[string]string{mcpv1.LabelServer: "other", mcpv1.LabelManagedBy: mcpv1.ManagedBy}, nil, mcpv1.ReasonForeignObject},
	}
	for name, test := range tests {
		live := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web-mcp", Labels: test.labels, OwnerReferences: test.owners}}
		got := ""
		if p := asProblem(mayOwn(server, live)); p != nil {
			got = p.reason
		}
		if got != test.reason {
			t.Errorf("%s: %q, want %q", name, got, test.reason)
		}
	}
}
