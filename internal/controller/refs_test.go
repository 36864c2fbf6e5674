// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/catalog"
	"github.com/espalier-dev/espalier/internal/dialing"
	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/references"
	"github.com/espalier-dev/espalier/internal/resources"
)

func sortedRefs(w *world) []references.ID {
	return slices.SortedFunc(maps.Keys(w.refs), func(a, b references.ID) int { return cmp.Compare(a.Name, b.Name) })
}

const envSpec = `{type: Container, container: {image: i}, workload: {
  env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: a}}}, {name: O, valueFrom: {secretKeyRef: {name: o, key: x, optional: true}}}],
  envFrom: [{configMapRef: {name: c}}]}}`

// TestEnvDigest: what reaches containers as environment rolls them when its
// value changes, and not when it merely goes away (A06, C11).
func TestEnvDigest(t *testing.T) {
	w := newWorld(t, envSpec)
	secret := func(name string, state references.State) {
		w.refs[references.ID{Kind: catalog.RefSecret, Namespace: "ns", Name: name}] = state
	}
	configMap := func(state references.State) {
		w.refs[references.ID{Kind: catalog.RefConfigMap, Namespace: "ns", Name: "c"}] = state
	}
	found := func(version string, pairs ...string) references.State {
		state := references.State{Found: true, Version: version, Digests: map[string]string{}}
		for i := 0; i < len(pairs); i += 2 {
			state.Digests[pairs[i]] = pairs[i+1]
		}
		return state
	}
	// roll deploys what is wanted now and reports whether that is a change.
	present := ""
	roll := func() bool {
		digest := w.scope().envDigest()
		changed := digest != present
		present = digest
		d, err := resources.Options{ServerImage: "i"}.Deployment(resources.TemplateInput{Server: w.server, EnvDigest: digest}, w.deployment)
		if err != nil {
			t.Fatal(err)
		}
		w.deployment = d
		return changed
	}
	secret("s", found("1", "a", "1", "b", "1"))
	configMap(found("1", "x", "1"))
	secret("o", references.State{})
	roll()
	steps := []struct {
		name   string
		change func()
		rolls  bool
	}{
		{"nothing", func() {}, false},
		{"another version of the same data", func() { secret("s", found("2", "a", "1", "b", "1")) }, false},
		{"a key that nobody names", func() { secret("s", found("3", "a", "1", "b", "2")) }, false},
		{"the key", func() { secret("s", found("4", "a", "2", "b", "2")) }, true},
		{"any key of a whole ConfigMap", func() { configMap(found("2", "x", "1", "y", "1")) }, true},
		{"the Secret is deleted", func() { secret("s", references.State{}) }, false},
		{"and comes back as it was", func() { secret("s", found("5", "a", "2")) }, false},
		{"the key is deleted", func() { secret("s", found("6", "b", "2")) }, false},
		{"the operator may not read it", func() { secret("s", references.State{Forbidden: true}) }, false},
		{"and it comes back with another value", func() { secret("s", found("7", "a", "3")) }, true},
		{"an optional one comes", func() { secret("o", found("1", "x", "1")) }, true},
		{"an optional one goes", func() { secret("o", references.State{}) }, true},
	}
	for _, step := range steps {
		step.change()
		if got := roll(); got != step.rolls {
			t.Errorf("%s: rolls %v, want %v", step.name, got, step.rolls)
		}
	}
	if got := newWorld(t, containerSpec).scope().envDigest(); got != "" {
		t.Errorf("without env the digest is %q", got)
	}
}

// TestRefProblems: the sentence for each, none for what is optional.
func TestRefProblems(t *testing.T) {
	w := newWorld(t, envSpec)
	s := w.scope()
	configMap := catalog.Ref{Kind: catalog.RefConfigMap, Name: "c", Key: "k"}
	secret := catalog.Ref{Kind: catalog.RefSecret, Name: "s", Key: "k"}
	state := func(ref catalog.Ref, state references.State) {
		w.refs[references.ID{Kind: ref.Kind, Namespace: "ns", Name: ref.Name}] = state
	}
	tests := []struct {
		ref     catalog.Ref
		state   references.State
		reason  string
		message string
	}{
		{secret, references.State{}, mcpv1.ReasonSecretNotFound, "Secret s does not exist. Create it in namespace ns."},
		{secret, references.State{Found: true}, mcpv1.ReasonSecretKeyNotFound, "Secret s has no key k."},
		{secret, references.State{Forbidden: true}, mcpv1.ReasonForbidden, "may not get secrets (s). Give its ClusterRole the verb get on secrets"},
		{secret, references.State{Found: true, Digests: map[string]string{"k": ""}}, "", ""},
		{configMap, references.State{}, mcpv1.ReasonConfigMapNotFound, "ConfigMap c does not exist."},
		{configMap, references.State{Found: true}, mcpv1.ReasonConfigMapKeyNotFound, "ConfigMap c has no key k."},
		{catalog.Ref{Kind: catalog.RefSecret, Name: "s"}, references.State{Found: true}, "", ""},
		{catalog.Ref{Kind: catalog.RefSecret, Name: "s", Key: "k", Optional: true}, references.State{}, "", ""},
	}
	for _, test := range tests {
		state(test.ref, test.state)
		reason, message := s.refProblem(test.ref)
		if reason != test.reason || !strings.Contains(message, test.message) {
			t.Errorf("%+v in %+v: %s %q", test.ref, test.state, reason, message)
		}
	}
}

