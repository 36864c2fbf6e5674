// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestInstall(t *testing.T) {
	folder := t.TempDir()
	var out, problems bytes.Buffer
	for range 2 { // A container that is started again finds its own copy.
		if code := run([]string{"install", folder}, nil, &out, &problems); code != 0 {
			t.Fatalf("status %d: %s", code, problems.String())
		}
	}
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) != 1 || entries[0].Name() != "server" {
		t.Fatalf("the folder holds %v, %v", entries, err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.Stat(self)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.Stat(filepath.Join(folder, "server"))
	if err != nil || got.Size() != want.Size() || got.Mode().Perm()&0o111 == 0 {
		t.Errorf("the copy is %v, %v", got, err)
	}
	for _, args := range [][]string{{"install"}, {"install", "a", "b"}} {
		if code := run(args, nil, &out, &problems); code != 2 {
			t.Errorf("%v: status %d", args, code)
		}
	}
	if code := run([]string{"install", filepath.Join(folder, "none")}, nil, &out, &problems); code != 1 {
		t.Errorf("a folder that is not there: status %d", code)
	}
}
