// SPDX-License-Identifier: Apache-2.0

package build

import (
	"os"
	"path/filepath"
	"testing"
)

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestKeyCoversWhatDecidesTheProgram changes one thing at a time.
func TestKeyCoversWhatDecidesTheProgram(t *testing.T) {
	base := Set{Name: "x", Dir: "m", Packages: []string{"."}, Sources: []string{"*.go"}, LDFlags: []string{"-X", "a=1"}}
	cases := []struct {
		name    string
		set     func(Set) Set
		file    string
		version string
		changes bool
	}{
		{name: "nothing", changes: false},
		{name: "go.mod", file: "m/go.mod", changes: true},
		{name: "go.sum", file: "m/go.sum", changes: true},
		{name: "a source", file: "m/main.go", changes: true},
		{name: "a new source", file: "m/other.go", changes: true},
		{name: "a test", file: "m/main_test.go", changes: false},
		{name: "an unrelated file", file: "m/README.md", changes: false},
		{name: "the toolchain", version: "go1.99 linux amd64", changes: true},
		{name: "a linker flag", set: func(s Set) Set { s.LDFlags = []string{"-X", "a=2"}; return s }, changes: true},
		{name: "a package", set: func(s Set) Set { s.Packages = []string{"./y"}; return s }, changes: true},
		{name: "the cache folder's name", set: func(s Set) Set { s.Name = "y"; return s }, changes: false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			for _, name := range []string{"m/go.mod", "m/go.sum", "m/main.go"} {
				write(t, root, name, "one")
			}
			before := mustKey(t, base, root, "go1 linux amd64")
			set, version := base, "go1 linux amd64"
			if c.set != nil {
				set = c.set(base)
			}
			if c.version != "" {
				version = c.version
			}
			if c.file != "" {
				write(t, root, c.file, "two")
			}
			if changed := mustKey(t, set, root, version) != before; changed != c.changes {
				t.Errorf("key changed: %v, want %v", changed, c.changes)
			}
		})
	}
}

func mustKey(t *testing.T, set Set, root, version string) string {
	t.Helper()
	key, err := set.key(root, version)
	if err != nil {
		t.Fatal(err)
	}
	return key
}
