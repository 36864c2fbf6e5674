// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/prober"
)

// secretValue must never be seen anywhere but in a Secret and on the wire.
const secretValue = "s3cr3t-value"

// secret makes a Secret with these keys, or replaces it.
func (w *world) secret(name string, keys ...string) {
	w.Helper()
	data := map[string]string{}
	for _, key := range keys {
		data[key] = secretValue
	}
	w.secretOf(name, data)
}

func (w *world) secretOf(name string, data map[string]string) {
	w.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.namespace}, StringData: data}
	if w.exists(name, &corev1.Secret{}) {
		present := get(w, name, &corev1.Secret{})
		present.Data, present.StringData = nil, data
		must(w.T, api.Client.Update(w.ctx, present))
		return
	}
	must(w.T, api.Client.Create(w.ctx, secret))
}

func (w *world) generation() int64 {
	w.Helper()
	return get(w, "web-mcp", &appsv1.Deployment{}).Generation
}

// withSecret is a tool that names a key of a Secret.
func withSecret(name, key string) string {
	return fmt.Sprintf(`http: {method: GET, url: "http://api", headers: [{name: A, secretKeyRef: {name: %s, key: %s}}]}`, name, key)
}

// TestRolloutForCredentials: the first tool that names a Secret rolls the pods
// once and says so; a second with that key does not, nor does deleting both.
func TestRolloutForCredentials(t *testing.T) {
	w := newWorld(t)
	twoTools(w)
	w.secret("s", "k")
	w.serve()
	w.toolBecomes("alpha", isServed)
	w.rest()
	before := w.generation()

	w.tool("one", withSecret("s", "k"))
	w.toolBecomes("one", map[string]string{"Accepted": "True Accepted", "ResolvedRefs": "True ResolvedRefs", "Served": "False RolloutForCredentials"})
	w.becomes(map[string]string{"Ready": "True Proved", "Synced": "False RolloutForCredentials", "Reconciling": "True RolloutForCredentials"})
	w.toolBecomes("alpha", isServed)
	if rolled := w.generation() - before; rolled != 1 {
		t.Fatalf("rolled out %d times", rolled)
	}
	w.serve()
	w.toolBecomes("one", isServed)
	w.rest()

	w.tool("two", withSecret("s", "k"))
	w.toolBecomes("two", map[string]string{"Served": "False CatalogPending"})
	w.prove(w.report())
	w.toolBecomes("two", isServed)
	for _, name := range []string{"one", "two"} {
		must(t, api.Client.Delete(w.ctx, get(w, name, &mcpv1.MCPTool{})))
	}
	w.eventually(soon, "the catalog without them", func() string {
		config, _, err := w.catalog()
		if err != nil || len(config.Tools) != 2 {
			return fmt.Sprint(len(config.Tools), err)
		}
		return ""
	})
	w.prove(w.report())
	w.becomes(map[string]string{"Ready": "True Proved", "Synced": "True Synced"})
	w.rest()
	if rolled := w.generation() - before; rolled != 1 {
		t.Errorf("rolled out %d times in all", rolled)
	}
	volumes := get(w, "web-mcp", &appsv1.Deployment{}).Spec.Template.Spec.Volumes
	if got := fmt.Sprint(volumes); !strings.Contains(got, "secrets/s/k") {
		t.Errorf("the mount was taken away before the next rollout: %s", got)
	}
}

