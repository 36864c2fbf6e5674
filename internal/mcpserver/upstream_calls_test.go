// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/mcpprobe/fakemcp"
	"github.com/espalier-dev/espalier/internal/mcpserver"
	"github.com/espalier-dev/espalier/internal/podreport"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// TestUpstreamAnswers: what an upstream answers is the tool's answer, or a
// failure with a word.
func TestUpstreamAnswers(t *testing.T) {
	server, p := fakePeer(t, true, "a")
	f := start(t, fronting(p.upstream("u", "")), hurried)
	f.lists("a", "own")
	for name, test := range map[string]struct {
		answer       fakemcp.Handler
		reason, want string
	}{
		"error":      {func(c *fakemcp.Call) { c.Error(http.StatusOK, -32000, "no such file", nil) }, "UpstreamError", `"no such file"`},
		"isError":    {func(c *fakemcp.Call) { c.Result(map[string]any{"isError": true, "content": []any{}}) }, "", `"isError":true`},
		"structured": {func(c *fakemcp.Call) { c.Result(map[string]any{"content": []any{}, "structuredContent": []int{1}}) }, "", `"structuredContent":[1]`},
		"meta": {func(c *fakemcp.Call) {
			c.Result(map[string]any{"content": []any{}, "_meta": map[string]any{"mine": 1, "io.modelcontextprotocol/x": 2}})
		}, "", `,"mine":1}`},
		"of an unknown type": {func(c *fakemcp.Call) { c.Result(map[string]any{"resultType": "task", "taskId": "s"}) }, "InvalidResult", ""},
		"no JSON":            {func(c *fakemcp.Call) { c.Text(http.StatusOK, "application/json", "}{") }, "UpstreamUnavailable", ""},
		"breaks":             {(*fakemcp.Call).Drop, "UpstreamUnavailable", ""},
		"too large":          {func(c *fakemcp.Call) { c.Result(map[string]any{"content": []any{strings.Repeat("x", 2<<20)}}) }, "ResultTooLarge", ""},
		"pretty words": {func(c *fakemcp.Call) {
			c.Stream(fakemcp.Data(strings.ReplaceAll(c.Response(map[string]any{"content": []any{}}), ",", ",\ndata: ")))
		}, "", `"content":[]`},
	} {
		server.On("tools/call", test.answer)
		got := f.do(f.callModern("a", `{}`))
		if got.status != http.StatusOK || got.reason() != test.reason || !strings.Contains(got.body, test.want) || got.errorCode() != 0 {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
		if !json.Valid([]byte(got.body)) || strings.Contains(got.body, "io.modelcontextprotocol/x") {
			t.Errorf("%s: %s", name, got.body)
		}
	}
}

// TestUpstreamSchemas: one that cannot be compiled here is listed as it is,
// flagged, and applied by the upstream alone; another one is applied here.
func TestUpstreamSchemas(t *testing.T) {
	server, p := fakePeer(t, true)
	server.Settings.Tools = []json.RawMessage{
		json.RawMessage(`{"name":"odd","inputSchema":{"type":"object","$ref":"https://example.com/s"},"outputSchema":{"$ref":"https://example.com/s"}}`),
		json.RawMessage(`{"name":"strict","inputSchema":{"type":"object","required":["x"]}}`),
		json.RawMessage(`{"name":"` + strings.Repeat("n", 65) + `","inputSchema":{"type":"object"}}`),
		json.RawMessage(`{"name":"none"}`),
		json.RawMessage(`{"name":"task","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}}`),
	}
	f := start(t, fronting(p.upstream("u", "")), hurried)
	f.lists(strings.Repeat("n", 65), "odd", "own", "strict")
	if got := f.do(f.callModern("odd", `{"anything":[1]}`)); got.text() != `{"anything":[1]}` {
		t.Errorf("odd answers %s", got.body)
	}
	if got := f.do(f.callModern("strict", `{}`)); got.reason() != "InvalidArguments" {
		t.Errorf("strict answers %s", got.body)
	}
	if body := f.do(f.modern("tools/list", "")).body; !strings.Contains(body, `"inputSchema":{"type":"object","$ref":"https://example.com/s"}`) {
		t.Errorf("listed %s", body)
	}
	report := f.server.Report()
	want := []podreport.NotServed{{Kind: "tool", Name: strings.Repeat("n", 65), Reason: "LongName"}, {Kind: "tool", Name: "odd", Reason: "SchemaNotChecked"}}
	if !slices.Equal(report.Flagged, want) {
		t.Errorf("flagged %v", report.Flagged)
	}
	if want := []podreport.NotServed{{Kind: "tool", Name: "none", Reason: "InvalidInputSchema"}, {Kind: "tool", Name: "task", Reason: "TasksUnsupported"}}; !slices.Equal(report.NotServed, want) {
		t.Errorf("not served %v", report.NotServed)
	}
}

// TestUpstreamInACircle: a server that has itself as upstream answers.
func TestUpstreamInACircle(t *testing.T) {
	var f *fixture
	loop := newPeer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		again, err := http.NewRequestWithContext(r.Context(), r.Method, f.url(), strings.NewReader(string(body)))
		if err != nil {
			return
		}
		again.Header = r.Header.Clone()
		response, err := f.client.Do(again)
		if err != nil {
			return
		}
		defer response.Body.Close()
		w.Header().Set("Content-Type", response.Header.Get("Content-Type"))
		w.WriteHeader(response.StatusCode)
		_, _ = io.Copy(w, response.Body)
	}))
	c := fronting()
	f = start(t, c, hurried)
	u := loop.upstream("me", "x_")
	u.Include = []string{"own", "x_*"}
	c = fronting(u)
	c.Policy.Max = 20
	f.reload(c)
	name := "own"
	for range 12 {
		name = "x_" + name
		f.until("the tool "+name, func() bool { return slices.Contains(f.names(), name) })
	}
	if got := f.do(f.callModern("x_x_own", `{}`)); got.text() != "own" {
		t.Errorf("two hops answer %s", got.body)
	}
	if got := f.do(f.callModern(name, `{}`)); !strings.Contains(got.body, "came through 8 servers") {
		t.Errorf("twelve hops answer %s", got.body)
	}
}

