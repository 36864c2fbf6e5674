// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
)

// TestTwoToolsOfOneName: the oldest is served, the loser names it; when the
// winner goes, the loser is served.
func TestTwoToolsOfOneName(t *testing.T) {
	w := newWorld(t)
	w.server(`{replicas: 1}`)
	// Creation counts in seconds; within one, the name decides.
	w.tool("one", `name: same, expression: {text: "'one'"}`)
	w.tool("two", `name: same, expression: {text: "'two'"}`)
	w.serve()
	w.toolBecomes("one", isServed)
	w.toolBecomes("two", map[string]string{"Accepted": "False Conflict", "Served": "False NotAccepted", "Stalled": "True Conflict"})
	if c := meta.FindStatusCondition(get(w, "two", &mcpv1.MCPTool{}).Status.Conditions, "Accepted"); !strings.Contains(c.Message, "MCPTool one") {
		t.Errorf("the loser is told %q", c.Message)
	}
	w.told("Warning Conflict MCPTool/two")
	must(t, api.Client.Delete(w.ctx, get(w, "one", &mcpv1.MCPTool{})))
	w.toolBecomes("two", map[string]string{"Accepted": "True Accepted", "Served": "False CatalogPending", "Stalled": "-"})
	w.prove(w.report())
	w.toolBecomes("two", isServed)
}

// TestBrokenTool harms no other.
func TestBrokenTool(t *testing.T) {
	w := newWorld(t)
	twoTools(w)
	w.serve()
	w.toolBecomes("alpha", isServed)
	_, digest, _ := w.catalog()
	w.tool("broken", `expression: {text: "1 +"}`)
	w.toolBecomes("broken", map[string]string{"Accepted": "False InvalidExpression", "Stalled": "True InvalidExpression", "Served": "False NotAccepted"})
	w.told("Warning InvalidExpression MCPTool/broken")
	if _, now, _ := w.catalog(); now != digest {
		t.Error("a broken tool changed the catalog")
	}
	w.toolBecomes("alpha", isServed)
	w.becomes(map[string]string{"Ready": "True Proved", "Synced": "True Synced"})
}

// annotation that web's pods were poked with, by pod.
func (w *world) pokes() map[string]string {
	w.Helper()
	out := map[string]string{}
	for _, pod := range w.pods() {
		out[pod.Name] = pod.Annotations[mcpv1.AnnotationCatalog]
	}
	return out
}

// TestEdit: an edit reaches the ConfigMap, pods are poked at once and again
// until they report it, Served is False until then, nothing rolls out.
func TestEdit(t *testing.T) {
	w := newWorld(t)
	twoTools(w)
	w.serve()
	w.toolBecomes("alpha", isServed)
	w.rest()
	deployment, pods := get(w, "web-mcp", &appsv1.Deployment{}), w.pods()
	before := len(w.writes.all())
	began := time.Now()
	w.tool("alpha", `expression: {text: "'new'"}`)
	w.toolBecomes("alpha", map[string]string{"Accepted": "True Accepted", "Served": "False CatalogPending"})
	w.becomes(map[string]string{"Ready": "True Proved", "Synced": "False CatalogPending", "Reconciling": "True CatalogPending"})
	w.toolBecomes("beta", isServed)
	// The pods were poked once and, as they do not report it, again after 1
	// and 2 seconds. Who looks late sees later pokes.
	w.eventually(soon, "poke 3", func() string {
		for pod, value := range w.pokes() {
			if n, err := strconv.Atoi(value[strings.LastIndexByte(value, '-')+1:]); err != nil || n < 3 {
				return pod + " has " + value
			}
		}
		return ""
	})
	if took := time.Since(began); took < 3*time.Second {
		t.Errorf("three pokes within %s", took)
	}
	w.prove(w.report())
	w.toolBecomes("alpha", isServed)
	w.becomes(map[string]string{"Ready": "True Proved", "Synced": "True Synced", "Reconciling": "-"})
	w.rest()
	// The fourth and the fifth come 4 and 8 seconds later, to a slow test.
	if poked := w.writes.since(before, "patch status v1.Pod"); len(poked) < 9 || len(poked) > 15 {
		t.Errorf("3 pods were poked %d times, want 9: %v", len(poked), poked)
	}
	if applied := w.writes.since(before, "apply"); len(applied) != 1 {
		t.Errorf("applied was %v, want the ConfigMap alone", applied)
	}
	if now := get(w, "web-mcp", &appsv1.Deployment{}); now.Generation != deployment.Generation {
		t.Error("the edit rolled out")
	}
	if now := w.pods(); len(now) != len(pods) {
		t.Errorf("%d pods, %d before", len(now), len(pods))
	}
}

// TestEditIsNotLoaded: after 30 seconds that is told, and Ready with it.
func TestEditIsNotLoaded(t *testing.T) {
	w := newWorld(t)
	twoTools(w)
	w.serve()
	w.toolBecomes("alpha", isServed)
	w.tool("alpha", `expression: {text: "'new'"}`)
	w.becomes(map[string]string{"Ready": "True Proved", "Synced": "False CatalogPending"})
	w.clock.forward(31 * time.Second)
	w.pass()
	w.becomes(map[string]string{"Ready": "False CatalogNotLoaded", "Synced": "False CatalogNotLoaded", "Reconciling": "-"})
	w.toolBecomes("alpha", map[string]string{"Served": "False CatalogNotLoaded"})
	w.told("Warning CatalogNotLoaded MCPServer/web")
	w.prove(w.report())
	w.becomes(map[string]string{"Ready": "True Proved", "Synced": "True Synced"})
	w.toolBecomes("alpha", isServed)
	w.told("Normal Proved MCPServer/web")
}

