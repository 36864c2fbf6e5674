// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/keys"
	"github.com/espalier-dev/espalier/internal/refusals"
	"github.com/espalier-dev/espalier/test/apiserver"
)

// home is a namespace that an operator lives in, and what it may do there.
type home struct {
	*world
	role   *rbacv1.Role
	full   []rbacv1.PolicyRule
	access *rest.Config
}

func newHome(t *testing.T) *home {
	t.Helper()
	t.Parallel()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "home-"}}
	must(t, api.Client.Create(t.Context(), namespace))
	h := &home{role: &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "manager", Namespace: namespace.Name}, Rules: homeRules(t)}}
	h.full = h.role.Rules
	must(t, api.Client.Create(t.Context(), h.role))
	must(t, api.Client.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "manager", Namespace: namespace.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "manager"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: namespace.Name}},
	}))
	h.world = watchedWorld(t, namespace.Name, namespace.Name)
	h.access = h.world.access
	return h
}

// watchedWorld is one without controllers, whose access is user's.
func watchedWorld(t *testing.T, namespace, user string) *world {
	t.Helper()
	w := &world{T: t, ctx: t.Context(), namespace: namespace, access: rest.CopyConfig(api.Config)}
	w.operator = &operator{metrics: prometheus.NewRegistry()}
	w.rights = refusals.New(w.metrics, logr.Discard())
	w.access.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	w.rights.Wrap(w.access)
	return w
}

// homeRules are those of the operator's Role.
func homeRules(t *testing.T) []rbacv1.PolicyRule {
	t.Helper()
	var original rbacv1.Role
	must(t, api.Client.Get(t.Context(), client.ObjectKey{Namespace: apiserver.OperatorNamespace, Name: "manager"}, &original))
	return original.Rules
}

func (h *home) set(rules []rbacv1.PolicyRule) {
	h.Helper()
	h.role.Rules = rules
	must(h.T, api.Client.Update(h.ctx, h.role))
}

// TestEveryRightAtHome takes away each right that the operator has in its own
// namespace. There is no object to tell it on: the log, an end with a message,
// and espalier_api_refusals_total do.
func TestEveryRightAtHome(t *testing.T) {
	const keysName, lease = keys.SecretName, "espalier-manager"
	known := map[apiserver.Right]func(*testing.T, apiserver.Right){
		{Verb: "create", Resource: "secrets"}:                                 withoutKeys,
		{Verb: "get", Resource: "secrets", Name: keysName}:                    withoutKeys,
		{Verb: "create", Resource: "leases.coordination.k8s.io"}:              withoutLease,
		{Verb: "get", Resource: "leases.coordination.k8s.io", Name: lease}:    withoutLease,
		{Verb: "update", Resource: "leases.coordination.k8s.io", Name: lease}: withoutLease,
		{Verb: "create", Resource: "events"}:                                  withoutLeaderEvents,
	}
	for _, right := range apiserver.Rights(homeRules(t)) {
		try := known[right]
		if try == nil {
			t.Errorf("nothing shows what happens when the operator may not %s", right)
			continue
		}
		delete(known, right)
		t.Run(right.String(), func(t *testing.T) { try(t, right) })
	}
	for right := range known {
		t.Errorf("the operator has no right to %s any more", right)
	}
}

// withoutKeys: the operator does not start, and says what it may not do. Its
// next start does.
func withoutKeys(t *testing.T, lacking apiserver.Right) {
	h := newHome(t)
	h.set(apiserver.Without(h.full, lacking))
	direct, err := client.New(h.access, client.Options{Scheme: apiserver.Scheme()})
	must(t, err)
	want := `cannot ` + lacking.Verb + ` resource "secrets"`
	if _, err := keys.Load(h.ctx, direct, h.namespace); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the keys: %v, want: %s", err, want)
	}
	h.refusedOf(lacking)
	h.set(h.full)
	_, err = keys.Load(h.ctx, direct, h.namespace)
	must(t, err)
}

// lead starts to run for leader, and gives what tells that it was elected.
func (h *home) lead() <-chan struct{} {
	h.Helper()
	mgr := elector(h.T, h.access, h.namespace)
	ctx, cancel := context.WithCancel(h.ctx)
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	h.Cleanup(func() {
		cancel()
		must(h.T, <-ended)
	})
	return mgr.Elected()
}

// withoutLease: nobody leads while it lacks; then somebody does.
func withoutLease(t *testing.T, lacking apiserver.Right) {
	h := newHome(t)
	h.set(apiserver.Without(h.full, lacking))
	if lacking.Verb == "update" {
		// One that was given back: there is nothing to create.
		must(t, api.Client.Create(h.ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: lacking.Name, Namespace: h.namespace}}))
	}
	elected := h.lead()
	h.refusedOf(lacking)
	select {
	case <-elected:
		t.Error("it leads without the right to " + lacking.String())
	default:
	}
	h.set(h.full)
	select {
	case <-elected:
	case <-time.After(healed):
		t.Error("nobody leads although the right was given back")
	}
}

// withoutLeaderEvents: it leads, and no event says so.
func withoutLeaderEvents(t *testing.T, lacking apiserver.Right) {
	h := newHome(t)
	h.set(apiserver.Without(h.full, lacking))
	elected := h.lead()
	select {
	case <-elected:
	case <-time.After(healed):
		t.Fatal("it does not lead")
	}
	h.refusedOf(lacking)
}

// TestForbiddenReviews: without the right to ask who calls nobody reads the
// metrics; the same operator answers when it may ask.
func TestForbiddenReviews(t *testing.T) {
	var reviews rbacv1.ClusterRole
	must(t, api.Client.Get(t.Context(), client.ObjectKey{Name: "metrics-auth"}, &reviews))
	for _, lacking := range apiserver.Rights(reviews.Rules) {
		t.Run(lacking.String(), func(t *testing.T) {
			t.Parallel()
			r := &role{&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: "reviews-"}, Rules: apiserver.Without(reviews.Rules, lacking)}, reviews.Rules}
			must(t, api.Client.Create(t.Context(), r.ClusterRole))
			must(t, api.Client.Create(t.Context(), r.boundTo(r.Name)))
			account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: r.Name, Namespace: "default"}}
			must(t, api.Client.Create(t.Context(), account))
			must(t, api.Client.Create(t.Context(), &rbacv1.ClusterRoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: r.Name + "-reader"},
				Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: account.Name, Namespace: account.Namespace}},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "metrics-reader"},
			}))
			token := &authenticationv1.TokenRequest{}
			must(t, api.Client.SubResource("token").Create(t.Context(), account, token))
			w := watchedWorld(t, "default", r.Name)
			page := metricsOf(t, w.access)
			scrape := func() int {
				req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil)
				req.Header.Set("Authorization", "Bearer "+token.Status.Token)
				answer := httptest.NewRecorder()
				page.ServeHTTP(answer, req)
				return answer.Code
			}
			if code := scrape(); code == http.StatusOK {
				t.Error("metrics are given to somebody unknown")
			}
			w.refusedOf(lacking)
			r.give(t)
			w.eventually(healed, "metrics", func() string {
				if code := scrape(); code != http.StatusOK {
					return http.StatusText(code)
				}
				return ""
			})
		})
	}
}
