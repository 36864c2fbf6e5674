// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/espalier-dev/espalier/internal/metricsgate"
)

// TestMetricsGate: the operator's own rights are enough to ask whose a token
// is, and only whom the role metrics-reader is bound to scrapes.
func TestMetricsGate(t *testing.T) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "scrape-"}}
	if err := server.Client.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	token := func(name string) string {
		t.Helper()
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace.Name}}
		if err := server.Client.Create(t.Context(), account); err != nil {
			t.Fatal(err)
		}
		request := &authenticationv1.TokenRequest{}
		if err := server.Client.SubResource("token").Create(t.Context(), account, request); err != nil {
			t.Fatal(err)
		}
		return request.Status.Token
	}
	prometheus, stranger := token("prometheus"), token("stranger")
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: namespace.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "metrics-reader"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: "prometheus", Namespace: namespace.Name}},
	}
	if err := server.Client.Create(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	config := server.Operator()
	access, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	filter, err := metricsgate.Filter(config, access)
	if err != nil {
		t.Fatal(err)
	}
	handler, err := filter(logr.Discard(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		who, method, token string
		want               int
	}{
		{"nobody", http.MethodGet, "", http.StatusUnauthorized},
		{"who shows no token of the cluster", http.MethodGet, prometheus[:len(prometheus)-8], http.StatusUnauthorized},
		{"who may not", http.MethodGet, stranger, http.StatusForbidden},
		{"who may get but not post", http.MethodPost, prometheus, http.StatusForbidden},
		{"who may", http.MethodGet, prometheus, http.StatusTeapot},
	} {
		r := httptest.NewRequest(tt.method, "/metrics", nil)
		if tt.token != "" {
			r.Header.Set("Authorization", "Bearer "+tt.token)
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code != tt.want {
			t.Errorf("%s gets %d, want %d", tt.who, w.Code, tt.want)
		}
	}
}
