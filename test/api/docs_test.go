// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/catalog"
	"github.com/espalier-dev/espalier/internal/resources"
	"github.com/espalier-dev/espalier/internal/serverconfig"
	"github.com/espalier-dev/espalier/test/apiserver"
	"github.com/espalier-dev/espalier/test/markdown"
)

// TestDocsApply applies every block of YAML in the documentation, strictly and
// dry:
//
//   - an object as it stands, if the API server knows its kind;
//   - a fragment (no apiVersion) within an object that is made whole: of an
//     MCPServer, or of the kind that it or the word behind ```yaml names. It
//     begins at kind, spec, or a field of spec.
//
// Another word behind ```yaml ("values", for example) says that a block is
// nothing for the API server.
func TestDocsApply(t *testing.T) {
	pages, err := markdown.Pages(apiserver.Path())
	if err != nil {
		t.Fatal(err)
	}
	ours := 0
	for _, page := range pages {
		for _, block := range page.Blocks {
			if len(block.Info) == 0 || (block.Info[0] != "yaml" && block.Info[0] != "yml") || !forServer(block) {
				continue
			}
			for i, text := range strings.Split("\n"+block.Text, "\n---\n") {
				t.Run(fmt.Sprintf("%s:%d:%d", page.Path, block.Line, i), func(t *testing.T) {
					object := wholeObject(t, block, text)
					if object == nil {
						return
					}
					if applyDry(t, object) {
						ours++
						checkSound(t, object)
					}
				})
			}
		}
	}
	if ours < 18 {
		t.Errorf("only %d objects of ours were found", ours)
	}
}

var ourKinds = []string{"MCPServer", "MCPTool", "MCPResource", "MCPPrompt"}

// forServer: the block is not marked as something else.
func forServer(block markdown.Block) bool {
	return len(block.Info) < 2 || slices.Contains(ourKinds, block.Info[1])
}

// wholeObject makes an object of a document; nil for one without content.
func wholeObject(t *testing.T, block markdown.Block, text string) *unstructured.Unstructured {
	t.Helper()
	// A digest that is cut short stands for any.
	text = strings.ReplaceAll(text, "sha256:...", "sha256:"+strings.Repeat("0", 64))
	var content map[string]any
	if err := yaml.UnmarshalStrict([]byte(text), &content); err != nil {
		t.Fatalf("%v. If this is no object for the API server, write ```yaml values, or another word, in the first line", err)
	}
	if len(content) == 0 {
		return nil
	}
	object := &unstructured.Unstructured{Object: content}
	if object.GetAPIVersion() == "" {
		object.Object = fragment(block, content)
	}
	if object.GetName() == "" {
		object.SetName("docs")
	}
	return object
}

// fragment puts content into an object of ours.
func fragment(block markdown.Block, content map[string]any) map[string]any {
	kind := "MCPServer"
	if len(block.Info) > 1 {
		kind = block.Info[1]
	} else if named, ok := content["kind"].(string); ok {
		kind = named
	}
	spec, ok := content["spec"].(map[string]any)
	if !ok {
		delete(content, "kind")
		spec = content
	}
	complete(kind, spec)
	return map[string]any{"apiVersion": v1alpha1.GroupVersion.String(), "kind": kind, "spec": spec}
}

// complete adds what each object of the kind needs and the fragment leaves out.
func complete(kind string, spec map[string]any) {
	need := func(value any, fields ...string) {
		if !slices.ContainsFunc(fields, func(f string) bool { return spec[f] != nil }) {
			spec[fields[0]] = value
		}
	}
	if kind != "MCPServer" {
		need([]any{map[string]any{"name": "docs"}}, "serverRefs", "serverSelector")
	}
	switch kind {
	case "MCPResource":
		need("docs://docs", "uri", "uriTemplate")
		need("docs", "text", "blob", "expression", "http", "configMapKeyRef", "secretKeyRef")
	case "MCPPrompt":
		need([]any{map[string]any{"role": "User", "content": map[string]any{"type": "Text", "text": "docs"}}}, "messages")
	}
}

// applyDry creates object for show, and reports whether it is one of ours. A
// kind of somebody else's that the server does not know passes.
func applyDry(t *testing.T, object *unstructured.Unstructured) (ours bool) {
	t.Helper()
	kind := object.GroupVersionKind()
	ours = kind.Group == v1alpha1.GroupVersion.Group
	mapping, err := server.Client.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	switch {
	case meta.IsNoMatchError(err) && !ours && strings.Contains(kind.Group, "."):
		t.Logf("%s is not known to the API server", kind)
		return false
	case err != nil:
		t.Error(err)
		return false
	case mapping.Scope.Name() == meta.RESTScopeNameNamespace:
		object.SetNamespace("default")
	}
	if err := server.Client.Create(t.Context(), object.DeepCopy(), client.DryRunAll, client.FieldValidation("Strict")); err != nil {
		t.Error(err)
	}
	return ours
}

// checkSound judges what the API server cannot: expressions, schemas, URLs.
func checkSound(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	typed, err := server.Client.Scheme().New(object.GroupVersionKind())
	if err != nil {
		t.Fatal(err)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, typed); err != nil {
		t.Fatal(err)
	}
	switch o := typed.(type) {
	case *v1alpha1.MCPServer:
		if resources.Fronted(o) {
			c := catalog.Build(o, nil, serverconfig.ProbeTrust{})
			c.AddUpstreams(o, catalog.ResolveUpstreams(o, func(string) *v1alpha1.MCPServer { return nil }, resources.URL))
			if !c.Server.Accepted {
				t.Errorf("%s: %s", c.Server.Reason, c.Server.Message)
			}
		}
	case v1alpha1.Registration:
		if v := catalog.Compile(o).Verdict; !v.Accepted {
			t.Errorf("%s: %s", v.Reason, v.Message)
		}
	}
}

// TestExamplesAreSound: what the API server takes also compiles.
func TestExamplesAreSound(t *testing.T) {
	for _, object := range exampleObjects(t) {
		if object.GroupVersionKind().Group == v1alpha1.GroupVersion.Group {
			t.Run(object.GetKind()+" "+object.GetName(), func(t *testing.T) { checkSound(t, object) })
		}
	}
}
