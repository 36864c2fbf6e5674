// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/test/states"
)

// stored compares an object as it is stored with the one that test/states
// keeps for the state.
func (w *world) stored(state, kind, name string) {
	w.Helper()
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(mcpv1.GroupVersion.WithKind(kind))
	get(w, name, obj)
	if err := states.Check(state, obj); err != nil {
		w.Errorf("%s %s: %v", kind, state, err)
	}
}

// TestStoredStatesOfServers: those that a cluster does not come to by itself in
// a test's time. The others are test/e2e's.
func TestStoredStatesOfServers(t *testing.T) {
	w := newWorld(t)
	w.stop()
	w.server(`{}`)
	w.stored("unseen", "MCPServer", "web")
	w.restart()
	w.tool("alpha", `expression: {text: "'a'"}`)
	w.serve()
	w.toolBecomes("alpha", isServed)

	w.tool("alpha", `expression: {text: "'new'"}`)
	w.becomes(map[string]string{"Ready": "True Proved", "Synced": "False CatalogPending"})
	w.stored("catalog-pending", "MCPServer", "web")
	w.clock.forward(31 * time.Second)
	w.pass()
	w.becomes(map[string]string{"Ready": "False CatalogNotLoaded", "Reconciling": "-"})
	w.stored("catalog-not-loaded", "MCPServer", "web")
	w.prove(w.report())
	w.becomes(map[string]string{"Ready": "True Proved", "Synced": "True Synced"})

	w.tool("beta", `http: {method: GET, url: "http://api", headers: [{name: A, secretKeyRef: {name: late, key: token}}]}`)
	w.becomes(map[string]string{"Ready": "True Proved", "Synced": "False RolloutForCredentials"})
	w.stored("rollout-for-credentials", "MCPServer", "web")
	w.serve()
	w.toolBecomes("beta", map[string]string{"Served": "True Served"})

	w.prober.lag(true)
	w.pass()
	w.becomes(map[string]string{"Ready": "Unknown Stale"})
	w.stored("stale", "MCPServer", "web")
	w.prober.lag(false)
	w.pass()
	w.becomes(map[string]string{"Ready": "True Proved"})

	w.stop()
	w.server(`{replicas: 2}`)
	w.stored("edited", "MCPServer", "web")
}

// TestStoredStatesOfRegistrations, of each kind.
func TestStoredStatesOfRegistrations(t *testing.T) {
	for kind, k := range kinds {
		t.Run(kind, func(t *testing.T) {
			w := newWorld(t)
			apply := func(name, spec string) {
				w.Helper()
				w.apply(fmt.Sprintf("{kind: %s, metadata: {name: %s}, spec: {%s}}", kind, name, spec))
			}
			is := func(state, name, accepted, served string) {
				w.Helper()
				w.registrationBecomes(name, k.object, map[string]string{"Accepted": accepted, "Served": served})
				w.stored(state, kind, name)
			}
			onWeb := "serverRefs: [{name: web}], "
			w.stop()
			apply("a", onWeb+k.first)
			w.stored("unseen", kind, "a")
			w.restart()
			is("before-its-server", "a", "False ServerNotFound", "False ServerNotFound")
			w.server(`{}`)
			is("server-starts", "a", "True Accepted", "Unknown Pending")
			w.serve()
			is("served", "a", "True Accepted", "True Served")
			apply("selecting", `serverSelector: {matchLabels: {team: none}}, `+k.first)
			is("no-servers", "selecting", "False NoServers", "False NoServers")
			apply("b", onWeb+k.first)
			is("conflict", "b", "False Conflict", "False NotAccepted")
			apply("b", onWeb+k.broken)
			is("invalid", "b", "False InvalidExpression", "False NotAccepted")
			apply("b", onWeb+k.first+`, suspend: true`)
			is("suspended", "b", "False Suspended", "False NotAccepted")
			apply("a", onWeb+k.then)
			is("edit-on-its-way", "a", "True Accepted", "False CatalogPending")
			w.stop()
			apply("a", onWeb+strings.ReplaceAll(k.then, "2", "3"))
			w.stored("edited", kind, "a")
		})
	}
}
