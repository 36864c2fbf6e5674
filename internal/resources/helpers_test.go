// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"bytes"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/catalog"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// server makes the MCPServer weather from the YAML of its spec. It bears what
// must never be copied.
func server(t *testing.T, spec string) *mcpv1.MCPServer {
	t.Helper()
	out := &mcpv1.MCPServer{ObjectMeta: metav1.ObjectMeta{
		Name: "weather", Namespace: "team-a", UID: "11111111-2222-3333-4444-555555555555", Generation: 3,
		Labels: map[string]string{
			"app.kubernetes.io/instance": "team-apps", "app.kubernetes.io/managed-by": "Helm",
			"kustomize.toolkit.fluxcd.io/name": "apps", "argocd.argoproj.io/instance": "team-apps", "cost-center": "42",
		},
		Annotations: map[string]string{
			"argocd.argoproj.io/tracking-id": "team-apps:mcp.espalier.dev/MCPServer:team-a/weather", "argocd.argoproj.io/sync-wave": "3",
			"kubectl.kubernetes.io/last-applied-configuration": "{}",
		},
	}}
	if err := yaml.UnmarshalStrict([]byte(spec), &out.Spec); err != nil {
		t.Fatalf("spec: %v", err)
	}
	if out.Spec.Type == "" {
		out.Spec.Type = mcpv1.TypeTools
	}
	return out
}

// options of an operator with its defaults.
func options() Options {
	user := DefaultRunAsUser
	return Options{
		ServerImage: "ghcr.io/espalier-dev/server:v0.1.0", RunAsUser: &user, PodSecurity: "restricted",
		Operator: Pods{Namespace: "espalier-system", Labels: map[string]string{"control-plane": "controller-manager"}},
	}
}

func secret(name, key string) catalog.Ref {
	return catalog.Ref{Kind: catalog.RefSecret, Name: name, Key: key}
}

func configMap(name, key string) catalog.Ref {
	return catalog.Ref{Kind: catalog.RefConfigMap, Name: name, Key: key}
}

// catalogSet is a small catalog, cut.
func catalogSet(t *testing.T, s *mcpv1.MCPServer) *serverconfig.Set {
	t.Helper()
	set, err := serverconfig.Cut(catalog.Build(s, nil, serverconfig.ProbeTrust{Audience: "team-a/weather"}).Config)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// children are all that o makes of in, in the order in which they are applied.
func children(t *testing.T, o Options, in TemplateInput) []runtime.Object {
	t.Helper()
	var out []runtime.Object
	if Fronted(in.Server) {
		for _, cm := range CatalogConfigMaps(in.Server, catalogSet(t, in.Server)) {
			out = append(out, cm)
		}
	}
	out = append(out, Service(in.Server))
	if peers := PeersService(in.Server); peers != nil {
		out = append(out, peers)
	}
	if pdb := PodDisruptionBudget(in.Server); pdb != nil {
		out = append(out, pdb)
	}
	var config *serverconfig.Config
	if Fronted(in.Server) {
		config = catalog.Build(in.Server, nil, serverconfig.ProbeTrust{}).Config
	}
	if policy := o.NetworkPolicy(in.Server, config); policy != nil {
		out = append(out, policy)
	}
	d, err := o.Deployment(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	return append(out, d)
}

// rendered is the YAML of objects as they are applied.
func rendered(t *testing.T, objects []runtime.Object) []byte {
	t.Helper()
	var out bytes.Buffer
	for i, obj := range objects {
		u, err := Render(obj)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := yaml.Marshal(u.Object)
		if err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			out.WriteString("---\n")
		}
		out.Write(raw)
	}
	return out.Bytes()
}
