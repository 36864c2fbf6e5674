// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpprobe_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/espalier-dev/espalier/internal/contract"
	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/mcpprobe/fakemcp"
)

// listing makes a server that lists raw entries.
func listing(entries ...string) *fakemcp.Server {
	fake := fakemcp.New()
	return fake.On(mcp.MethodToolsList, func(c *fakemcp.Call) {
		c.Text(200, "application/json", fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"tools":[%s]}}`, c.ID, strings.Join(entries, ",")))
	})
}

// Case B04: names.
func TestCaseB04Names(t *testing.T) {
	a := func(n int) string { return strings.Repeat("a", n) }
	wire := []string{
		a(64), a(65), a(128), a(129), "with space", "admin.tools.list", "user/update", "weather", "Weather",
		"\u00e9t\u00e9", "e\u0301te\u0301", "\u5de5\u5177", "x\u202ey", "line\nbreak", "",
	}
	var entries []string
	for _, name := range wire {
		entries = append(entries, string(fakemcp.Tool(name)))
	}
	search := []string{`{"name":"search","description":"one","inputSchema":{}}`, `{"name":"search","description":"two","inputSchema":{}}`}
	entries = append(entries, search...)
	r := newBench(t, listing(entries...)).probe()

	want := []string{
		a(64), a(65), a(128), a(129), "with space", "admin.tools.list", "user/update", "weather", "Weather",
		"\u00e9t\u00e9", "e\u0301te\u0301", "\u5de5\u5177", `x\u202ey`, `line\x0abreak`, "", "search",
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, toolNames(r)); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	outside := []string{"", a(129), "\u00e9t\u00e9", "e\u0301te\u0301", `line\x0abreak`, "user/update", "with space", `x\u202ey`, "\u5de5\u5177"}
	slices.Sort(outside)
	if diff := cmp.Diff(outside, warned(r, mcpprobe.WarnNameOutsideAdvice)); diff != "" {
		t.Errorf("outside the advice (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{a(65), a(128)}, warned(r, mcpprobe.WarnNameTooLongForClients)); diff != "" {
		t.Errorf("too long for clients (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"search"}, warned(r, mcpprobe.WarnDuplicateName)); diff != "" {
		t.Errorf("duplicates (-want +got):\n%s", diff)
	}

	// The order of the list does not choose between duplicates.
	slices.Reverse(entries)
	if reversed := newBench(t, listing(entries...)).probe(); reversed.Facts() != r.Facts() {
		t.Error("the order of the list moves facts")
	}
}

// Digests of the wire are those of the declared definition.
func TestDigestsOfTheWire(t *testing.T) {
	definition := `{"inputSchema":{"type":"object"},"title":"T","name":"x\u202ey"}`
	r := newBench(t, listing(definition)).probe()
	want, err := contract.Of(json.RawMessage(definition))
	if err != nil {
		t.Fatal(err)
	}
	got := r.Tools.Tools[0]
	if got.Digest != want.Digest || got.Fields != want.Fields || got.Name != mcpprobe.EscapeName(want.Name) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// Malformed entries among good ones harm nobody.
func TestMalformedEntries(t *testing.T) {
	r := newBench(t, listing(
		`{"name":"good","inputSchema":{"type":"object"}}`, `null`, `1`, `"x"`, `[]`, `{}`, `{"name":null}`, `{"name":1}`,
		`{"name":"no-schema"}`, `{"name":"null-schema","inputSchema":null}`, `{"name":"odd-schema","inputSchema":[]}`,
		`{"name":"no-digest","inputSchema":{"maximum":1e999}}`,
	)).probe()
	want := result{Outcome: mcpprobe.Proved, Step: mcpprobe.StepDone, Tools: "good,no-digest,no-schema,null-schema,odd-schema"}
	wantResult(t, r, want)
	if diff := cmp.Diff([]string{"no-schema", "null-schema", "odd-schema"}, warned(r, mcpprobe.WarnSchemaNotObject)); diff != "" {
		t.Errorf("schemas (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"no-digest"}, warned(r, mcpprobe.WarnNoDigest)); diff != "" {
		t.Errorf("digests (-want +got):\n%s", diff)
	}
	if len(warned(r, mcpprobe.WarnMalformedEntry)) != 1 {
		t.Errorf("warnings %v", r.Warnings)
	}
}

// What is no list fails; null is read as most clients do.
func TestOddLists(t *testing.T) {
	noList := failed(mcpprobe.ListFailed, mcpprobe.StepTools).because(mcpprobe.FlawMissingFields)
	for body, want := range map[string]result{
		`{}`:             noList,
		`{"tools":{}}`:   noList,
		`{"tools":"x"}`:  noList,
		`{"Tools":[]}`:   noList,
		`null`:           noList,
		`[]`:             noList,
		`{"tools":null}`: {Outcome: mcpprobe.Proved, Step: mcpprobe.StepDone},
		`{"resultType":"input_required","inputRequests":{}}`: noList,
	} {
		fake := fakemcp.New().On(mcp.MethodToolsList, func(c *fakemcp.Call) { c.Result(json.RawMessage(body)) })
		r := newBench(t, fake).probe()
		if diff := cmp.Diff(want, resultOf(r)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", body, diff)
		}
	}
}

// Case B05: versions.
func TestCaseB05Versions(t *testing.T) {
	const words = "Unsupported protocol version (supported versions: 2025-06-18, 2025-03-26, 2024-11-05)"
	asked := func(c *fakemcp.Call) string {
		var p struct {
			ProtocolVersion string `json:"protocolVersion"`
		}
		_ = json.Unmarshal(c.Params, &p)
		return p.ProtocolVersion
	}
	tooNew := func(c *fakemcp.Call) bool {
		return max(asked(c), c.R.Header.Get(mcp.HeaderProtocolVersion)) >= mcp.Version20251125
	}
	initialize := func(h fakemcp.Handler) *fakemcp.Server { return fakemcp.New().On(mcp.MethodInitialize, h) }
	later := func(version string, refuse func(header string) bool) *fakemcp.Server {
		fake := fakemcp.New()
		fake.Settings.Version = version
		return fake.On(fakemcp.Any, func(c *fakemcp.Call) {
			if c.Method != mcp.MethodDiscover && c.Method != mcp.MethodInitialize && refuse(c.R.Header.Get(mcp.HeaderProtocolVersion)) {
				c.Text(400, "text/plain", "bad version")
				return
			}
			c.Default()
		})
	}
	for name, tc := range map[string]struct {
		fake    *fakemcp.Server
		want    result
		version string
		offered []string
		tries   int
	}{
		"a 2024-11-05": {fake: initialize(func(c *fakemcp.Call) { c.Initialize("2024-11-05") }), want: proved, version: "2024-11-05", tries: 1},
		"b 2099-01-01": {
			fake: initialize(func(c *fakemcp.Call) { c.Initialize("2099-01-01") }),
			want: failed(mcpprobe.UnsupportedProtocol, mcpprobe.StepInitialize), offered: []string{"2099-01-01"}, tries: 1,
		},
		"not a version": {
			fake: initialize(func(c *fakemcp.Call) { c.Initialize(foreign) }),
			want: failed(mcpprobe.UnsupportedProtocol, mcpprobe.StepInitialize), tries: 1,
		},
		"c 400 in words": {fake: initialize(func(c *fakemcp.Call) {
			if tooNew(c) {
				c.Text(400, "text/plain", words)
				return
			}
			c.Initialize(asked(c))
		}), want: proved, version: "2025-06-18", tries: 2},
		"c 400 always": {
			fake: initialize(func(c *fakemcp.Call) { c.Text(400, "text/plain", words) }),
			want: failed(mcpprobe.UnsupportedProtocol, mcpprobe.StepInitialize), offered: []string{"2024-11-05", "2025-03-26"}, tries: 2,
		},
		"d error with data": {fake: initialize(func(c *fakemcp.Call) {
			if asked(c) != "2025-06-18" {
				c.Error(200, -32602, "bad", map[string]any{"expected": "2025-06-18"})
				return
			}
			c.Initialize("2025-06-18")
		}), want: proved, version: "2025-06-18", tries: 2},
		"d only versions that nobody knows": {
			fake: initialize(func(c *fakemcp.Call) {
				c.Error(400, -32602, "bad", map[string]any{"supported": []string{"2023-01-01"}})
			}),
			want: failed(mcpprobe.UnsupportedProtocol, mcpprobe.StepInitialize), offered: []string{"2023-01-01"}, tries: 1,
		},
		"e header wanted":   {fake: later("2025-06-18", func(h string) bool { return h != "2025-06-18" }), want: proved, version: "2025-06-18", tries: 1},
		"f header unwanted": {fake: later("2025-03-26", func(h string) bool { return h != "" }), want: proved, version: "2025-03-26", tries: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newBench(t, tc.fake).probe()
			wantResult(t, r, tc.want)
			if r.ProtocolVersion != tc.version {
				t.Errorf("version %q, want %q", r.ProtocolVersion, tc.version)
			}
			if diff := cmp.Diff(tc.offered, r.Offered); diff != "" {
				t.Errorf("offered (-want +got):\n%s", diff)
			}
			if n := tc.fake.Count(mcp.MethodInitialize); n != tc.tries {
				t.Errorf("%d initialize, want %d", n, tc.tries)
			}
			if len(tc.offered) > 0 {
				wantMessage(t, r, strings.Join(tc.offered, ", "), "2025-11-25")
			}
		})
	}
}