// TestMissingSecretOfATool harms that tool alone; it heals when the key comes
// (A06). The pods are poked when it does.
func TestMissingSecretOfATool(t *testing.T) {
	w := newWorld(t)
	twoTools(w)
	w.tool("late", withSecret("late", "token"))
	w.serve()
	w.becomes(map[string]string{"Ready": "True Proved", "ResolvedRefs": "False SecretNotFound", "Reconciling": "-", "Stalled": "-"})
	w.toolBecomes("late", map[string]string{"Accepted": "True Accepted", "ResolvedRefs": "False SecretNotFound", "Stalled": "-"})
	w.toolBecomes("alpha", isServed)
	w.told("Warning SecretNotFound MCPServer/web")
	w.secret("late", "other")
	w.toolBecomes("late", map[string]string{"ResolvedRefs": "False SecretKeyNotFound"})
	w.rest()
	generation, before := w.generation(), len(w.writes.all())
	w.secret("late", "other", "token")
	w.toolBecomes("late", isServed)
	w.becomes(map[string]string{"Ready": "True Proved", "ResolvedRefs": "True ResolvedRefs"})
	w.eventually(soon, "pokes", func() string {
		if n := len(w.writes.since(before, "patch status v1.Pod")); n != 3 {
			return fmt.Sprintf("%d pokes", n)
		}
		return ""
	})
	must(t, api.Client.Delete(w.ctx, get(w, "late", &corev1.Secret{})))
	w.becomes(map[string]string{"Ready": "True Proved", "ResolvedRefs": "False SecretNotFound"})
	w.rest()
	if w.generation() != generation {
		t.Error("a Secret that came and went rolled the pods")
	}
}

// TestMissingSecretOfTheEnvironment: status names it and waits; the value's
// arrival and change roll the pods, its deletion leaves them (A06, C11).
func TestMissingSecretOfTheEnvironment(t *testing.T) {
	w := newWorld(t)
	w.server(`{startupTimeoutSeconds: 10, workload: {env: [{name: T, valueFrom: {secretKeyRef: {name: late, key: token}}},
	  {name: O, valueFrom: {configMapKeyRef: {name: never, key: x, optional: true}}}]}}`)
	waits := map[string]string{"Ready": "False SecretNotFound", "Reconciling": "True SecretNotFound", "ResolvedRefs": "False SecretNotFound", "Stalled": "-"}
	w.becomes(waits)
	w.clock.forward(11 * 60e9)
	w.pass()
	w.becomes(waits)
	w.secret("late", "wrong")
	w.becomes(map[string]string{"Ready": "False SecretKeyNotFound", "Reconciling": "True SecretKeyNotFound"})
	w.secret("late", "wrong", "token")
	w.becomes(map[string]string{"ResolvedRefs": "True ResolvedRefs"})
	w.rest()
	w.serve()
	w.rest()
	generation := w.generation()

	w.secretOf("late", map[string]string{"wrong": "other", "token": secretValue})
	must(t, api.Client.Delete(w.ctx, get(w, "late", &corev1.Secret{})))
	w.becomes(map[string]string{"Ready": "True Proved", "ResolvedRefs": "False SecretNotFound"})
	w.rest()
	if w.generation() != generation {
		t.Error("a Secret that was deleted under running pods replaced them")
	}
	w.secretOf("late", map[string]string{"token": "rotated"})
	w.becomes(map[string]string{"ResolvedRefs": "True ResolvedRefs"})
	w.eventually(soon, "one rollout for the new value", func() string {
		if now := w.generation(); now != generation+1 {
			return fmt.Sprintf("generation %d, was %d", now, generation)
		}
		return ""
	})
	w.serve()
}