// TestBigCatalog: above 256 KiB it travels compressed, and is served the same.
func TestBigCatalog(t *testing.T) {
	w := newWorld(t)
	twoTools(w)
	w.serve()
	var text strings.Builder
	for i := 0; text.Len() < 16000; i++ {
		fmt.Fprintf(&text, "%x", i*i*7919)
	}
	for i := range 20 {
		w.tool(fmt.Sprintf("big-%d", i), fmt.Sprintf(`description: "%d %s", expression: {text: "''"}`, i, text.String()))
	}
	w.eventually(soon, "the catalog of 22 tools", func() string {
		config, _, err := w.catalog()
		switch {
		case err != nil:
			return err.Error()
		case len(config.Tools) != 22:
			return fmt.Sprintf("%d tools", len(config.Tools))
		}
		return ""
	})
	if cm := get(w, "web-mcp-catalog", &corev1.ConfigMap{}); len(cm.BinaryData) != 1 {
		t.Errorf("it is not compressed: %d bytes", len(cm.Data["catalog-0"]))
	}
	w.prove(w.report())
	w.becomes(map[string]string{"Ready": "True Proved", "Synced": "True Synced"})
	w.toolBecomes("big-19", isServed)
}

// TestSelector: tools that select servers by label follow the labels.
func TestSelector(t *testing.T) {
	w := newWorld(t)
	w.apply(`{kind: MCPTool, metadata: {name: alpha}, spec: {serverSelector: {matchLabels: {team: x}}, expression: {text: "'a'"}}}`)
	w.toolBecomes("alpha", map[string]string{"Accepted": "False NoServers", "Served": "False NoServers"})
	w.server(`{replicas: 1}`)
	w.becomes(map[string]string{"Ready": "False Starting"})
	w.toolBecomes("alpha", map[string]string{"Accepted": "False NoServers"})
	w.apply(`{kind: MCPServer, metadata: {name: web, labels: {team: x}}, spec: {replicas: 1}}`)
	w.toolBecomes("alpha", map[string]string{"Accepted": "True Accepted"})
	w.serve()
	w.toolBecomes("alpha", isServed)
	w.apply(`{kind: MCPTool, metadata: {name: beta}, spec: {serverSelector: {matchExpressions: [{key: team, operator: Exists}]}, expression: {text: "'b'"}}}`)
	w.toolBecomes("beta", map[string]string{"Accepted": "True Accepted", "Served": "False CatalogPending"})
	w.prove(w.report())
	w.toolBecomes("beta", isServed)
	w.apply(`{kind: MCPServer, metadata: {name: web}, spec: {replicas: 1}}`)
	w.toolBecomes("alpha", map[string]string{"Accepted": "False NoServers", "Served": "False NoServers"})
	if config, _, err := w.catalog(); err != nil || len(config.Tools) != 0 {
		t.Errorf("it is still in the catalog: %v, %v", config.Tools, err)
	}
}

// TestServerGoes: its tools stay and say so, and recover when it returns (C04).
func TestServerGoes(t *testing.T) {
	w := newWorld(t)
	twoTools(w)
	w.serve()
	w.toolBecomes("alpha", isServed)
	must(t, api.Client.Delete(w.ctx, w.web()))
	w.toolBecomes("alpha", map[string]string{"Accepted": "False ServerNotFound", "Served": "False ServerNotFound", "Stalled": "-"})
	w.eventually(soon, "the prober", func() string {
		if _, known := w.prober.spec(w.key("web")); known {
			return "still probes what is deleted"
		}
		return ""
	})
	w.server(`{replicas: 3}`)
	w.toolBecomes("alpha", map[string]string{"Accepted": "True Accepted"})
}

// TestServerEnds: while a server is being deleted in the foreground its
// children are not made again, and its tools say that it is missing.
func TestServerEnds(t *testing.T) {
	w := newWorld(t)
	twoTools(w)
	w.serve()
	w.toolBecomes("alpha", isServed)
	server := w.web()
	server.Finalizers = []string{"example.com/slow"}
	must(t, api.Client.Update(w.ctx, server))
	must(t, api.Client.Delete(w.ctx, server))
	w.toolBecomes("alpha", map[string]string{"Accepted": "False ServerNotFound", "Served": "False ServerNotFound"})
	before := len(w.writes.all())
	for _, child := range w.children() {
		must(t, api.Client.Delete(w.ctx, child, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	}
	w.tool("beta", `expression: {text: "'new'"}`) // wakes the server once more
	w.toolBecomes("beta", map[string]string{"Accepted": "False ServerNotFound"})
	if lines := w.writes.since(before, "apply"); len(lines) > 0 {
		t.Errorf("children were made again: %v", lines)
	}
	server = w.web()
	server.Finalizers = nil
	must(t, api.Client.Update(w.ctx, server))
}
