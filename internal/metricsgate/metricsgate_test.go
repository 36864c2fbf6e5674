// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package metricsgate

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"
)

// apiServer knows the tokens "good" and "other"; the first may get /metrics.
type apiServer struct {
	asked int
	down  error
}

func (a *apiServer) whose(_ context.Context, r *authenticationv1.TokenReview) (*authenticationv1.TokenReview, error) {
	a.asked++
	r.Status.Authenticated = r.Spec.Token == "good" || r.Spec.Token == "other"
	r.Status.User = authenticationv1.UserInfo{Username: r.Spec.Token, UID: "uid", Groups: []string{"g"}, Extra: map[string]authenticationv1.ExtraValue{"k": {"v"}}}
	return r, a.down
}

func (a *apiServer) may(_ context.Context, r *authorizationv1.SubjectAccessReview) (*authorizationv1.SubjectAccessReview, error) {
	at := r.Spec.NonResourceAttributes
	r.Status.Allowed = r.Spec.User == "good" && r.Spec.UID == "uid" && r.Spec.Groups[0] == "g" && r.Spec.Extra["k"][0] == "v" &&
		at.Verb == "get" && at.Path == "/metrics"
	return r, a.down
}

func TestGate(t *testing.T) {
	now := time.Now()
	api := &apiServer{}
	g := &gate{now: func() time.Time { return now }, known: map[[32]byte]verdict{}, whose: api.whose, may: api.may}
	handler, err := g.filter(logr.Discard(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("metrics")) }))
	if err != nil {
		t.Fatal(err)
	}
	scrape := func(method, path, authorization string) int {
		r := httptest.NewRequest(method, path, nil)
		if authorization != "" {
			r.Header.Set("Authorization", authorization)
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if (w.Code == http.StatusOK) != (w.Body.String() == "metrics") {
			t.Errorf("%d with %q", w.Code, w.Body)
		}
		return w.Code
	}
	for _, tt := range []struct {
		method, path, authorization string
		want                        int
		// asked is how often the API server was asked by then.
		asked int
	}{
		{"GET", "/metrics", "", 401, 0},
		{"GET", "/metrics", "Bearer ", 401, 0},
		{"GET", "/metrics", "Basic good", 401, 0},
		{"GET", "/metrics", "Bearer " + strings.Repeat("x", maxToken+1), 401, 0},
		{"GET", "/metrics", "Bearer good", 200, 1},
		{"GET", "/metrics", "bearer good", 200, 1},
		{"POST", "/metrics", "Bearer good", 403, 2},
		{"GET", "/debug", "Bearer good", 403, 3},
		{"GET", "/metrics", "Bearer other", 403, 4},
		{"GET", "/metrics", "Bearer bad", 401, 5},
		{"GET", "/metrics", "Bearer bad", 401, 5},
	} {
		if got := scrape(tt.method, tt.path, tt.authorization); got != tt.want || api.asked != tt.asked {
			t.Errorf("%s %s %.20s: %d after %d questions, want %d after %d", tt.method, tt.path, tt.authorization, got, api.asked, tt.want, tt.asked)
		}
	}
	t.Run("a no holds for a short while", func(t *testing.T) {
		now = now.Add(refuseFor)
		if scrape("GET", "/metrics", "Bearer good") != 200 || api.asked != 5 || scrape("GET", "/metrics", "Bearer bad") != 401 || api.asked != 6 {
			t.Errorf("%d questions", api.asked)
		}
	})
	t.Run("a yes not for ever", func(t *testing.T) {
		now = now.Add(allowFor)
		if scrape("GET", "/metrics", "Bearer good") != 200 || api.asked != 7 {
			t.Errorf("%d questions", api.asked)
		}
	})
	t.Run("what cannot be found out lets nobody in, and is not kept", func(t *testing.T) {
		now, api.down = now.Add(allowFor), errors.New("down")
		if scrape("GET", "/metrics", "Bearer good") != 500 {
			t.Error("somebody came in")
		}
		api.down = nil
		if scrape("GET", "/metrics", "Bearer good") != 200 {
			t.Error("who may come in did not")
		}
	})
	t.Run("what is known is bounded", func(t *testing.T) {
		for i := range 3 * maxKnown {
			scrape("GET", "/metrics", fmt.Sprintf("Bearer %d", i))
		}
		if len(g.known) > maxKnown {
			t.Errorf("%d verdicts", len(g.known))
		}
	})
}

// TestFilter asks a server in the API's own words.
func TestFilter(t *testing.T) {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/apis/authentication.k8s.io/v1/tokenreviews":
			fmt.Fprint(w, `{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","status":{"authenticated":true,"user":{"username":"u"}}}`)
		case "/apis/authorization.k8s.io/v1/subjectaccessreviews":
			fmt.Fprint(w, `{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","status":{"allowed":true}}`)
		default:
			t.Errorf("asked for %s", r.URL.Path)
		}
	}))
	defer api.Close()
	filter, err := Filter(&rest.Config{Host: api.URL}, api.Client())
	if err != nil {
		t.Fatal(err)
	}
	handler, err := filter(logr.Discard(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	r.Header.Set("Authorization", "Bearer t")
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	if w.Code != http.StatusTeapot {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}