// TestAllRefs: every place of the spec that names a Secret or ConfigMap.
func TestAllRefs(t *testing.T) {
	w := newWorld(t, `{probe: {headers: [{name: X, secretKeyRef: {name: probe, key: k}}]}, workload: {
	  env: [{name: A, valueFrom: {configMapKeyRef: {name: env, key: k, optional: true}}}], envFrom: [{secretRef: {name: from}}],
	  volumes: [{name: v, secret: {secretName: vol}}, {name: c, configMap: {name: vol, optional: true}}, {name: e, emptyDir: {}}]}}`)
	w.tool("alpha", `http: {method: GET, url: "http://api", headers: [{name: A, secretKeyRef: {name: tool, key: k}}]}`)
	want := []catalog.Ref{
		{Kind: catalog.RefConfigMap, Name: "env", Key: "k", Optional: true},
		{Kind: catalog.RefConfigMap, Name: "vol", Optional: true},
		{Kind: catalog.RefSecret, Name: "from"},
		{Kind: catalog.RefSecret, Name: "probe", Key: "k"},
		{Kind: catalog.RefSecret, Name: "tool", Key: "k"},
		{Kind: catalog.RefSecret, Name: "vol"},
	}
	if diff := gocmp.Diff(want, w.scope().allRefs()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestProbeHeaders: where each value comes from, which count as a credential,
// and that the probe's own win.
func TestProbeHeaders(t *testing.T) {
	w := newWorld(t, `{type: External, external: {url: "https://x/mcp", headers: [
	    {name: authorization, prefix: "Bearer ", secretKeyRef: {name: callers, key: t}}, {name: X-Tenant, configMapKeyRef: {name: c, key: t}},
	    {name: X-Missing, secretKeyRef: {name: none, key: t}}, {name: X-Plain, value: v}]},
	  probe: {headers: [{name: Authorization, prefix: "Bearer ", secretKeyRef: {name: probe, key: t}}]}}`)
	values := map[catalog.Ref][]byte{
		{Kind: catalog.RefSecret, Name: "callers", Key: "t"}: []byte("callers'"),
		{Kind: catalog.RefSecret, Name: "probe", Key: "t"}:   []byte("probe's\n"),
		{Kind: catalog.RefConfigMap, Name: "c", Key: "t"}:    []byte("tenant"),
	}
	want := []mcpprobe.Header{
		{Name: "Authorization", Value: "Bearer probe's", Credential: true},
		{Name: "X-Tenant", Value: "tenant"},
		{Name: "X-Plain", Value: "v"},
	}
	if diff := gocmp.Diff(want, dialing.Gather(w.server, values).Headers); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestIdentity: what a result holds for, and what it does not depend on.
func TestIdentity(t *testing.T) {
	r := &MCPServerReconciler{Tokens: func(string) func() (string, error) { return nil }}
	base := newWorld(t, `{}`)
	base.serving(1)
	identity := func(w *world) string { return r.targets(w.scope())[0].Identity }
	want := identity(base)
	tests := map[string]struct {
		change func(*world)
		same   bool
	}{
		"nothing":      {func(*world) {}, true},
		"replicas":     {func(w *world) { w.spec(`replicas: 3`) }, true},
		"the catalog":  {func(w *world) { w.tool("alpha", `expression: {text: "'new'"}`) }, true},
		"another pod":  {func(w *world) { w.pods[0].UID = "other" }, false},
		"a restart":    {func(w *world) { w.pods[0].Status.ContainerStatuses[0].RestartCount = 1 }, false},
		"a template":   {func(w *world) { w.pods[0].Labels["pod-template-hash"] = "hash2" }, false},
		"the probe":    {func(w *world) { w.spec(`probe: {intervalSeconds: 60}`) }, false},
		"the path":     {func(w *world) { w.spec(`transports: [{type: StreamableHTTP, path: /x}]`) }, false},
		"a credential": {func(w *world) { w.memory.dial.version = "2" }, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, `{}`)
			w.serving(1)
			test.change(w)
			if same := identity(w) == want; same != test.same {
				t.Errorf("same identity: %v, want %v", same, test.same)
			}
		})
	}
}

// TestEraHint: a new operator knows the era of the pods that were there when
// status was proved, and of no others.
func TestEraHint(t *testing.T) {
	w := newWorld(t, ``)
	w.serving(1)
	w.server.Status = w.pass()
	r := &MCPServerReconciler{Tokens: func(string) func() (string, error) { return nil }}
	w.pods[0].CreationTimestamp = w.server.Status.LastProbe.Time
	if got := r.targets(w.scope())[0].Probe.EraHint; got != mcpprobe.EraLegacy && got != mcpprobe.EraModern {
		t.Errorf("era %q of a proved pod", got)
	}
	now := w.server.Status.LastProbe.Time
	for version, want := range map[string]mcpprobe.Era{"2026-07-28": mcpprobe.EraModern, "2025-06-18": mcpprobe.EraLegacy, "": mcpprobe.EraUnknown} {
		w.server.Status.Server.ProtocolVersion = version
		w.pods[0].CreationTimestamp = metav1.NewTime(now.Add(-time.Minute))
		if got := w.scope().eraHint(w.pods[0].CreationTimestamp.Time); got != want {
			t.Errorf("%q: era %q, want %q", version, got, want)
		}
		w.pods[0].CreationTimestamp = metav1.NewTime(now.Add(time.Minute))
		if got := w.scope().eraHint(w.pods[0].CreationTimestamp.Time); got != mcpprobe.EraUnknown {
			t.Errorf("%q, a new pod: era %q", version, got)
		}
	}
}

// TestTargets: who is dialled, where, and under which name.
func TestTargets(t *testing.T) {
	r := &MCPServerReconciler{Tokens: func(audience string) func() (string, error) {
		return func() (string, error) { return "token for " + audience, nil }
	}}
	w := newWorld(t, `{replicas: 2, probe: {host: mcp.example.com}}`)
	w.serving(2)
	w.pods[1].Status.PodIP = "fd00::1"
	starting := w.pod("web-3")
	setReady(starting, false)
	gatedPod := w.pod("web-4")
	gatedPod.Status.Conditions[0].Status = corev1.ConditionFalse // its containers are ready, it is not
	targets := r.targets(w.scope())
	var names []string
	for _, target := range targets {
		names = append(names, target.Name+" "+target.Probe.DialAddress+" "+target.Probe.ReportURL)
	}
	want := []string{
		"web-1 10.0.0.1:8080 http://10.0.0.1:8081/report",
		"web-2 [fd00::1]:8080 http://[fd00::1]:8081/report",
		"web-4 10.0.0.1:8080 http://10.0.0.1:8081/report",
	}
	if diff := gocmp.Diff(want, names); diff != "" {
		t.Errorf("targets (-want +got):\n%s", diff)
	}
	_, set := w.catalog()
	first := targets[0]
	token, _ := first.Probe.ReportToken()
	if first.Probe.URL != "http://web-mcp.ns.svc:8080/mcp" || first.Probe.Host != "mcp.example.com" || first.WantCatalogDigest != set.Digest || token != "token for ns/web" {
		t.Errorf("%+v, token %s", first, token)
	}

	w.spec(`{probe: {via: Service}}`)
	if targets = r.targets(w.scope()); len(targets) != 1 || targets[0].ID != targetService || !targets[0].Shared || targets[0].Probe.DialAddress != "" {
		t.Errorf("by way of the Service: %+v", targets)
	}
	// What was seen by way of the Service is of the pods that took traffic then.
	identities := map[string]bool{targets[0].Identity: true}
	for what, change := range map[string]func(){
		"a pod came":            func() { w.pod("web-5") },
		"a container restarted": func() { w.pods[0].Status.ContainerStatuses[0].RestartCount++ },
		"a pod went":            func() { w.pods = w.pods[1:] },
	} {
		change()
		if targets = r.targets(w.scope()); len(targets) != 1 || identities[targets[0].Identity] {
			t.Errorf("by way of the Service, after %s: old results count: %+v", what, targets)
		}
		identities[targets[0].Identity] = true
	}
	for _, pod := range w.pods {
		setReady(pod, false)
	}
	if targets = r.targets(w.scope()); len(targets) != 0 {
		t.Errorf("by way of the Service, while no pod takes traffic: %+v", targets)
	}
	w.spec(`{replicas: 0}`)
	if targets = r.targets(w.scope()); len(targets) != 0 {
		t.Errorf("at zero: %+v", targets)
	}
	w.spec(externalSpec)
	if targets = r.targets(w.scope()); len(targets) != 1 || targets[0].ID != targetExternal || targets[0].Probe.URL != "https://mcp.example.com/mcp" || targets[0].WantCatalogDigest != "" {
		t.Errorf("external: %+v", targets)
	}
}
