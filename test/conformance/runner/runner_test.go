// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// fake stands in for Node and the suite: it lists three scenarios, leaves
// results of two of them and of one that is not scored, and accepts or not.
const fake = `#!/bin/sh
shift
case "$1" in
list)
  printf 'Required for R (5 scenarios)\n\nServer scenarios (test against a server):\n  - good\n  - warns\n  - never-run\n\nClient scenarios (test against a client):\n  - other\n'
  exit 0 ;;
server)
  for last; do out=$last; done
  ok='{"id":"i","status":"SUCCESS"}'
  for scenario in server-good server-extra; do
    mkdir -p "$out/$scenario-2026-11-30T15-46-45-176Z"
    echo "[$ok,{\"id\":\"j\",\"status\":\"INFO\"}]" >"$out/$scenario-2026-11-30T15-46-45-176Z/checks.json"
  done
  mkdir -p "$out/server-warns-2026-11-30T15-46-45-176Z"
  echo "[$ok,{\"id\":\"w\",\"status\":\"WARNING\",\"errorMessage\":\"hm\"}]" >"$out/server-warns-2026-11-30T15-46-45-176Z/checks.json"
  printf '=== SUMMARY ===\n'"$EXPECTED"'\n\nBaseline check\n'
  exit "$STATUS" ;;
esac
exit 3
`

func TestServer(t *testing.T) {
	folder := t.TempDir()
	node := filepath.Join(folder, "node")
	if err := os.WriteFile(node, []byte(fake), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		status, expected string
		want             score
		good             bool
	}{
		"two failed":            {"1", "", score{passed: 1, total: 3}, false},
		"accepted all the same": {"0", "", score{passed: 1, total: 3, accepted: true}, false},
		"one is expected":       {"0", `\nExpected failures (in baseline):\n  ~ warns`, score{passed: 1, total: 3, accepted: true, expected: 1}, false},
		"both are expected":     {"0", `\nExpected failures (in baseline):\n  ~ warns:w\n  ~ warns:x\n  ~ never-run`, score{passed: 1, total: 3, accepted: true, expected: 2}, true},
		"and one is stale":      {"1", `\nExpected failures (in baseline):\n  ~ warns\n  ~ never-run\n\nStale baseline entries:\n  x good`, score{passed: 1, total: 3, expected: 2}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("STATUS", tc.status)
			t.Setenv("EXPECTED", tc.expected)
			s := suite{node: node, script: "suite", out: t.TempDir()}
			got, err := s.server(t.Context(), target{"direct", "http://127.0.0.1:1/mcp"}, "R")
			if err != nil || got != tc.want || got.good() != tc.good {
				t.Errorf("%+v, good %v, %v", got, got.good(), err)
			}
		})
	}
}

func TestSums(t *testing.T) {
	var sum score
	if sum.good() {
		t.Error("nothing is good")
	}
	sum.add(score{passed: 2, total: 2, accepted: true})
	if !sum.good() {
		t.Errorf("%+v", sum)
	}
	sum.add(score{passed: 3, total: 3})
	if sum.good() || sum.total != 5 {
		t.Errorf("%+v", sum)
	}
}

func TestRead(t *testing.T) {
	folder := t.TempDir()
	place := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Join(folder, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name, "checks.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	place("server-sep-2164-resource-not-found-2026-11-30T15-46-45-176Z", `[{"id":"a","status":"SKIPPED"}]`)
	place("initialize-2026-11-30T15-52-56-715Z", `[{"id":"a","status":"SUCCESS"}]`)
	results, err := read(folder)
	if err != nil || len(results) != 2 {
		t.Fatal(results, err)
	}
	if results["sep-2164-resource-not-found"].passed() {
		t.Error("what skipped all has passed")
	}
	if !results["initialize"].passed() {
		t.Error("initialize has not passed")
	}
	place("initialize-2026-11-30T15-52-56-715Z", "}")
	if _, err := read(folder); err == nil {
		t.Error("results that are no JSON were read")
	}
	place("initialize-2026-11-30T15-52-56-715Z", "[]")
	place("something", "[]")
	if _, err := read(folder); err == nil || !strings.Contains(err.Error(), "named") {
		t.Error("a folder of another name was read:", err)
	}
}

func TestRequired(t *testing.T) {
	got, err := required("Required\n\nServer scenarios (test against a server):\n  - a\n  - b-c\n\nClient scenarios (test against a client):\n  - d\n\nNever scored:\n    - e [server]\n")
	if err != nil || !slices.Equal(got, []string{"a", "b-c"}) {
		t.Error(got, err)
	}
	if _, err := required("Usage: conformance"); err == nil {
		t.Error("nothing is required")
	}
}

// TestLocal: what a server is sent is what the client said, Host included, and
// no connection is used twice.
func TestLocal(t *testing.T) {
	var mu sync.Mutex
	peers := map[string]bool{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		peers[r.RemoteAddr] = true
		fmt.Fprint(w, r.Host, " ", r.Header.Get("Origin"), " ", r.Header.Get("X-Forwarded-For"), " ", r.URL.Path)
	}))
	defer server.Close()
	url, err := local(t.Context(), server.URL+"/mcp", "0")
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		request.Host = "evil.example.com"
		request.Header.Set("Origin", "http://evil.example.com")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || string(body) != "evil.example.com http://evil.example.com  /mcp" {
			t.Errorf("%q, %v", body, err)
		}
	}
	if len(peers) != 3 {
		t.Errorf("%d connections for 3 requests", len(peers))
	}
}

// TestRefusedUnread: a server that refuses without reading does not cost the
// client its connection.
func TestRefusedUnread(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	defer server.Close()
	url, err := local(t.Context(), server.URL, "0")
	if err != nil {
		t.Fatal(err)
	}
	var opened atomic.Int32
	dialer := &net.Dialer{}
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		opened.Add(1)
		return dialer.DialContext(ctx, network, address)
	}}}
	for range 20 {
		response, err := client.Post(url, "application/json", strings.NewReader(strings.Repeat("x", 1<<10)))
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != http.StatusForbidden {
			t.Fatal(response.Status)
		}
	}
	if opened.Load() != 1 {
		t.Errorf("%d connections", opened.Load())
	}
	client.CloseIdleConnections()
}

func TestArguments(t *testing.T) {
	o := options{suite: suite{script: "s", out: t.TempDir()}}
	for _, args := range [][]string{{}, {"x"}, {"=u"}, {"n="}} {
		if err := o.parse(args); err == nil {
			t.Errorf("%q was taken", args)
		}
	}
	if err := o.parse([]string{"a=http://b/mcp?c=d"}); err != nil || o.targets[0] != (target{"a", "http://b/mcp?c=d"}) {
		t.Error(o.targets, err)
	}
}
