// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestAuditLog: writes are counted by kind, once, and never from half a line.
func TestAuditLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	add := func(text string) {
		t.Helper()
		file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if _, err := file.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	log := &auditLog{path: path}
	read := func(want writes) writes {
		t.Helper()
		got, err := log.read()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		return got
	}
	add(`{"verb":"create","objectRef":{"resource":"secrets","namespace":"espalier-system"}}
{"verb":"patch","objectRef":{"resource":"deployments","namespace":"scale"}}
{"verb":"patch","objectRef":{"resource":"mcpserv`)
	before := read(writes{"patch deployments": 1})
	add(`ers","subresource":"status","namespace":"scale"}}
`)
	after := read(writes{"patch deployments": 1, "patch mcpservers/status": 1})
	if diff := cmp.Diff(writes{"patch mcpservers/status": 1}, after.since(before)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestFleets: a fleet has pods, and an address for each.
func TestFleets(t *testing.T) {
	got, err := parseFleets("100x2,500x1")
	if err != nil || len(got) != 2 || got[0] != (fleet{100, 2}) || got[1] != (fleet{500, 1}) {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"", "5", "0x2", "axb", "100000x2"} {
		if _, err := parseFleets(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
	if first, last := podIP(0), podIP(maxPods-1); first != "10.250.1.1" || last != "10.250.250.250" {
		t.Errorf("%s to %s", first, last)
	}
}
