// SPDX-License-Identifier: Apache-2.0

package image

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

func program(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func buildOne(t *testing.T, platform, binary string) v1.Image {
	t.Helper()
	parsed, err := v1.ParsePlatform(platform)
	if err != nil {
		t.Fatal(err)
	}
	built, err := Build(Spec{
		Platform: *parsed, Entrypoint: []string{"/manager"}, Labels: map[string]string{"a": "1", "b": "2"},
		Layers: [][]File{BaseFiles(), Programs(binary, "/manager", nil)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return built
}

// TestSameInputSameBytes builds from a copy that is newer and elsewhere.
func TestSameInputSameBytes(t *testing.T) {
	tarball := func(text string) []byte {
		binary := program(t, text)
		later := time.Now().Add(time.Hour)
		if err := os.Chtimes(binary, later, later); err != nil {
			t.Fatal(err)
		}
		out := filepath.Join(t.TempDir(), "image.tar")
		if _, err := Write(out, "example.test/x:dev", []v1.Image{buildOne(t, "linux/amd64", binary)}); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	first := tarball("same")
	if !bytes.Equal(first, tarball("same")) {
		t.Error("same input, other bytes")
	}
	if bytes.Equal(first, tarball("other")) {
		t.Error("other input, same bytes")
	}
}

func TestImageRunsAsANumericUser(t *testing.T) {
	config, err := buildOne(t, "linux/arm64", program(t, "x")).ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Config.User != "65532:65532" || config.Architecture != "arm64" || config.Config.Entrypoint[0] != "/manager" {
		t.Errorf("config %+v of %s", config.Config, config.Architecture)
	}
	if !config.Created.Time.Equal(epoch) {
		t.Errorf("created %v", config.Created)
	}
}

func TestSeveralPlatformsMakeAnIndex(t *testing.T) {
	images := []v1.Image{buildOne(t, "linux/amd64", program(t, "amd")), buildOne(t, "linux/arm64", program(t, "arm"))}
	index, err := Index(images)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range manifest.Manifests {
		got = append(got, m.Platform.String())
	}
	if want := []string{"linux/amd64", "linux/arm64"}; !slices.Equal(got, want) {
		t.Errorf("platforms %v", got)
	}
}

func TestTarHoldsParentsOnceAndInOrder(t *testing.T) {
	var buffer bytes.Buffer
	err := writeTar(&buffer, []File{
		{Path: "/usr/bin/b", Mode: 0o755, Content: []byte("b")},
		{Path: "/etc/a", Mode: 0o644, Content: []byte("a")},
		{Path: "/usr/bin/a", Link: "b"},
	})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	archive := tar.NewReader(&buffer)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Uid != 0 || header.Uname != "" || !header.ModTime.Equal(epoch) {
			t.Errorf("%s carries an owner or a time", header.Name)
		}
		names = append(names, header.Name)
	}
	if want := []string{"etc/", "etc/a", "usr/", "usr/bin/", "usr/bin/a", "usr/bin/b"}; !slices.Equal(names, want) {
		t.Errorf("got %q", names)
	}
}

func TestPrograms(t *testing.T) {
	files := Programs("/build/x", "/manager", []string{"/build/tool", "/build/y:/bin/z"})
	var got []string
	for _, file := range files {
		got = append(got, file.Source+" "+file.Path)
	}
	if want := []string{"/build/x /manager", "/build/tool /tool", "/build/y /bin/z"}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
