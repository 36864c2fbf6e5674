// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// contents of an archive: names, modes and texts.
func contents(t *testing.T, a archive) map[string]string {
	t.Helper()
	out := map[string]string{}
	if strings.HasSuffix(a.name, ".zip") {
		r, err := zip.NewReader(bytes.NewReader(a.content), int64(len(a.content)))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range r.File {
			opened, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(opened)
			if err != nil {
				t.Fatal(err)
			}
			out[f.Name] = string(text)
		}
		return out
	}
	z, err := gzip.NewReader(bytes.NewReader(a.content))
	if err != nil {
		t.Fatal(err)
	}
	r := tar.NewReader(z)
	for {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if executable := header.Mode&0o111 != 0; executable != (header.Name == a.binary) {
			t.Errorf("%s has mode %o", header.Name, header.Mode)
		}
		out[header.Name] = string(text)
	}
}

func TestPack(t *testing.T) {
	for platform, names := range map[string][2]string{
		"linux/arm64": {"kubectl-mcp_linux_arm64.tar.gz", "kubectl-mcp"}, "windows/amd64": {"kubectl-mcp_windows_amd64.zip", "kubectl-mcp.exe"},
	} {
		a, err := pack(platform, []byte("program"), []byte("licence"))
		if err != nil {
			t.Fatal(err)
		}
		got := contents(t, a)
		if a.name != names[0] || a.binary != names[1] || len(got) != 2 || got[names[1]] != "program" || got["LICENSE"] != "licence" {
			t.Errorf("%s: %s holds %v", platform, a.name, got)
		}
		again, err := pack(platform, []byte("program"), []byte("licence"))
		if err != nil || !bytes.Equal(a.content, again.content) || a.sum != again.sum || len(a.sum) != 64 {
			t.Errorf("%s: the same program makes other bytes, or %v", platform, err)
		}
		if other, err := pack(platform, []byte("another"), []byte("licence")); err != nil || other.sum == a.sum {
			t.Errorf("%s: another program has the same sum", platform)
		}
	}
}

func TestKrew(t *testing.T) {
	var archives []archive
	for _, platform := range []string{"darwin/arm64", "windows/amd64"} {
		a, err := pack(platform, []byte(platform), nil)
		if err != nil {
			t.Fatal(err)
		}
		archives = append(archives, a)
	}
	for version, want := range map[string]string{"v1.2.3": "v1.2.3", "v1.2.3-rc.1": "v1.2.3-rc.1", "dev": "v0.0.0-dev", "9830d24-dirty": "v0.0.0-9830d24-dirty"} {
		raw, err := krew(version, "https://example.com/VERSION", archives)
		if err != nil {
			t.Fatal(err)
		}
		var p plugin
		if err := yaml.UnmarshalStrict(raw, &p); err != nil {
			t.Fatal(err)
		}
		if p.Spec.Version != want || len(p.Spec.Platforms) != 2 || len(p.Spec.ShortDescription) > 50 {
			t.Errorf("%s makes\n%s", version, raw)
		}
		last := p.Spec.Platforms[1]
		if last.URI != "https://example.com/"+want+"/kubectl-mcp_windows_amd64.zip" || last.SHA256 != archives[1].sum || last.Bin != "kubectl-mcp.exe" || last.Selector.MatchLabels["arch"] != "amd64" {
			t.Errorf("%s: %+v", version, last)
		}
	}
	if got := sums(archives); got != archives[0].sum+"  kubectl-mcp_darwin_arm64.tar.gz\n"+archives[1].sum+"  kubectl-mcp_windows_amd64.zip\n" {
		t.Errorf("sums:\n%s", got)
	}
}
