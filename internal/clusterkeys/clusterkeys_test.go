// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterkeys

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	testclock "k8s.io/utils/clock/testing"

	"github.com/espalier-dev/espalier/internal/jwks"
)

// api is an API server's documents.
type api struct {
	documents map[string]string
	err       error
	asked     int
}

func (a *api) get(_ context.Context, path string) ([]byte, error) {
	a.asked++
	if a.err != nil {
		return nil, a.err
	}
	document, ok := a.documents[path]
	if !ok {
		return nil, apierrors.NewNotFound(schema.GroupResource{}, path)
	}
	return []byte(document), nil
}

func keySet(t *testing.T, ids ...string) string {
	t.Helper()
	var set jose.JSONWebKeySet
	for _, id := range ids {
		public, _, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: public, KeyID: id})
	}
	raw, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestCurrent(t *testing.T) {
	a := &api{documents: map[string]string{PathDiscovery: `{"issuer":"https://kubernetes.default.svc"}`, PathKeys: keySet(t, "a", "b")}}
	clock := testclock.NewFakePassiveClock(time.Now())
	r := newReader(a.get, clock)
	first, err := r.Current(t.Context())
	if err != nil || first.Issuer != "https://kubernetes.default.svc" || first.Why != "" || a.asked != 2 {
		t.Fatalf("%+v, %v, %d requests", first, err, a.asked)
	}
	if _, err := r.Current(t.Context()); err != nil || a.asked != 2 {
		t.Errorf("asked again at once: %d requests, %v", a.asked, err)
	}

	// It does not answer: what is known stays.
	clock.SetTime(clock.Now().Add(Refresh))
	a.err = errors.New("connection refused")
	if again, err := r.Current(t.Context()); err != nil || string(again.JWKS) != string(first.JWKS) {
		t.Errorf("%+v, %v", again, err)
	}
	a.err = nil

	a.documents[PathKeys] = keySet(t, "c")
	clock.SetTime(clock.Now().Add(Refresh))
	if next, err := r.Current(t.Context()); err != nil || !strings.Contains(string(next.JWKS), `"kid":"c"`) {
		t.Errorf("after a rotation: %+v, %v", next, err)
	}
}

func TestUnavailable(t *testing.T) {
	discovery := `{"issuer":"https://k"}`
	tests := map[string]struct {
		api api
		why string
	}{
		"forbidden": {api{err: apierrors.NewForbidden(schema.GroupResource{}, "", nil)}, "may not get " + PathDiscovery},
		"none":      {api{}, "has no " + PathDiscovery},
		"no keys":   {api{documents: map[string]string{PathDiscovery: discovery}}, "has no " + PathKeys},
		"no issuer": {api{documents: map[string]string{PathDiscovery: `{}`}}, "no issuer"},
		"empty set": {api{documents: map[string]string{PathDiscovery: discovery, PathKeys: `{"keys":[]}`}}, "no usable key"},
	}
	for name, test := range tests {
		keys, err := newReader(test.api.get, testclock.NewFakePassiveClock(time.Now())).Current(t.Context())
		if err != nil || !strings.Contains(keys.Why, test.why) || keys.JWKS != nil {
			t.Errorf("%s: %+v, %v", name, keys, err)
		}
	}
	down := api{err: errors.New("connection refused")}
	if _, err := newReader(down.get, testclock.NewFakePassiveClock(time.Now())).Current(t.Context()); err == nil {
		t.Error("nothing is known, and that is no error")
	}
}

// TestCanonical: replicas of the API server that write one set differently
// give one catalog.
func TestCanonical(t *testing.T) {
	var set struct{ Keys []map[string]any }
	raw := keySet(t, "a", "b")
	if err := json.Unmarshal([]byte(raw), &set); err != nil {
		t.Fatal(err)
	}
	set.Keys[0], set.Keys[1] = set.Keys[1], set.Keys[0]
	other, err := json.MarshalIndent(map[string]any{"keys": set.Keys}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	one, ok1 := jwks.Canonical([]byte(raw))
	two, ok2 := jwks.Canonical(other)
	if !ok1 || !ok2 || string(one) != string(two) {
		t.Errorf("%s\n%s", one, two)
	}
}
