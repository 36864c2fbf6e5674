// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// mount writes keys as the kubelet does: a new folder, one swap of a link.
func mount(t *testing.T, folder, version string, keys map[string]string) {
	t.Helper()
	for path, value := range keys {
		full := filepath.Join(folder, version, path)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(value), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(folder, "..tmp")
	for _, err := range []error{os.MkdirAll(filepath.Join(folder, version), 0o755), os.Symlink(version, link), os.Rename(link, filepath.Join(folder, "..data"))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("..data/secrets", filepath.Join(folder, "secrets")); err != nil && !os.IsExist(err) {
		t.Fatal(err)
	}
}

func TestStore(t *testing.T) {
	folder := t.TempDir()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	store := New(folder)
	store.now = func() time.Time { return now }
	const path = "secrets/s/k"
	if _, err := store.Text(path); err == nil || err.Error() != `Secret "s" has no key "k" mounted here` {
		t.Fatalf("got %v", err)
	}
	mount(t, folder, "..1", map[string]string{path: "one\r\n"})
	now = now.Add(Recheck)
	if got, err := store.Text(path); err != nil || got != "one" {
		t.Fatalf("got %q, %v", got, err)
	}
	loaded := *store.Status(path).LoadedAt
	mount(t, folder, "..2", map[string]string{path: "one\r\n", "secrets/other/k": "x"})
	now = now.Add(Recheck)
	if got := store.Status(path); !got.Present || !got.LoadedAt.Equal(loaded) {
		t.Errorf("the same bytes count as loaded anew: %+v", got)
	}
	mount(t, folder, "..3", map[string]string{path: "two"})
	if got, _ := store.Text(path); got != "one" {
		t.Errorf("looked again before %v: %q", Recheck, got)
	}
	now = now.Add(Recheck)
	if got, err := store.Text(path); err != nil || got != "two" || !store.Status(path).LoadedAt.After(loaded) {
		t.Errorf("got %q, %v", got, err)
	}
	store.Keep(nil)
	mount(t, folder, "..4", nil)
	if got := store.Status(path); got.Present || got.LoadedAt != nil {
		t.Errorf("got %+v", got)
	}
}

func TestPathsStayBelowTheFolder(t *testing.T) {
	root := t.TempDir()
	folder := filepath.Join(root, "credentials")
	if err := os.MkdirAll(filepath.Join(folder, "secrets"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "outside"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"../outside", "/etc/hostname", "secrets/../../outside", "secrets", ""} {
		var missing *MissingError
		if _, err := New(folder).Bytes(path); !errors.As(err, &missing) {
			t.Errorf("%q: got %v", path, err)
		}
	}
	large := filepath.Join(folder, "secrets/large")
	if err := os.WriteFile(large, []byte(strings.Repeat("x", maxBytes+1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := New(folder).Bytes("secrets/large"); err == nil {
		t.Error("a key larger than a Secret was read")
	}
}
