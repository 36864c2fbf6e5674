// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package importing

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// A registry is asked for the configuration of an image, and for no layer.
func TestInspect(t *testing.T) {
	var mu sync.Mutex
	var asked []string
	backend := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked = append(asked, r.Method+" "+r.URL.Path)
		mu.Unlock()
		backend.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	image := strings.TrimPrefix(server.URL, "http://") + "/example/notes:1"
	reference, err := name.ParseReference(image)
	if err != nil {
		t.Fatal(err)
	}
	built, err := mutate.Config(empty.Image, v1.Config{Entrypoint: []string{"/notes"}, Cmd: []string{"serve"}, User: "1000"})
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(reference, built); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	asked = nil
	mu.Unlock()
	got, err := inspect(t.Context(), image)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&start{Entrypoint: []string{"/notes"}, Cmd: []string{"serve"}, User: "1000"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	mu.Lock()
	requests := slices.Clone(asked)
	mu.Unlock()
	for _, request := range requests {
		if !strings.HasPrefix(request, "GET ") {
			t.Errorf("it asks %s", request)
		}
	}
	for _, unknown := range []string{strings.Replace(image, "notes", "none", 1), "Not An Image", ""} {
		if got, err := inspect(t.Context(), unknown); err == nil {
			t.Errorf("%q is %v", unknown, got)
		}
	}
}
