// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package charttest

import (
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/registry"
)

// TestPushed: what "make helm-push" pushes is what Helm installs from the
// registry, with the images of the release.
func TestPushed(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	address := "oci://" + strings.TrimPrefix(server.URL, "http://") + "/espalier/charts"
	run := func(script string) string {
		t.Helper()
		command := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", script)
		command.Dir = root
		command.Env = append(os.Environ(), "CHART_VERSION=1.2.3", "IMAGE_REGISTRY=registry.example.com/espalier", "IMAGE_TAG=v1.2.3",
			"CHART_FOLDER="+t.TempDir(), "CHART_REGISTRY="+address, "HELM_PUSH_FLAGS=--plain-http",
			"HELM_CONFIG_HOME="+t.TempDir(), "HELM_CACHE_HOME="+t.TempDir())
		command.Stderr = os.Stderr
		out, err := command.Output()
		if err != nil {
			t.Fatalf("%s: %v", script, err)
		}
		return string(out)
	}
	run("hack/chart package && hack/chart push")
	got := objects{}
	if err := got.read(run(`"$(hack/tool helm)" template espalier "$CHART_REGISTRY/espalier" --version 1.2.3 --plain-http --namespace espalier-system`)); err != nil {
		t.Fatal(err)
	}
	want := render(t, `{image: {registry: registry.example.com/espalier, tag: v1.2.3}}`)
	if diff := cmp.Diff(want.ids(), got.ids()); diff != "" {
		t.Fatalf("objects (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(field(t, want.get(t, manager), "spec"), field(t, got.get(t, manager), "spec")); diff != "" {
		t.Errorf("Deployment (-want +got):\n%s", diff)
	}
}
