// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientfeatures "k8s.io/client-go/features"
	clientfeaturestesting "k8s.io/client-go/features/testing"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/keys"
	"github.com/espalier-dev/espalier/internal/metricsgate"
	"github.com/espalier-dev/espalier/internal/refusals"
	"github.com/espalier-dev/espalier/internal/rivals"
	"github.com/espalier-dev/espalier/test/apiserver"
)

// audited is the user whose requests the API server logs.
const audited = "audited"

var auditLog string

// auditFlags make the API server log, below folder, what the user audited asks for.
func auditFlags(folder string) ([]apiserver.Flag, error) {
	policy := filepath.Join(folder, "policy.yaml")
	auditLog = filepath.Join(folder, "audit.log")
	text := "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n- {level: Metadata, users: [" + audited + "]}\n"
	return []apiserver.Flag{{Name: "audit-policy-file", Value: policy}, {Name: "audit-log-path", Value: auditLog}}, os.WriteFile(policy, []byte(text), 0o600)
}

// request is one line of the audit log.
type request struct {
	Verb       string `json:"verb"`
	RequestURI string `json:"requestURI"`
	ObjectRef  *struct {
		Resource    string `json:"resource"`
		APIGroup    string `json:"apiGroup"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

// right that the request needed, and whether in the operator's own namespace.
func (r request) right() (right apiserver.Right, own bool) {
	if r.ObjectRef == nil {
		path, _, _ := strings.Cut(r.RequestURI, "?")
		return apiserver.Right{Verb: r.Verb, Resource: path}, false
	}
	resource := r.ObjectRef.Resource
	if r.ObjectRef.Subresource != "" {
		resource += "/" + r.ObjectRef.Subresource
	}
	return apiserver.Right{Verb: r.Verb, Resource: refusals.Resource(resource, r.ObjectRef.APIGroup), Name: r.ObjectRef.Name},
		r.ObjectRef.Namespace == apiserver.OperatorNamespace
}

// discovery is what every user may read: which APIs there are.
func (r request) discovery() bool {
	return r.ObjectRef == nil && (strings.HasPrefix(r.RequestURI, "/api") || strings.HasPrefix(r.RequestURI, "/version"))
}

func requests(t *testing.T) []request {
	t.Helper()
	text, err := os.ReadFile(auditLog)
	must(t, err)
	var out []request
	for line := range strings.Lines(string(text)) {
		var r request
		must(t, json.Unmarshal([]byte(line), &r))
		out = append(out, r)
	}
	return out
}

// unused are rights that no request of the operator's shows in the audit log.
var unused = []apiserver.Right{
	// The admission plugin OwnerReferencesPermissionEnforcement asks for it,
	// not the operator: TestEveryRight takes it away.
	{Verb: "update", Resource: "mcpservers.mcp.espalier.dev/finalizers"},
}

// TestUsesItsRights walks an operator through all that it does, and compares
// what the API server was asked for with what config/rbac grants: nothing is
// refused, and no right is there that nothing needs.
func TestUsesItsRights(t *testing.T) {
	// So that lists are seen as well: an API server may not stream them.
	clientfeaturestesting.SetFeatureDuringTest(t, clientfeatures.WatchListClient, false)
	access := auditedAccess(t)
	ownKeys(t, access)
	leadOnce(t, access)
	readMetrics(t, access)
	liveThrough(t, access)

	granted := map[string][]apiserver.Right{"ClusterRole manager": apiserver.Rights(operatorRules(t))}
	var own rbacv1.Role
	must(t, api.Client.Get(t.Context(), client.ObjectKey{Namespace: apiserver.OperatorNamespace, Name: "manager"}, &own))
	granted["Role manager"] = apiserver.Rights(own.Rules)
	var metrics rbacv1.ClusterRole
	must(t, api.Client.Get(t.Context(), client.ObjectKey{Name: "metrics-auth"}, &metrics))
	granted["ClusterRole metrics-auth"] = apiserver.Rights(metrics.Rules)

	used := map[apiserver.Right]bool{}
	for _, r := range requests(t) {
		right, inOwn := r.right()
		switch {
		case r.ResponseStatus.Code == http.StatusForbidden:
			t.Errorf("the operator asked for %s and was refused: %s", right, r.RequestURI)
		case r.discovery():
		case inOwn:
			used[inOwnNamespace(right)], used[inOwnNamespace(apiserver.Right{Verb: right.Verb, Resource: right.Resource})] = true, true
		default:
			used[right], used[apiserver.Right{Verb: right.Verb, Resource: right.Resource}] = true, true
		}
		if right.Verb == "patch" && r.ResponseStatus.Code == http.StatusCreated {
			// An apply that created needs both.
			used[apiserver.Right{Verb: "create", Resource: right.Resource}] = true
		}
	}
	for role, rights := range granted {
		for _, right := range rights {
			asked := right
			if role == "Role manager" {
				asked = inOwnNamespace(right)
			}
			if !used[asked] && !slices.Contains(unused, right) {
				t.Errorf("%s grants %s, which nothing here uses: take it away, or show here what it is for", role, right)
			}
		}
	}
	if t.Failed() {
		t.Logf("used: %v", used)
	}
}

// inOwnNamespace marks a right that is used in the operator's namespace.
func inOwnNamespace(right apiserver.Right) apiserver.Right {
	right.Resource = "own " + right.Resource
	return right
}

// auditedAccess is that of a user with the operator's roles, and no other.
func auditedAccess(t *testing.T) *rest.Config {
	t.Helper()
	access, err := api.User(audited)
	must(t, err)
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: audited}}
	for _, role := range []string{"manager", "metrics-auth"} {
		must(t, api.Client.Create(t.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: audited + "-" + role}, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		}))
	}
	must(t, api.Client.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: audited, Namespace: apiserver.OperatorNamespace}, Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "manager"},
	}))
	return access
}

// ownKeys makes the operator's keys, and reads them as the next start does.
func ownKeys(t *testing.T, access *rest.Config) {
	t.Helper()
	direct, err := client.New(access, client.Options{Scheme: apiserver.Scheme()})
	must(t, err)
	for range 2 {
		_, err := keys.Load(t.Context(), direct, apiserver.OperatorNamespace)
		must(t, err)
	}
}

// elector is a manager that does nothing but lead, by a Lease in namespace, when
// no rival does. It works on that namespace alone: other tests' are no rivals.
func elector(t *testing.T, access *rest.Config, namespace string) ctrl.Manager {
	t.Helper()
	lock, err := rivals.New(access, namespace, []string{namespace})
	must(t, err)
	mgr, err := ctrl.NewManager(access, ctrl.Options{
		Scheme: apiserver.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0", Logger: logr.Discard(),
		LeaderElection: true, LeaderElectionResourceLockInterface: lock, LeaderElectionReleaseOnCancel: true,
	})
	must(t, err)
	lock.Record(mgr.GetEventRecorderFor(rivals.LeaseName)) //nolint:staticcheck // As the operator does.
	return mgr
}

// leadOnce takes the Lease, says so and gives it back.
func leadOnce(t *testing.T, access *rest.Config) {
	t.Helper()
	mgr := elector(t, access, apiserver.OperatorNamespace)
	ctx, cancel := context.WithTimeout(t.Context(), healed)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	select {
	case <-mgr.Elected():
	case <-ctx.Done():
		t.Fatal("nobody leads")
	}
	cancel()
	must(t, <-ended) // The event that somebody leads is written by then.
}

// readMetrics lets a service account read the operator's metrics.
func readMetrics(t *testing.T, access *rest.Config) {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "prometheus", Namespace: apiserver.OperatorNamespace}}
	must(t, api.Client.Create(t.Context(), account))
	must(t, api.Client.Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "prometheus"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: account.Name, Namespace: account.Namespace}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "metrics-reader"},
	}))
	token := &authenticationv1.TokenRequest{}
	must(t, api.Client.SubResource("token").Create(t.Context(), account, token))
	server := metricsOf(t, access)
	for shown, want := range map[string]int{token.Status.Token: http.StatusOK, "": http.StatusUnauthorized} {
		req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil)
		if shown != "" {
			req.Header.Set("Authorization", "Bearer "+shown)
		}
		answer := httptest.NewRecorder()
		server.ServeHTTP(answer, req)
		if answer.Code != want {
			t.Errorf("metrics with a token of %d bytes: %d, want %d", len(shown), answer.Code, want)
		}
	}
}

// metricsOf is a page behind the filter that the operator's metrics are behind.
func metricsOf(t *testing.T, access *rest.Config) http.Handler {
	t.Helper()
	httpClient, err := rest.HTTPClientFor(access)
	must(t, err)
	filter, err := metricsgate.Filter(access, httpClient)
	must(t, err)
	page, err := filter(logr.Discard(), http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	must(t, err)
	return page
}

// liveThrough is the life of a server, with all that the operator does about it.
func liveThrough(t *testing.T, access *rest.Config) {
	t.Helper()
	w := newIdleWorld(t, access)
	w.secret("s", "k")
	w.server(`{replicas: 3, auth: {serviceAccounts: {audiences: [me]}}, networkPolicy: {ingress: {}}}`)
	w.tool("alpha", withSecret("s", "k"))
	w.apply(`{kind: MCPResource, metadata: {name: r}, spec: {serverRefs: [{name: web}], uri: "docs://r", text: "t"}}
---
{kind: MCPPrompt, metadata: {name: p}, spec: {serverRefs: [{name: web}], messages: [{role: User, content: {type: Text, text: "t"}}]}}`)
	all := map[string]mcpv1.Registration{"alpha": &mcpv1.MCPTool{}, "r": &mcpv1.MCPResource{}, "p": &mcpv1.MCPPrompt{}}
	for name, obj := range all {
		w.registrationBecomes(name, obj, map[string]string{"Accepted": "True Accepted"}) // The catalog that is served has it.
	}
	w.serve()
	for name, obj := range all {
		w.registrationBecomes(name, obj, isServed)
	}
	w.tool("alpha", `expression: {text: "'new'"}`)
	w.eventually(soon, "pokes", func() string {
		for pod, value := range w.pokes() {
			if value == "" {
				return pod + " was not poked"
			}
		}
		return ""
	})
	w.server(`{type: External, external: {url: "https://example.com/mcp"}}`)
	w.becomes(map[string]string{"Available": "True NotApplicable"})
	w.eventually(soon, "children", func() string {
		left := w.remaining()
		if len(left) == 0 {
			return ""
		}
		return fmt.Sprintf("there still are %v", left)
	})
	w.told("Warning ServerNotFronted")
}