// TestExternal: the credential reaches the probe's target and nothing else.
func TestExternal(t *testing.T) {
	w := newWorld(t)
	w.server(`{type: External, external: {url: "https://mcp.example.com/mcp?key=` + secretValue + `", headers: [
	  {name: Authorization, prefix: "Bearer ", secretKeyRef: {name: vendor, key: token}}]}}`)
	w.tool("alpha", `expression: {text: "''"}`)
	w.becomes(map[string]string{"ResolvedRefs": "False SecretNotFound", "Available": "True NotApplicable"})
	w.toolBecomes("alpha", map[string]string{"Accepted": "False ServerNotFronted", "Served": "False NotAccepted"})
	w.secret("vendor", "token")
	w.becomes(map[string]string{"ResolvedRefs": "True ResolvedRefs"})
	w.eventually(soon, "the header", func() string {
		headers := w.targeted(1)[0].Probe.Headers
		if len(headers) == 1 && headers[0].Value == "Bearer "+secretValue && headers[0].Credential {
			return ""
		}
		return fmt.Sprintf("%d headers", len(headers))
	})
	w.prove(w.listing([]byte(`{"name":"theirs"}`)))
	w.becomes(map[string]string{"Ready": "True Proved", "Synced": "True NotApplicable"})
	status := w.web().Status
	if status.URL != "https://mcp.example.com/mcp" || status.Replicas != nil || *status.ToolCount != 1 || status.Tools[0].Name != "theirs" {
		t.Errorf("status %+v", status)
	}
	// A rotated value is another identity: what was proved before is no proof,
	// and Ready holds until the next result.
	identity := w.targeted(1)[0].Identity
	w.secretOf("vendor", map[string]string{"token": secretValue + "-2"})
	w.eventually(soon, "another identity", func() string {
		target := w.targeted(1)[0]
		if target.Identity != identity && target.Probe.Headers[0].Value == "Bearer "+secretValue+"-2" {
			return ""
		}
		return "it is the same"
	})
	w.becomes(map[string]string{"Ready": "True Proved"})
	for what, text := range map[string]string{
		"status": fmt.Sprintf("%+v", w.web().Status), "events": strings.Join(w.events(), "\n"), "log": w.log.String(),
	} {
		if strings.Contains(text, secretValue) {
			t.Errorf("the credential is in the %s: %s", what, text)
		}
	}
}

// TestExternalTokens: the probe is given the client of external.auth, and its
// secret stands nowhere else.
func TestExternalTokens(t *testing.T) {
	w := newWorld(t)
	w.server(`{type: External, external: {url: "https://mcp.example.com/mcp", auth: {oauthClientCredentials: {
	  tokenURL: "https://mcp.example.com/token", clientID: espalier, clientSecretRef: {name: vendor, key: token}, scopes: [list]}},
	  tls: {serverName: inner}}}`)
	w.becomes(map[string]string{"ResolvedRefs": "False SecretNotFound"})
	if target := w.targeted(1)[0].Probe; target.OAuth != nil {
		t.Error("the probe has a client without a secret")
	}
	w.secret("vendor", "token")
	w.becomes(map[string]string{"ResolvedRefs": "True ResolvedRefs"})
	w.eventually(soon, "the client", func() string {
		want := &mcpprobe.OAuth{
			TokenURL: "https://mcp.example.com/token", ClientID: "espalier", Secret: secretValue, Scopes: []string{"list"},
			TLS: mcpprobe.TLS{ServerName: "inner"}, // Of one origin with the server.
		}
		return cmp.Diff(want, w.targeted(1)[0].Probe.OAuth)
	})
	w.judge(prober.Failing, &mcpprobe.Report{Outcome: mcpprobe.TokenFailed, Step: mcpprobe.StepToken, HTTPStatus: 401})
	w.becomes(map[string]string{"Healthy": "False TokenFailed"})
	w.prove(w.listing([]byte(`{"name":"theirs"}`)))
	w.becomes(map[string]string{"Ready": "True Proved"})
	identity := w.targeted(1)[0].Identity
	w.secretOf("vendor", map[string]string{"token": secretValue + "-2"})
	w.eventually(soon, "the rotated secret", func() string {
		if target := w.targeted(1)[0]; target.Identity == identity || target.Probe.OAuth.Secret != secretValue+"-2" {
			return "it is the same"
		}
		return ""
	})
	for what, text := range map[string]string{
		"status": fmt.Sprintf("%+v", w.web().Status), "events": strings.Join(w.events(), "\n"), "log": w.log.String(),
	} {
		if strings.Contains(text, secretValue) {
			t.Errorf("the secret is in the %s: %s", what, text)
		}
	}
}