// askers call one tool with the same id and the same progress token, in both
// eras, over one pooled upstream. Each gets its own answer and progress.
func TestUpstreamAskersGetTheirOwn(t *testing.T) {
	for _, modern := range []bool{true, false} {
		t.Run(fmt.Sprintf("modern=%t", modern), func(t *testing.T) {
			server, p := fakePeer(t, modern, "a")
			var mu sync.Mutex
			tokens := map[string]bool{}
			server.On("tools/call", func(c *fakemcp.Call) {
				var params struct {
					Arguments json.RawMessage            `json:"arguments"`
					Meta      map[string]json.RawMessage `json:"_meta"`
				}
				_ = json.Unmarshal(c.Params, &params)
				token := string(params.Meta["progressToken"])
				mu.Lock()
				if tokens[token] || string(params.Meta["trace"]) == "" {
					t.Errorf("token %s came twice, or the caller's own _meta did not: %s", token, c.Params)
				}
				tokens[token] = true
				mu.Unlock()
				c.Stream(fakemcp.Data(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + token + `,"progress":1,"message":` + string(params.Arguments[len(`{"n":`):len(params.Arguments)-1]) + `}}`))
				time.Sleep(2 * time.Millisecond)
				c.Send(fakemcp.Data(c.Response(map[string]any{"resultType": "complete", "content": []any{map[string]any{"type": "text", "text": string(params.Arguments)}}})))
			})
			f := start(t, fronting(p.upstream("u", "")), hurried)
			f.lists("a", "own")
			var all sync.WaitGroup
			for n := range 64 {
				all.Go(func() { ask(t, f, n, n%2 == 0) })
			}
			all.Wait()
			if server.MostSessions() > 1 {
				t.Errorf("%d sessions", server.MostSessions())
			}
		})
	}
}

