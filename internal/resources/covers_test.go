// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

func TestCovers(t *testing.T) {
	tests := map[string]struct {
		live, want string
		covers     bool
	}{
		"equal":                       {`{a: 1, b: [x, y]}`, `{a: 1, b: [x, y]}`, true},
		"defaults beside":             {`{a: 1, b: default}`, `{a: 1}`, true},
		"nothing wanted":              {`{a: 1}`, `{}`, true},
		"another value":               {`{a: 2}`, `{a: 1}`, false},
		"another type":                {`{a: "1"}`, `{a: 1}`, false},
		"a missing field":             {`{b: 1}`, `{a: 1}`, false},
		"false is not absent":         {`{}`, `{a: false}`, false},
		"an empty object is absent":   {`{}`, `{a: {}}`, true},
		"an empty list is absent":     {`{}`, `{a: []}`, true},
		"a list that is not empty":    {`{a: [x]}`, `{a: []}`, false},
		"an object for a scalar":      {`{a: {b: 1}}`, `{a: 1}`, false},
		"a scalar for an object":      {`{a: 1}`, `{a: {b: 1}}`, false},
		"a scalar for a list":         {`{a: x}`, `{a: [x]}`, false},
		"an order that means it":      {`{args: [b, a]}`, `{args: [a, b]}`, false},
		"an added argument":           {`{args: [a, b]}`, `{args: [a]}`, false},
		"named, in another order":     {`{l: [{name: b, v: 2}, {name: a, v: 1}]}`, `{l: [{name: a, v: 1}, {name: b, v: 2}]}`, true},
		"an injected sidecar":         {`{containers: [{name: istio, image: i}, {name: server, image: s}]}`, `{containers: [{name: server, image: s}]}`, true},
		"a removed element":           {`{l: [{name: a}]}`, `{l: [{name: a}, {name: b}]}`, false},
		"an element that changed":     {`{l: [{name: a, v: 2}]}`, `{l: [{name: a, v: 1}]}`, false},
		"ports by number":             {`{ports: [{containerPort: 9, name: x}, {containerPort: 8, name: mcp, protocol: TCP}]}`, `{ports: [{containerPort: 8, name: mcp}]}`, true},
		"mounts by path":              {`{m: [{mountPath: /b, name: v}, {mountPath: /a, name: v}]}`, `{m: [{mountPath: /a, name: v}, {mountPath: /b, name: v}]}`, true},
		"no key: by position":         {`{sources: [{secret: {name: a}}, {configMap: {name: b}}]}`, `{sources: [{secret: {name: a}}, {configMap: {name: b}}]}`, true},
		"no key: another order":       {`{sources: [{configMap: {name: b}}, {secret: {name: a}}]}`, `{sources: [{secret: {name: a}}, {configMap: {name: b}}]}`, false},
		"a key that is not unique":    {`{t: [{key: a, effect: x}, {key: a, effect: y}]}`, `{t: [{key: a, effect: x}, {key: a, effect: y}]}`, true},
		"not unique, another order":   {`{t: [{key: a, effect: y}, {key: a, effect: x}]}`, `{t: [{key: a, effect: x}, {key: a, effect: y}]}`, false},
		"owners of one name":          {`{o: [{name: x, uid: 1, kind: A}, {name: x, uid: 2, kind: B}]}`, `{o: [{name: x, uid: 1, kind: A}]}`, true},
		"an owner of another uid":     {`{o: [{name: x, uid: 2}]}`, `{o: [{name: x, uid: 1}]}`, false},
		"a float from JSON":           {`{a: 3.0}`, `{a: 3}`, true},
		"labels of others":            {`{labels: {ours: a, theirs: b}}`, `{labels: {ours: a}}`, true},
		"no label of ours":            {`{labels: {theirs: b}}`, `{labels: {ours: a}}`, false},
		"nothing there":               {`null`, `{a: 1}`, false},
		"the natural key in one only": {`{l: [{name: a}, {x: 1}]}`, `{l: [{name: a}, {x: 1}]}`, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var live, want any
			for text, into := range map[string]*any{test.live: &live, test.want: &want} {
				if err := yaml.Unmarshal([]byte(text), into); err != nil {
					t.Fatal(err)
				}
			}
			if test.live == test.want {
				live = want
			}
			if got := Covers(live, want); got != test.covers {
				t.Errorf("Covers(%s, %s) = %v", test.live, test.want, got)
			}
		})
	}
}

// TestCoversWhatTheServerStores: quantities and defaults as the API server
// writes them are no change. The spec may say 1000m; what is rendered says 1.
func TestCoversWhatTheServerStores(t *testing.T) {
	d, err := options().Deployment(TemplateInput{Server: server(t, goldens["tools-maximal"].spec)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want, err := Render(d)
	if err != nil {
		t.Fatal(err)
	}
	// As the server would send it: through JSON into the typed object, with
	// defaults and status.
	raw, err := yaml.Marshal(want.Object)
	if err != nil {
		t.Fatal(err)
	}
	var stored appsv1.Deployment
	if err := yaml.Unmarshal(raw, &stored); err != nil {
		t.Fatal(err)
	}
	seconds := int32(600)
	stored.Spec.ProgressDeadlineSeconds = &seconds
	stored.Spec.Template.Spec.DNSPolicy = "ClusterFirst"
	stored.Spec.Template.Spec.Containers[0].TerminationMessagePath = "/dev/termination-log"
	stored.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"] = "2026-01-01T00:00:00Z"
	stored.Status.Replicas = 3
	live, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&stored)
	if err != nil {
		t.Fatal(err)
	}
	if !Covers(live, want.Object) {
		t.Error("what the server stores does not cover what was applied")
	}
	stored.Spec.Template.Spec.Containers[0].Image = "evil"
	if live, err = runtime.DefaultUnstructuredConverter.ToUnstructured(&stored); err != nil {
		t.Fatal(err)
	}
	if Covers(live, want.Object) {
		t.Error("another image is covered")
	}
}
