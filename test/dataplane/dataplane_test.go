// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestCallers call what they are meant for, in each era, and notice an answer
// that is none.
func TestCallers(t *testing.T) {
	sdk, floor := httptest.NewServer(sdkHandler()), httptest.NewServer(http.HandlerFunc(echoJSON))
	back := httptest.NewServer(http.HandlerFunc(backend))
	proxy := httptest.NewServer(proxyTo(back.URL))
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for _, server := range []*httptest.Server{sdk, floor, back, proxy, silent} {
		t.Cleanup(server.Close)
	}
	for name, test := range map[string]struct {
		server *httptest.Server
		era    era
		good   bool
	}{
		"modern": {sdk, modern, true}, "legacy": {sdk, legacy, true}, "floor": {floor, plain, true}, "proxy": {proxy, plain, true},
		"silent": {silent, plain, false},
	} {
		c, err := dial(strings.TrimPrefix(test.server.URL, "http://"), "/", test.era)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		calls, _, err := load([]*caller{c}, 10*time.Millisecond)
		_ = c.conn.Close()
		if (err == nil) != test.good || calls == 0 {
			t.Errorf("%s: %d calls, %v", name, calls, err)
		}
	}
}

func TestChild(t *testing.T) {
	var out bytes.Buffer
	child(strings.NewReader(strings.Join([]string{
		`{"jsonrpc":"2.0","id":1,"method":"server/discover"}`, `{"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`, `{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{` + callParams + `}}`, "",
	}, "\n")), &out)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	for i, want := range []string{`"id":1,"error"`, `"protocolVersion":"2025-06-18"`, `"id":"x","result":{"content":[{"type":"text","text":"` + said + `"}]}`} {
		if i >= len(lines) || !strings.Contains(lines[i], want) {
			t.Errorf("line %d of %q lacks %s", i, lines, want)
		}
	}
}

func TestMedianIsOfEachPart(t *testing.T) {
	got := median([]figure{{3 * time.Microsecond, 10}, {time.Microsecond, 30}, {2 * time.Microsecond, 20}})
	if want := (figure{2 * time.Microsecond, 20}); got != want {
		t.Errorf("got %v", got)
	}
}

func TestGroupsKeepTheirFloor(t *testing.T) {
	all := []subject{{name: "a", group: "1"}, {name: "b", group: "1"}, {name: "c", group: "2"}}
	if got := groups(all, ""); len(got) != 2 || len(got[0]) != 2 || got[1][0].name != "c" {
		t.Errorf("got %v", got)
	}
	if got := groups(all, "b"); len(got) != 1 || got[0][0].name != "b" {
		t.Errorf("got %v", got)
	}
}