func ask(t *testing.T, f *fixture, n int, modern bool) {
	params := fmt.Sprintf(`"name":"a","arguments":{"n":"%d"}`, n)
	meta := `"progressToken":"same","trace":"t"`
	r := f.post(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{` + params + `,"_meta":{` + meta + `}}}`)
	if modern {
		r = f.post(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{` + params + `,` + strings.TrimSuffix(modernMeta, "}") + `,` + meta + `}}}`)
		r.Header.Set("Mcp-Protocol-Version", "2026-07-28")
		r.Header.Set("Mcp-Method", "tools/call")
		r.Header.Set("Mcp-Name", "a")
	}
	got := f.do(r)
	events := strings.Split(strings.TrimSpace(got.body), "\n\n")
	own := fmt.Sprintf("%d", n)
	if len(events) != 2 || !strings.Contains(events[0], `{"progressToken":"same","progress":1,"message":"`+own+`"}`) ||
		!strings.Contains(events[1], `"id":7`) || !strings.Contains(events[1], `\"n\":\"`+own+`\"`) {
		t.Errorf("asker %d got %s", n, got.body)
	}
}

// TestUpstreamCallerLeaves: its call is cancelled behind, others go on.
func TestUpstreamCallerLeaves(t *testing.T) {
	server, p := fakePeer(t, false, "a")
	f := start(t, fronting(p.upstream("u", "")), hurried, func(o *mcpserver.Options) { o.Upstreams.Health = time.Hour })
	f.lists("a", "own")
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	server.On("tools/call", func(c *fakemcp.Call) {
		leave()
		c.Hang()
	})
	response, err := f.client.Do(f.callModern("a", `{}`).WithContext(ctx))
	if err == nil {
		response.Body.Close()
		t.Fatal("it was answered")
	}
	f.until("the cancellation", func() bool { return server.Count("notifications/cancelled") == 1 })
	server.On("tools/call", nil)
	if got := f.do(f.callModern("a", `{}`)); got.text() != "{}" {
		t.Errorf("the next call answers %s", got.body)
	}
}

// TestUpstreamDeadOnes: whatever they do, they are named and harm nobody.
func TestUpstreamDeadOnes(t *testing.T) {
	var upstreams []serverconfig.Upstream
	for _, mode := range []string{"drop", "garbage", "html", "refuse", "huge", "hang"} {
		server := fakemcp.New()
		must(t, server.SetMode(mode))
		web := httptest.NewServer(server)
		t.Cleanup(func() {
			server.Release()
			web.CloseClientConnections()
			web.Close()
		})
		upstreams = append(upstreams, serverconfig.Upstream{Name: mode, Connection: serverconfig.Connection{URL: web.URL}})
	}
	_, p := fakePeer(t, true, "a")
	f := start(t, fronting(append(upstreams, p.upstream("good", ""))...), hurried, func(o *mcpserver.Options) { o.Upstreams.Handshake = time.Second })
	f.lists("a", "own")
	f.until("their reasons", func() bool {
		got := f.upstreams()
		return strings.Count(got, "Unavailable") == 6 && strings.Contains(got, "good Ready 1") && strings.Contains(got, "hang Unavailable 0 Timeout")
	})
}

// TestKindsBesideUpstreams: tools that come and go leave the other lists alone.
func TestKindsBesideUpstreams(t *testing.T) {
	_, p := fakePeer(t, true, "a")
	c := kinds(nil)
	c.Upstreams, c.Policy = []serverconfig.Upstream{p.upstream("u", "")}, &serverconfig.ToolsPolicy{Max: 100}
	f := start(t, c, hurried)
	answers := func() {
		t.Helper()
		for want, request := range map[string]*http.Request{
			`{"resources":[{"name":"x","uri":"x:a"},{"name":"x","uri":"x:b"}]`: f.modern("resources/list", ""),
			`{"resourceTemplates":[{"name":"x","uriTemplate":"x:t/{v}"}]`:      f.modern("resources/templates/list", ""),
			`{"prompts":[{"name":"p","description":"Says \"p\"."}]`:            f.modern("prompts/list", ""),
			`"text":"text of x:a"`:                                f.read("x:a"),
			`"messages":[{"role":"user","content":{"type":"text"`: f.prompt("p", `{}`),
		} {
			if got := f.do(request).body; !strings.Contains(got, want) {
				t.Errorf("got %s, want %s", got, want)
			}
		}
	}
	f.lists("a", "t")
	answers()
	p.down()
	f.lists("t")
	answers()
	p.up()
	f.lists("a", "t")
	answers()
	if got := f.do(f.callModern("a", `{"x":1}`)); got.text() != `{"x":1}` {
		t.Errorf("a answers %s", got.body)
	}
}
