// SPDX-License-Identifier: Apache-2.0

package node

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestPackageName(t *testing.T) {
	for spec, want := range map[string]string{"@scope/name@1.2.3": "@scope/name", "@scope/name": "@scope/name", "name@1": "name", "name": "name"} {
		if got := packageName(spec); got != want {
			t.Errorf("%s: got %s", spec, got)
		}
	}
}

func TestChooseScript(t *testing.T) {
	cases := []struct{ bin, command, want string }{
		{`"dist/index.js"`, "", "dist/index.js"},
		{`{"anything": "a.js"}`, "", "a.js"},
		{`{"other": "a.js", "pkg": "b.js"}`, "", "b.js"},
		{`{"other": "a.js", "pkg": "b.js"}`, "other", "a.js"},
		{`{"one": "a.js", "two": "b.js"}`, "", ""},
		{`{"one": "a.js"}`, "missing", ""},
		{``, "", ""},
	}
	for _, c := range cases {
		got, err := chooseScript(json.RawMessage(c.bin), "pkg", c.command)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s, command %q: got %q, %v", c.bin, c.command, got, err)
		}
	}
}

func TestCommands(t *testing.T) {
	for bin, want := range map[string]map[string]string{
		`"dist/index.js"`:                {"pkg": "node_modules/@scope/pkg/dist/index.js"},
		`{"one": "a.js", "two": "b.js"}`: {"one": "node_modules/@scope/pkg/a.js", "two": "node_modules/@scope/pkg/b.js"},
		`null`:                           {},
	} {
		dir := t.TempDir()
		folder := filepath.Join(dir, "node_modules", "@scope", "pkg")
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "package.json"), []byte(`{"bin": `+bin+`}`), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := commands(dir, "@scope/pkg@1.0.0"); err != nil || !maps.Equal(got, want) {
			t.Errorf("%s: got %v, %v", bin, got, err)
		}
	}
}

func TestLibraries(t *testing.T) {
	ldd := "\tlinux-vdso.so.1 (0x1)\n\tlibm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x2)\n\t/lib64/ld-linux-x86-64.so.2 (0x3)\n"
	want := []string{"/lib/x86_64-linux-gnu/libm.so.6", "/lib64/ld-linux-x86-64.so.2"}
	if got := libraries(ldd); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestKeyCoversPackagesAndNode(t *testing.T) {
	spec := Spec{Packages: []string{"a@1"}, Tag: "x:dev"}
	base := key(spec, "v20.1.0")
	for name, other := range map[string]string{
		"node":    key(spec, "v20.1.1"),
		"package": key(Spec{Packages: []string{"a@2"}, Tag: "x:dev"}, "v20.1.0"),
		"tag":     key(Spec{Packages: []string{"a@1"}, Tag: "y:dev"}, "v20.1.0"),
		"command": key(Spec{Packages: []string{"a@1"}, Tag: "x:dev", Command: "b"}, "v20.1.0"),
	} {
		if other == base {
			t.Errorf("another %s has the same key", name)
		}
	}
	if key(spec, "v20.1.0") != base {
		t.Error("the key is not stable")
	}
}
