// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/test/apiserver"
)

// maxCRDBytes leaves room below 256 KiB, the limit of client-side apply's
// annotation.
const maxCRDBytes = 200 << 10

func TestDefaults(t *testing.T) {
	got := create(t, mcpServer("defaults"))
	if got.Spec.Type != v1alpha1.TypeTools {
		t.Errorf("spec.type is %q", got.Spec.Type)
	}
	if got.Spec.Replicas == nil || *got.Spec.Replicas != 1 {
		t.Errorf("spec.replicas is %v", got.Spec.Replicas)
	}
	if diff := cmp.Diff(v1alpha1.MCPServerStatus{ObservedGeneration: -1}, got.Status); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}

	tool := create(t, &v1alpha1.MCPTool{
		ObjectMeta: named("defaults"),
		Spec:       v1alpha1.MCPToolSpec{RegistrationSpec: servedBy("defaults")},
	})
	if diff := cmp.Diff(v1alpha1.MCPToolStatus{RegistrationStatus: v1alpha1.RegistrationStatus{ObservedGeneration: -1}}, tool.Status); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}

// TestMinimalYAML: what a person may leave out, spec included where it can be
// empty.
func TestMinimalYAML(t *testing.T) {
	object, _ := fromYAML(`{apiVersion: mcp.espalier.dev/v1alpha1, kind: MCPServer, metadata: {name: minimal, namespace: default}, spec: {}}`).(map[string]any)
	if err := server.Client.Create(t.Context(), &unstructured.Unstructured{Object: object}, client.DryRunAll); err != nil {
		t.Error(err)
	}
}

// TestJSONFieldsKeepWhatTheyHold: fields without a schema survive a round trip
// through the server and our types.
func TestJSONFieldsKeepWhatTheyHold(t *testing.T) {
	raw := v1alpha1.JSON{Raw: []byte(`{"properties":{"a":{"default":null,"enum":[1,2.5,"x"]}},"type":"object"}`)}
	anything := v1alpha1.JSON{Raw: []byte(`true`)}
	tool := create(t, &v1alpha1.MCPTool{
		ObjectMeta: named("json"),
		Spec: v1alpha1.MCPToolSpec{
			RegistrationSpec: servedBy("a"),
			InputSchema:      &raw,
			OutputSchema:     &anything,
		},
	})
	if diff := cmp.Diff(string(raw.Raw), string(tool.Spec.InputSchema.Raw)); diff != "" {
		t.Errorf("inputSchema (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(string(anything.Raw), string(tool.Spec.OutputSchema.Raw)); diff != "" {
		t.Errorf("outputSchema (-want +got):\n%s", diff)
	}
}

// TestScaleFromTheStart: HPA and KEDA read the scale subresource before any
// controller has seen the object.
func TestScaleFromTheStart(t *testing.T) {
	got := create(t, mcpServer("scaled"))
	scale := &autoscalingv1.Scale{}
	if err := server.Client.SubResource("scale").Get(t.Context(), got, scale); err != nil {
		t.Fatal(err)
	}
	if scale.Spec.Replicas != 1 {
		t.Errorf("scale has %d replicas", scale.Spec.Replicas)
	}
	scale.Spec.Replicas = 3
	if err := server.Client.SubResource("scale").Update(t.Context(), got, client.WithSubResourceBody(scale)); err != nil {
		t.Fatal(err)
	}
	if err := server.Client.Get(t.Context(), client.ObjectKeyFromObject(got), got); err != nil {
		t.Fatal(err)
	}
	if *got.Spec.Replicas != 3 {
		t.Errorf("spec.replicas is %d after scaling to 3", *got.Spec.Replicas)
	}
}

func TestColumns(t *testing.T) {
	want := map[string][]string{
		"MCPServer":   {"Ready", "Reason", "Tools", "Replicas", "Healthy", "URL", "Protocol*", "Transports*", "Server*", "Age"},
		"MCPTool":     {"Tool", "Handler", "Servers", "Accepted", "Served", "Reason*", "Age"},
		"MCPResource": {"URI", "Source", "Servers", "Accepted", "Served", "Reason*", "Age"},
		"MCPPrompt":   {"Prompt", "Servers", "Accepted", "Served", "Reason*", "Age"},
	}
	for kind := range kinds {
		var got []string
		for _, column := range crd(t, kind).Spec.Versions[0].AdditionalPrinterColumns {
			name := column.Name
			if column.Priority > 0 {
				name += "*"
			}
			got = append(got, name)
		}
		if diff := cmp.Diff(want[kind], got); diff != "" {
			t.Errorf("%s (-want +got, * is wide):\n%s", kind, diff)
		}
	}
}

func TestNames(t *testing.T) {
	short := map[string]string{"MCPServer": "mcps", "MCPTool": "mcpt", "MCPResource": "mcpr", "MCPPrompt": "mcpp"}
	for kind := range kinds {
		names := crd(t, kind).Spec.Names
		if !slices.Contains(names.ShortNames, short[kind]) || !slices.Contains(names.Categories, "mcp") {
			t.Errorf("%s has short names %v, categories %v", kind, names.ShortNames, names.Categories)
		}
	}
}

func TestSizes(t *testing.T) {
	for _, name := range kinds {
		plural, group := name[:len(name)-len(".mcp.espalier.dev")], "mcp.espalier.dev"
		info, err := os.Stat(apiserver.Path("config", "crd", "bases", group+"_"+plural+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d KiB", name, info.Size()>>10)
		if info.Size() > maxCRDBytes {
			t.Errorf("%s has %d bytes, more than %d", name, info.Size(), maxCRDBytes)
		}
	}
}

func servedBy(server string) v1alpha1.RegistrationSpec {
	return v1alpha1.RegistrationSpec{ServerRefs: []v1alpha1.ServerRef{{Name: server}}}
}

// mcpServer has as little in its spec as Go can send.
func mcpServer(name string) *v1alpha1.MCPServer {
	return &v1alpha1.MCPServer{
		ObjectMeta: named(name),
		Spec:       v1alpha1.MCPServerSpec{ServerInfo: &v1alpha1.ServerInfo{Title: "A server"}},
	}
}

func named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: "default"}
}

// create creates object and gives it as the server has it.
func create[T client.Object](t *testing.T, object T) T {
	t.Helper()
	if err := server.Client.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	return object
}
