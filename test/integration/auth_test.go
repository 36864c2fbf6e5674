// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/mcpserver"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// sharedServer runs a real shared server with what the operator wrote for web:
// its ConfigMaps as its catalog, and the Secrets that its pods mount as API
// keys in folders of their names.
func (w *world) sharedServer(secrets ...string) *mcpserver.Server {
	w.Helper()
	root := w.TempDir()
	catalog := filepath.Join(root, "catalog")
	must(w.T, os.MkdirAll(catalog, 0o750))
	config, _, err := w.catalog()
	must(w.T, err)
	set, err := serverconfig.Cut(config)
	must(w.T, err)
	must(w.T, os.WriteFile(filepath.Join(catalog, serverconfig.IndexKey), set.Index, 0o600))
	for i, key := range set.Keys {
		must(w.T, os.WriteFile(filepath.Join(catalog, key), set.Parts[i], 0o600))
	}
	for _, name := range secrets {
		folder := filepath.Join(root, "keys", name)
		must(w.T, os.MkdirAll(folder, 0o750))
		for key, value := range get(w, name, &corev1.Secret{}).Data {
			must(w.T, os.WriteFile(filepath.Join(folder, key), value, 0o600))
		}
	}
	server := mcpserver.New(mcpserver.Options{
		CatalogDir: catalog, CredentialsDir: filepath.Join(root, "credentials"), APIKeysDir: filepath.Join(root, "keys"),
		Listen: "127.0.0.1:0", InternalListen: "127.0.0.1:0", ShutdownTimeout: time.Second, Version: "test",
	})
	must(w.T, server.Start())
	w.Cleanup(func() { _ = server.Stop(context.Background()) })
	w.eventually(soon, "the catalog in the server", func() string {
		if ok, why := server.Ready(); !ok {
			return why
		}
		return ""
	})
	return server
}

// probe probes server as the operator wants web's only pod to be probed.
func (w *world) probe(server *mcpserver.Server) *mcpprobe.Report {
	w.Helper()
	target := w.targeted(1)[0].Probe
	target.DialAddress = server.Addr().String()
	_, port, err := net.SplitHostPort(server.InternalAddr().String())
	must(w.T, err)
	target.ReportURL = "http://127.0.0.1:" + port + target.ReportURL[strings.LastIndex(target.ReportURL, "/"):]
	report := mcpprobe.New(mcpprobe.Options{Policy: mcpprobe.Policy{AllowLoopback: true}, Version: "test"}).Probe(w.ctx, target)
	return &report
}

