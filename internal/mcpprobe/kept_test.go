// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpprobe_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/mcpprobe/fakemcp"
	"github.com/espalier-dev/espalier/internal/podreport"
)

// Lists that may be kept are not asked for again of a modern server that says
// of itself what it said before; any difference, and they are.
func TestKeptLists(t *testing.T) {
	second := time.Second
	differs := func(change func(*mcpprobe.Report)) func(*fakemcp.Server, *mcpprobe.Report) {
		return func(_ *fakemcp.Server, kept *mcpprobe.Report) { change(kept) }
	}
	for name, tc := range map[string]struct {
		change func(*fakemcp.Server, *mcpprobe.Report)
		read   bool
	}{
		"as before":          {func(*fakemcp.Server, *mcpprobe.Report) {}, false},
		"another version":    {differs(func(k *mcpprobe.Report) { k.ProtocolVersion = "2099-01-01" }), true},
		"another name":       {differs(func(k *mcpprobe.Report) { k.Server.Name = "other" }), true},
		"another release":    {differs(func(k *mcpprobe.Report) { k.Server.Version = "2" }), true},
		"other capabilities": {differs(func(k *mcpprobe.Report) { k.Capabilities = append(k.Capabilities, "prompts") }), true},
		"another catalog":    {differs(func(k *mcpprobe.Report) { k.CatalogDigest = digest }), true},
		"other instructions": {differs(func(k *mcpprobe.Report) { k.Instructions = "v1:sha256:0" }), true},
		"announces changes":  {differs(func(k *mcpprobe.Report) { k.ListChanged = true }), true},
		"another transport":  {differs(func(k *mcpprobe.Report) { k.Transport = mcpprobe.TransportSSE }), true},
		"the pod says more":  {differs(func(k *mcpprobe.Report) { k.Pod = &podreport.Report{} }), true},
		"was not proved":     {differs(func(k *mcpprobe.Report) { k.Outcome = mcpprobe.ListFailed }), true},
		"of the legacy era":  {differs(func(k *mcpprobe.Report) { k.Era = mcpprobe.EraLegacy }), true},
		"discover holds not": {func(fake *fakemcp.Server, _ *mcpprobe.Report) { fake.Settings.TTLMs = 0 }, true},
		"legacy since": {func(fake *fakemcp.Server, _ *mcpprobe.Report) {
			fake.Settings.Modern, fake.Settings.Legacy = false, true
		}, true},
		"shorter lists' times": {differs(func(k *mcpprobe.Report) { k.TTL = &second }), false}, // That is the caller's to judge.
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake := eras(true, false)
			b := newBench(t, fake)
			kept := b.probe()
			wantResult(t, kept, proved)
			if kept.Handshake <= 0 || kept.Handshake > kept.Latency {
				t.Errorf("handshake %s of %s", kept.Handshake, kept.Latency)
			}
			if kept.ListsKept || kept.TTL == nil || *kept.TTL != 5*time.Second {
				t.Fatalf("kept %v, time %v", kept.ListsKept, kept.TTL)
			}
			before := fake.Count(mcp.MethodToolsList)
			// What is listed now differs, so that it shows where a list is from.
			fake.SetTools(2)
			tc.change(fake, &kept)
			b.target.Kept = &kept
			r := b.probe()
			want := proved
			if tc.read {
				want.Tools = "alpha,tool-2"
			}
			wantResult(t, r, want)
			if read := fake.Count(mcp.MethodToolsList) > before; read != tc.read || r.ListsKept == tc.read {
				t.Errorf("list read %v, told as kept %v, want read %v", read, r.ListsKept, tc.read)
			}
			if !tc.read && name == "as before" && r.Facts() != kept.Facts() {
				t.Error("kept lists are other facts")
			}
		})
	}
}

// A server that is dead, or no MCP server any more, is not proved by lists
// that may be kept.
func TestKeptListsProveNothing(t *testing.T) {
	for mode, want := range map[string]result{
		"hang":    failed(mcpprobe.Timeout, mcpprobe.StepInitialize),
		"garbage": failed(mcpprobe.NotMCP, mcpprobe.StepInitialize).because(mcpprobe.FlawNotJSON),
		"auth":    failed(mcpprobe.AuthRequired, mcpprobe.StepDiscover),
	} {
		fake := eras(true, false)
		b := newBench(t, fake)
		kept := b.probe()
		if err := fake.SetMode(mode); err != nil {
			t.Fatal(err)
		}
		b.target.Kept, b.target.Timeout = &kept, quick
		r := b.probe()
		got := resultOf(r)
		if got.Outcome != want.Outcome || got.Tools != "?" || r.ListsKept {
			t.Errorf("%s: %+v, kept %v", mode, got, r.ListsKept)
		}
	}
}

// A change that a server tells beside an answer makes the lists that were read
// doubtful, over each kind of stream.
func TestListsMoved(t *testing.T) {
	changed := `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`
	list := func(c *fakemcp.Call) string {
		return c.Response(map[string]any{"tools": []json.RawMessage{fakemcp.Tool("alpha")}})
	}
	for name, tc := range map[string]struct {
		told  string
		moved bool
	}{
		"tools":     {changed, true},
		"prompts":   {`{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}`, true},
		"resources": {`{"jsonrpc":"2.0","method":"notifications/resources/list_changed","params":{}}`, true},
		"a log":     {`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info"}}`, false},
		"a ping":    {`{"jsonrpc":"2.0","id":"p","method":"ping"}`, false},
	} {
		for over, serve := range map[string]func(*testing.T, *fakemcp.Server) *bench{
			"event stream": func(t *testing.T, fake *fakemcp.Server) *bench {
				return newBench(t, fake.On(mcp.MethodToolsList, func(c *fakemcp.Call) {
					c.Stream(fakemcp.Data(tc.told), fakemcp.Data(list(c)))
				}))
			},
			"batch": func(t *testing.T, fake *fakemcp.Server) *bench {
				return newBench(t, fake.On(mcp.MethodToolsList, func(c *fakemcp.Call) {
					c.Text(http.StatusOK, "application/json", "["+tc.told+","+list(c)+"]")
				}))
			},
			"HTTP with SSE": func(t *testing.T, fake *fakemcp.Server) *bench {
				fake.Settings.Stateless = true
				return overSSE(t, fake.On(mcp.MethodToolsList, func(c *fakemcp.Call) {
					c.Text(http.StatusOK, "application/json", "["+tc.told+","+list(c)+"]")
				}), nil)
			},
		} {
			t.Run(name+" over "+over, func(t *testing.T) {
				t.Parallel()
				r := serve(t, fakemcp.New()).probe()
				wantResult(t, r, proved)
				if r.ListsMoved != tc.moved {
					t.Errorf("moved %v, want %v", r.ListsMoved, tc.moved)
				}
			})
		}
	}
}
