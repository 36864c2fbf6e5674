// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestTwoFieldManagers: two people own parts of one object by server-side
// apply. List-maps merge by key, sets by value, atomic lists belong to one.
func TestTwoFieldManagers(t *testing.T) {
	tests := map[string]struct {
		kind        string
		first, then string // specs
		field       []string
		want        string
		conflict    bool
	}{
		"headers merge by name": {
			kind:  "MCPServer",
			first: `{probe: {headers: [{name: A, value: "1"}]}}`,
			then:  `{probe: {headers: [{name: B, value: "2"}]}}`,
			field: []string{"spec", "probe", "headers"},
			want:  `[{name: A, value: "1"}, {name: B, value: "2"}]`,
		},
		"one header cannot have two values": {
			kind:     "MCPServer",
			first:    `{probe: {headers: [{name: A, value: "1"}]}}`,
			then:     `{probe: {headers: [{name: A, value: "2"}]}}`,
			conflict: true,
		},
		"env merges by name": {
			kind:  "MCPServer",
			first: `{workload: {env: [{name: A, value: "1"}]}}`,
			then:  `{workload: {env: [{name: B, value: "2"}]}}`,
			field: []string{"spec", "workload", "env"},
			want:  `[{name: A, value: "1"}, {name: B, value: "2"}]`,
		},
		"mounts merge by path": {
			kind:  "MCPServer",
			first: `{workload: {volumeMounts: [{name: a, mountPath: /a}]}}`,
			then:  `{workload: {volumeMounts: [{name: a, mountPath: /b}]}}`,
			field: []string{"spec", "workload", "volumeMounts"},
			want:  `[{name: a, mountPath: /a}, {name: a, mountPath: /b}]`,
		},
		"volumes merge by name": {
			kind:  "MCPServer",
			first: `{workload: {volumes: [{name: a, emptyDir: {}}]}}`,
			then:  `{workload: {volumes: [{name: b, emptyDir: {}}]}}`,
			field: []string{"spec", "workload", "volumes"},
			want:  `[{name: a, emptyDir: {}}, {name: b, emptyDir: {}}]`,
		},
		"origins are a set": {
			kind:  "MCPServer",
			first: `{cors: {allowedOrigins: ["https://a"]}}`,
			then:  `{cors: {allowedOrigins: ["https://a", "https://b"]}}`,
			field: []string{"spec", "cors", "allowedOrigins"},
			want:  `["https://a", "https://b"]`,
		},
		"include is one person's": {
			kind:     "MCPServer",
			first:    `{tools: {include: [a]}}`,
			then:     `{tools: {include: [b]}}`,
			conflict: true,
		},
		"serverRefs merge by name": {
			kind:  "MCPTool",
			first: `{serverRefs: [{name: a}]}`,
			then:  `{serverRefs: [{name: b}]}`,
			field: []string{"spec", "serverRefs"},
			want:  `[{name: a}, {name: b}]`,
		},
		"arguments of a prompt merge by name": {
			kind:  "MCPPrompt",
			first: `{serverRefs: [{name: a}], arguments: [{name: a}], messages: [{role: User, content: {type: Text, text: a}}]}`,
			then:  `{arguments: [{name: b}], messages: [{role: User, content: {type: Text, text: a}}]}`,
			field: []string{"spec", "arguments"},
			want:  `[{name: a}, {name: b}]`,
		},
		"messages are one person's": {
			kind:     "MCPPrompt",
			first:    `{serverRefs: [{name: a}], messages: [{role: User, content: {type: Text, text: a}}]}`,
			then:     `{messages: [{role: User, content: {type: Text, text: b}}]}`,
			conflict: true,
		},
		"completions are a set": {
			kind:  "MCPResource",
			first: `{serverRefs: [{name: a}], uriTemplate: "a:b/{c}", text: a, variables: [{name: c, completions: [x]}]}`,
			then:  `{variables: [{name: c, completions: ["y"]}]}`,
			field: []string{"spec", "variables"},
			want:  `[{name: c, completions: [x, "y"]}]`,
		},
		"query merges by name": {
			kind:  "MCPTool",
			first: `{serverRefs: [{name: a}], http: {method: GET, url: "http://a", query: [{name: a, value: "1"}]}}`,
			then:  `{http: {method: GET, url: "http://a", query: [{name: b, value: "2"}]}}`,
			field: []string{"spec", "http", "query"},
			want:  `[{name: a, value: "1"}, {name: b, value: "2"}]`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			object := applied(test.kind, test.first)
			if err := apply(t, object, "first"); err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := server.Client.Delete(t.Context(), object); err != nil {
					t.Error(err)
				}
			}()
			object = applied(test.kind, test.then)
			err := apply(t, object, "second")
			if apierrors.IsConflict(err) != test.conflict {
				t.Fatalf("second apply: %v", err)
			}
			if test.conflict {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got, _, _ := unstructured.NestedFieldNoCopy(object.Object, test.field...)
			if diff := cmp.Diff(fromYAML(test.want), got); diff != "" {
				t.Errorf("%v (-want +got):\n%s", test.field, diff)
			}
		})
	}
}

func apply(t *testing.T, object *unstructured.Unstructured, manager string) error {
	t.Helper()
	return server.Client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(manager))
}

func applied(kind, spec string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": fromYAML(spec)}}
	object.SetAPIVersion("mcp.espalier.dev/v1alpha1")
	object.SetKind(kind)
	object.SetNamespace("default")
	object.SetName("applied")
	return object
}