// status of a tools/list by who shows token.
func (w *world) listStatus(server *mcpserver.Server, token string) int {
	w.Helper()
	request, err := http.NewRequestWithContext(w.ctx, http.MethodPost, "http://"+server.Addr().String()+"/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
	must(w.T, err)
	request.Header.Set("Content-Type", "application/json")
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := http.DefaultClient.Do(request)
	must(w.T, err)
	must(w.T, response.Body.Close())
	return response.StatusCode
}

// TestAPIKeys: a server that lets in nobody but the owners of keys becomes
// Ready by the probe's own token, and a probe without it would not do.
func TestAPIKeys(t *testing.T) {
	w := newWorld(t)
	w.server(`{auth: {apiKeys: {secretRef: {name: clients}}}, accessDefault: Deny, access: [{tools: [alpha], when: "principal.subject == 'ci'"}]}`)
	w.tool("alpha", `expression: {text: "'a'"}`)
	w.tool("beta", `expression: {text: "'b'"}`)
	w.becomes(map[string]string{"ResolvedRefs": "False SecretNotFound"})
	w.secretOf("clients", map[string]string{"ci": "key-of-ci"})
	w.becomes(map[string]string{"ResolvedRefs": "True ResolvedRefs", "Accepted": "True Accepted"})
	w.rollOut()

	server := w.sharedServer("clients")
	for token, want := range map[string]int{"": 401, "other": 401, "key-of-ci": 200} {
		if got := w.listStatus(server, token); got != want {
			t.Errorf("%q is answered %d, want %d", token, got, want)
		}
	}
	report := w.probe(server)
	if report.Outcome != mcpprobe.Proved || len(report.Tools.Tools) != 2 || report.Pod == nil {
		t.Fatalf("the probe ended with %s at %s, %d tools, report %v", report.Outcome, report.Step, len(report.Tools.Tools), report.Pod)
	}
	w.prove(report)
	w.becomes(map[string]string{"Ready": "True Proved", "Synced": "True Synced", "Healthy": "True Proved"})

	spec, _ := w.prober.spec(w.key("web"))
	spec.Targets[0].Probe.BearerToken = nil
	spec.Targets[0].Probe.DialAddress = server.Addr().String()
	bare := mcpprobe.New(mcpprobe.Options{Policy: mcpprobe.Policy{AllowLoopback: true}}).Probe(w.ctx, spec.Targets[0].Probe)
	if bare.Outcome != mcpprobe.AuthRequired {
		t.Errorf("without its token the probe ends with %s", bare.Outcome)
	}
}

// TestServiceAccounts: a token that this API server made is good at a server
// whose config the operator wrote, for its audience and subject only.
func TestServiceAccounts(t *testing.T) {
	w := newWorld(t)
	w.server(`{auth: {serviceAccounts: {audiences: [mcp], subjects: ["system:serviceaccount:` + w.namespace + `:agent"]}}}`)
	w.tool("alpha", `expression: {text: "principal.subject"}`)
	w.becomes(map[string]string{"ResolvedRefs": "True ResolvedRefs"})
	w.rollOut()
	server := w.sharedServer()
	token := func(account, audience string) string {
		sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account, Namespace: w.namespace}}
		if !w.exists(account, &corev1.ServiceAccount{}) {
			must(t, api.Client.Create(w.ctx, sa))
		}
		request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{audience}}}
		must(t, api.Client.SubResource("token").Create(w.ctx, sa, request))
		return request.Status.Token
	}
	for name, test := range map[string]struct {
		token string
		want  int
	}{
		"the agent":            {token("agent", "mcp"), 200},
		"another account":      {token("other", "mcp"), 403},
		"the API server's own": {token("agent", "https://kubernetes.default.svc"), 401},
		"nobody":               {"", 401},
	} {
		if got := w.listStatus(server, test.token); got != test.want {
			t.Errorf("%s is answered %d, want %d", name, got, test.want)
		}
	}
	if report := w.probe(server); report.Outcome != mcpprobe.Proved {
		t.Errorf("the probe ended with %s at %s", report.Outcome, report.Step)
	}
}

// TestForbiddenClusterKeys: an operator that may not read the cluster's keys
// says so; the server runs and accepts no service account.
func TestForbiddenClusterKeys(t *testing.T) {
	r, access := newRole(t)
	var rules []rbacv1.PolicyRule
	for _, rule := range r.full {
		if len(rule.NonResourceURLs) == 0 {
			rules = append(rules, rule)
		}
	}
	r.set(t, rules)
	w := newWorldAs(t, access)
	w.server(`{auth: {serviceAccounts: {audiences: [mcp]}}}`)
	w.tool("alpha", `expression: {text: "'a'"}`)
	w.becomes(map[string]string{"ResolvedRefs": "False ClusterKeysUnavailable"})
	if m := meta.FindStatusCondition(w.web().Status.Conditions, "ResolvedRefs").Message; !strings.Contains(m, "may not get /.well-known/openid-configuration") {
		t.Errorf("it is told as %q", m)
	}
	config, _, err := w.catalog()
	must(t, err)
	if config.Auth.ServiceAccounts.JWKS != nil {
		t.Error("there are keys")
	}
	w.rollOut()
	w.serve()
	must(t, client.IgnoreNotFound(api.Client.Delete(w.ctx, r.ClusterRole)))
}
