// SPDX-License-Identifier: Apache-2.0

package push

import (
	"archive/tar"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/espalier-dev/espalier/hack/images/internal/image"
)

func tarball(t *testing.T, architectures ...string) (string, v1.Hash) {
	t.Helper()
	var images []v1.Image
	for _, architecture := range architectures {
		built, err := image.Build(image.Spec{
			Platform: v1.Platform{OS: "linux", Architecture: architecture}, Entrypoint: []string{"/x"},
			Layers: [][]image.File{{{Path: "/x", Mode: 0o755, Content: []byte(architecture)}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		images = append(images, built)
	}
	path := filepath.Join(t.TempDir(), "image.tar")
	digest, err := image.Write(path, "example.test/x:dev", images)
	if err != nil {
		t.Fatal(err)
	}
	return path, digest
}

func TestPushKeepsTheDigest(t *testing.T) {
	server := httptest.NewServer(registry.New())
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	for _, architectures := range [][]string{{"amd64"}, {"amd64", "arm64"}} {
		path, want := tarball(t, architectures...)
		target := host + "/team/x:v1"
		got, err := Push(t.Context(), path, target)
		if err != nil || got != want {
			t.Fatalf("pushed %s, %v; want %s", got, err, want)
		}
		tag, err := name.NewTag(target)
		if err != nil {
			t.Fatal(err)
		}
		pushed, err := remote.Get(tag)
		if err != nil || pushed.Digest != want || pushed.MediaType.IsIndex() != (len(architectures) > 1) {
			t.Errorf("registry holds %+v, %v", pushed, err)
		}
	}
}

func TestUnpackRefusesAPathOutside(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bad.tar")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	archive := tar.NewWriter(file)
	if err := archive.WriteHeader(&tar.Header{Name: "../outside", Typeflag: tar.TypeReg, Mode: 0o644}); err != nil {
		t.Fatal(err)
	}
	_ = archive.Close()
	_ = file.Close()
	if err := unpack(path, t.TempDir()); err == nil {
		t.Error("extracted a file outside the folder")
	}
}
