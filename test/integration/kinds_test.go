// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
)

// kinds of registrations, each with the spec of two versions and of one that
// is broken.
var kinds = map[string]struct {
	object              mcpv1.Registration
	first, then, broken string
}{
	"MCPTool": {&mcpv1.MCPTool{}, `name: same, expression: {text: "'1'"}`, `name: same, expression: {text: "'2'"}`, `name: same, expression: {text: "1 +"}`},
	"MCPResource": {&mcpv1.MCPResource{}, `uri: "docs://same", text: "1"`, `uri: "docs://same", text: "2"`,
		`uri: "docs://same", expression: {text: "1 +"}`},
	"MCPPrompt": {&mcpv1.MCPPrompt{}, `name: same, messages: [{role: User, content: {type: Text, text: "1"}}]`,
		`name: same, messages: [{role: User, content: {type: Text, text: "2"}}]`, `name: same, messages: [{role: User, content: {type: Text, expression: "1 +"}}]`},
}

// TestEveryKindConforms walks a registration of each kind through its life:
// early, accepted, served, edited, in conflict, broken, suspended, gone.
func TestEveryKindConforms(t *testing.T) {
	for kind, k := range kinds {
		t.Run(kind, func(t *testing.T) {
			w := newWorld(t)
			apply := func(name, spec string) {
				w.Helper()
				w.apply(fmt.Sprintf("{kind: %s, metadata: {name: %s}, spec: {serverRefs: [{name: web}], %s}}", kind, name, spec))
			}
			becomes := func(name string, accepted, served string) {
				w.Helper()
				w.registrationBecomes(name, k.object, map[string]string{"Accepted": accepted, "Served": served})
			}
			apply("a", k.first)
			becomes("a", "False ServerNotFound", "False ServerNotFound")
			w.server(`{}`)
			w.serve()
			becomes("a", "True Accepted", "True Served")
			old := w.report()
			status := w.web().Status
			if total := *status.ToolCount + *status.ResourceCount + *status.PromptCount; total != 1 {
				t.Errorf("counts %d, %d, %d", *status.ToolCount, *status.ResourceCount, *status.PromptCount)
			}

			apply("a", k.then) // No list shows the difference.
			becomes("a", "True Accepted", "False CatalogPending")
			w.prove(old)
			w.pass()
			becomes("a", "True Accepted", "False CatalogPending")
			w.prove(w.report())
			becomes("a", "True Accepted", "True Served")

			apply("b", k.first)
			becomes("b", "False Conflict", "False NotAccepted")
			w.told(fmt.Sprintf("Warning Conflict %s/b", kind))
			becomes("a", "True Accepted", "True Served")
			apply("a", k.broken)
			becomes("a", "False InvalidExpression", "False NotAccepted")
			becomes("b", "True Accepted", "False CatalogPending")
			w.prove(w.report())
			becomes("b", "True Accepted", "True Served")
			apply("b", k.first+`, suspend: true`)
			becomes("b", "False Suspended", "False NotAccepted")
			must(t, api.Client.Delete(w.ctx, get(w, "a", k.object)))
			apply("b", k.first)
			w.eventually(soon, "a new catalog", func() string {
				w.prove(w.report())
				status := get(w, "b", k.object).GetRegistrationStatus()
				return differs(status.Conditions, map[string]string{"Served": "True Served"}, status.ObservedGeneration, k.object.GetGeneration())
			})
			w.rest()
			w.restart()
			w.prove(w.report())
			w.rest()
			if lines := w.writes.all(); len(lines) > 0 {
				t.Errorf("a restart wrote %v", lines)
			}
			must(t, api.Client.Delete(w.ctx, w.web()))
			becomes("b", "False ServerNotFound", "False ServerNotFound")
		})
	}
}

// TestResourceFromConfigMap: the first resource that names a ConfigMap makes
// the pods mount it; without it the resource alone is harmed.
func TestResourceFromConfigMap(t *testing.T) {
	w := newWorld(t)
	w.server(`{}`)
	w.apply(`{kind: MCPResource, metadata: {name: a}, spec: {serverRefs: [{name: web}], uri: "docs://a", text: a}}`)
	w.serve()
	w.apply(`{kind: MCPResource, metadata: {name: b}, spec: {serverRefs: [{name: web}], uri: "docs://b", configMapKeyRef: {name: docs, key: b.md}}}`)
	b := &mcpv1.MCPResource{}
	w.registrationBecomes("b", b, map[string]string{"Accepted": "True Accepted", "ResolvedRefs": "False ConfigMapNotFound", "Served": "False RolloutForCredentials"})
	w.becomes(map[string]string{"Synced": "False RolloutForCredentials", "ResolvedRefs": "False ConfigMapNotFound", "Ready": "True Proved"})
	w.serve()
	w.registrationBecomes("b", b, map[string]string{"ResolvedRefs": "False ConfigMapNotFound", "Served": "True Served"})
	config := &corev1.ConfigMap{Data: map[string]string{"b.md": "B"}}
	config.Namespace, config.Name = w.namespace, "docs"
	must(t, api.Client.Create(w.ctx, config))
	w.registrationBecomes("b", b, map[string]string{"ResolvedRefs": "True ResolvedRefs", "Served": "True Served"})
	if b.Status.URI != "docs://b" || b.Status.Source != "configMap" {
		t.Errorf("%+v", b.Status)
	}
}
