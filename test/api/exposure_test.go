// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/catalog"
	"github.com/espalier-dev/espalier/internal/resources"
	"github.com/espalier-dev/espalier/test/apiserver"
)

// installGateway installs HTTPRoute as the Gateway API's module has it.
func installGateway(t *testing.T) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/gateway-api").Output()
	if err != nil {
		t.Fatal(err)
	}
	crd := filepath.Join(strings.TrimSpace(string(out)), "config", "crd", "standard", "gateway.networking.k8s.io_httproutes.yaml")
	if _, err := envtest.InstallCRDs(server.Config, envtest.CRDInstallOptions{Paths: []string{crd}, ErrorIfPathMissing: true}); err != nil {
		t.Fatal(err)
	}
}

func readExample[T any](t *testing.T, name string) *T {
	t.Helper()
	raw, err := os.ReadFile(apiserver.Path("examples", "exposure", name))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(raw), "\n---\n")
	object := new(T)
	if err := yaml.UnmarshalStrict([]byte(first), object); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return object
}

// TestExposure: Ingress and HTTPRoute of the example lead where publicURL says,
// to the Service that Espalier makes, and to the metadata of its authorization.
func TestExposure(t *testing.T) {
	web := readExample[v1alpha1.MCPServer](t, "server.yaml")
	public, err := url.Parse(web.Spec.PublicURL)
	if err != nil {
		t.Fatal(err)
	}
	service := resources.Service(web)
	port := service.Spec.Ports[0]
	if _, path := catalog.Endpoint(web); path != public.Path {
		t.Errorf("the server has its endpoint at %s, clients call %s", path, public.Path)
	}
	paths := []string{"/.well-known/oauth-protected-resource" + public.Path, public.Path}

	var got []string
	ingress := readExample[networkingv1.Ingress](t, "ingress.yaml")
	rule := ingress.Spec.Rules[0]
	for _, p := range rule.HTTP.Paths {
		got = append(got, p.Path)
		if b := p.Backend.Service; b.Name != service.Name || b.Port.Name != port.Name {
			t.Errorf("the Ingress leads to %s %v", b.Name, b.Port)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, paths) || rule.Host != public.Host || !slices.Contains(ingress.Spec.TLS[0].Hosts, public.Host) {
		t.Errorf("the Ingress has %s %v, want %s %v", rule.Host, got, public.Host, paths)
	}

	got = nil
	route := readExample[gatewayv1.HTTPRoute](t, "httproute.yaml")
	for _, m := range route.Spec.Rules[0].Matches {
		got = append(got, *m.Path.Value)
	}
	slices.Sort(got)
	if !slices.Equal(got, paths) || !slices.Contains(route.Spec.Hostnames, gatewayv1.Hostname(public.Host)) {
		t.Errorf("the HTTPRoute has %v %v, want %s %v", route.Spec.Hostnames, got, public.Host, paths)
	}
	backend := route.Spec.Rules[0].BackendRefs[0]
	if string(backend.Name) != service.Name || backend.Port == nil || *backend.Port != port.Port {
		t.Errorf("the HTTPRoute leads to %s %v", backend.Name, backend.Port)
	}
	for _, object := range []string{ingress.Namespace, route.Namespace} {
		if object != web.Namespace {
			t.Errorf("one is in %s, the server in %s", object, web.Namespace)
		}
	}
}
