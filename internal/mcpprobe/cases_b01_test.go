// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpprobe_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/mcpprobe/fakemcp"
)

// alpha is the result of a list with the tool alpha.
var alpha = map[string]any{"tools": []any{fakemcp.Tool("alpha")}}

// streamed answers tools/list by an event stream made of pieces.
func streamed(pieces func(c *fakemcp.Call, answer string)) *fakemcp.Server {
	return fakemcp.New().On(mcp.MethodToolsList, func(c *fakemcp.Call) {
		c.Stream()
		pieces(c, c.Response(alpha))
	})
}

// Case B01, framing: what event streams look like in the wild.
func TestCaseB01Framing(t *testing.T) {
	data := fakemcp.Data
	for name, tc := range map[string]struct {
		pieces func(c *fakemcp.Call, answer string)
		want   result
	}{
		"a priming event": {func(c *fakemcp.Call, a string) { c.Send("id: 1\ndata:\n\n" + data(a)) }, proved},
		"b keep-alive comments": {func(c *fakemcp.Call, a string) {
			for range 3 {
				c.Send(": keep-alive\n\n")
				time.Sleep(100 * time.Millisecond)
			}
			c.Send(data(a))
		}, proved},
		"c ping event": {func(c *fakemcp.Call, a string) { c.Send("event: ping\ndata:\n\n" + data(a)) }, proved},
		"c ping event with data": {func(c *fakemcp.Call, a string) {
			c.Send("event: ping\ndata: {\"time\":1}\n\nevent: message\n" + data(a))
		}, proved},
		"d log message first": {func(c *fakemcp.Call, a string) {
			c.Send(data(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"FOREIGN"}}`) + data(a))
		}, proved},
		"f stays open": {func(c *fakemcp.Call, a string) { c.Send(data(a)); c.Hang() }, proved},
		"g split, CRLF": {func(c *fakemcp.Call, a string) {
			// A break inside JSON may stand only where space may.
			parts := strings.SplitAfterN(a, ",", 4)
			for _, part := range parts {
				c.Send("data: " + part + "\r\n")
			}
			c.Send("\r\n")
			c.Hang()
		}, proved},
		"g CR line ends":        {func(c *fakemcp.Call, a string) { c.Send("data: " + a + "\r\r"); c.Hang() }, proved},
		"h field without colon": {func(c *fakemcp.Call, a string) { c.Send("data\n" + data(a)) }, proved},
		"h odd fields":          {func(c *fakemcp.Call, a string) { c.Send("retry: soon\nfoo\n:\nx:y\n" + data(a)) }, proved},
		"byte-order mark":       {func(c *fakemcp.Call, a string) { c.Send("\xef\xbb\xbf" + data(a)) }, proved},
		"no space after colon":  {func(c *fakemcp.Call, a string) { c.Send("data:" + a + "\n\n") }, proved},
		"i ended": {func(c *fakemcp.Call, _ string) { c.Send("id: 1\ndata:\n\n") },
			failed(mcpprobe.StreamEnded, mcpprobe.StepTools)},
		"ended within the answer": {func(c *fakemcp.Call, a string) { c.Send("data: " + a + "\n") },
			failed(mcpprobe.StreamEnded, mcpprobe.StepTools)},
		"answer to another": {func(c *fakemcp.Call, _ string) { c.Send(data(`{"jsonrpc":"2.0","id":99,"result":{}}`)) },
			failed(mcpprobe.ListFailed, mcpprobe.StepTools).because(mcpprobe.FlawWrongID)},
		"garbage": {func(c *fakemcp.Call, _ string) { c.Send(data("FOREIGN")) },
			failed(mcpprobe.ListFailed, mcpprobe.StepTools).because(mcpprobe.FlawNotJSON)},
		"garbage, then the answer": {func(c *fakemcp.Call, a string) { c.Send(data("FOREIGN") + data(a)) }, proved},
		"cut off": {func(c *fakemcp.Call, _ string) { c.Send("data: x\n\n"); c.Drop() },
			failed(mcpprobe.ConnectionLost, mcpprobe.StepTools)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, streamed(tc.pieces))
			began := time.Now()
			wantResult(t, b.probe(), tc.want)
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("took %s: it waited for the end of the stream", took)
			}
		})
	}
}

// Case B01 e: the server asks before it answers, and answers only when it
// was answered.
func TestCaseB01ServerAsks(t *testing.T) {
	for name, tc := range map[string]struct{ ask, reply string }{
		"ping":     {`{"jsonrpc":"2.0","id":"srv-1","method":"ping"}`, `{"jsonrpc":"2.0","id":"srv-1","result":{}}`},
		"sampling": {`{"jsonrpc":"2.0","id":7,"method":"sampling/createMessage","params":{}}`, `{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"not offered by this client"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			replied := make(chan string, 1)
			fake := streamed(func(c *fakemcp.Call, answer string) {
				c.Send(fakemcp.Data(tc.ask))
				select {
				case got := <-replied:
					if got != tc.reply {
						t.Errorf("reply %s, want %s", got, tc.reply)
					}
				case <-c.R.Context().Done():
				}
				c.Send(fakemcp.Data(answer))
			})
			fake.On(fakemcp.Reply, func(c *fakemcp.Call) {
				requests := fake.Requests()
				replied <- string(requests[len(requests)-1].Body)
				c.WellBehaved()
			})
			wantResult(t, newBench(t, fake).probe(), proved)
		})
	}
	t.Run("a flood", func(t *testing.T) {
		t.Parallel()
		fake := streamed(func(c *fakemcp.Call, answer string) {
			for i := range 1000 {
				c.Send(fakemcp.Data(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, i)))
			}
			c.Send(fakemcp.Data(answer))
		})
		wantResult(t, newBench(t, fake).probe(), proved)
		if n := fake.Count(http.MethodPost); n > 20 {
			t.Errorf("%d requests: every one of the flood was answered", n)
		}
	})
}

// Case B01, acknowledgements: any 2xx will do, whatever its body.
func TestCaseB01Acknowledgements(t *testing.T) {
	for name, tc := range map[string]struct {
		ack  fakemcp.Handler
		want result
	}{
		"j 204":              {func(c *fakemcp.Call) { c.Text(204, "", "") }, proved},
		"k 200 without type": {func(c *fakemcp.Call) { c.Text(200, "", "") }, proved},
		"l 200 empty JSON":   {func(c *fakemcp.Call) { c.Text(200, "application/json", "") }, proved},
		"m 200 null":         {func(c *fakemcp.Call) { c.Text(200, "application/json", "null") }, proved},
		"n 200 {}":           {func(c *fakemcp.Call) { c.Text(200, "application/json", "{}") }, proved},
		"200 endless stream": {func(c *fakemcp.Call) { c.Stream(": x\n\n"); c.Hang() }, proved},
		"200 promised body": {func(c *fakemcp.Call) {
			c.W.Header().Set("Content-Length", "4")
			c.W.WriteHeader(200)
			c.Send("n")
			c.Hang()
		}, proved},
		"o 400 with an error": {func(c *fakemcp.Call) { c.Error(400, -32600, foreign, nil) }, failed(mcpprobe.HandshakeRejected, mcpprobe.StepInitialized)},
		"500":                 {func(c *fakemcp.Call) { c.Text(500, "text/plain", foreign) }, failed(mcpprobe.UnexpectedStatus, mcpprobe.StepInitialized)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newBench(t, fakemcp.New().On(mcp.NotificationInitialized, tc.ack)).probe()
			wantResult(t, r, tc.want)
			if tc.want.Outcome == mcpprobe.HandshakeRejected {
				wantMessage(t, r, "notifications/initialized", "-32600", "HTTP 400")
				if r.Diagnostics.PeerWords != foreign {
					t.Errorf("peer's words %q", r.Diagnostics.PeerWords)
				}
			}
		})
	}
}

// Case B01 p: a fresh session id with every response.
func TestCaseB01SessionChanges(t *testing.T) {
	n := 0
	fake := fakemcp.New()
	fake.Settings.Stateless = true
	fake.On(fakemcp.Any, func(c *fakemcp.Call) {
		n++
		c.W.Header().Set(mcp.HeaderSessionID, fmt.Sprintf("fresh-%d", n))
		c.Default()
	})
	wantResult(t, newBench(t, fake).probe(), proved)
}

// Case B02: cursors.
func TestCaseB02Cursors(t *testing.T) {
	page := func(c *fakemcp.Call, next string, names ...string) {
		tools := []any{}
		for _, name := range names {
			tools = append(tools, fakemcp.Tool(name))
		}
		result := map[string]any{"tools": tools}
		if next != "" {
			result["nextCursor"] = next
		}
		c.Result(result)
	}
	t.Run("a same tool, same cursor", func(t *testing.T) {
		fake := fakemcp.New().On(mcp.MethodToolsList, func(c *fakemcp.Call) { page(c, "same", "t1") })
		r := newBench(t, fake).probe()
		wantResult(t, r, result{Outcome: mcpprobe.Proved, Step: mcpprobe.StepDone, Tools: "t1"})
		if n := fake.Count(mcp.MethodToolsList); n > 5 || !r.Truncated || len(warned(r, mcpprobe.WarnCursorLoop)) != 1 {
			t.Errorf("%d pages, truncated %v, warnings %v", n, r.Truncated, r.Warnings)
		}
		wantMessage(t, r, "cut at the probe's bounds")
	})
	t.Run("b new tools without end", func(t *testing.T) {
		n := 0
		fake := fakemcp.New().On(mcp.MethodToolsList, func(c *fakemcp.Call) {
			n++
			page(c, fmt.Sprintf("c%d", n+1), fmt.Sprintf("t%d", n))
		})
		r := newBench(t, fake).probe()
		if got := fake.Count(mcp.MethodToolsList); got != mcpprobe.DefaultBounds().Pages || *r.Tools.Count() != got || !r.Truncated {
			t.Errorf("%d pages, %d tools, truncated %v", got, *r.Tools.Count(), r.Truncated)
		}
		if len(warned(r, mcpprobe.WarnListCut)) != 1 || r.Outcome != mcpprobe.Proved {
			t.Errorf("%s, warnings %v", r.Outcome, r.Warnings)
		}
	})
	t.Run("c constant cursor that advances", func(t *testing.T) {
		names := []string{"x", "y", "z"}
		fake := fakemcp.New().On(mcp.MethodToolsList, func(c *fakemcp.Call) {
			name, next := names[0], "same"
			if names = names[1:]; len(names) == 0 {
				next = ""
			}
			page(c, next, name)
		})
		r := newBench(t, fake).probe()
		wantResult(t, r, result{Outcome: mcpprobe.Proved, Step: mcpprobe.StepDone, Tools: "x,y,z"})
		if r.Truncated || len(r.Warnings) != 0 {
			t.Errorf("truncated %v, warnings %v", r.Truncated, r.Warnings)
		}
	})
	t.Run("d slow pages", func(t *testing.T) {
		n := 0
		fake := fakemcp.New().On(mcp.MethodToolsList, func(c *fakemcp.Call) {
			if n++; n > 1 {
				time.Sleep(200 * time.Millisecond)
			}
			page(c, fmt.Sprintf("c%d", n+1), fmt.Sprintf("t%d", n))
		})
		b := newBench(t, fake)
		b.target.Timeout = 4 * time.Second
		began := time.Now()
		r := b.probe()
		if took := time.Since(began); took > time.Minute || r.Outcome != mcpprobe.Proved || !r.Truncated {
			t.Errorf("took %s: %s, truncated %v", took, r.Outcome, r.Truncated)
		}
	})
	t.Run("e empty pages", func(t *testing.T) {
		n := 0
		fake := fakemcp.New().On(mcp.MethodToolsList, func(c *fakemcp.Call) { n++; page(c, fmt.Sprintf("c%d", n)) })
		r := newBench(t, fake).probe()
		if got := fake.Count(mcp.MethodToolsList); got > 5 || len(warned(r, mcpprobe.WarnCursorLoop)) != 1 || *r.Tools.Count() != 0 {
			t.Errorf("%d pages, warnings %v", got, r.Warnings)
		}
	})
	t.Run("too many tools", func(t *testing.T) {
		fake := fakemcp.New()
		fake.SetTools(20)
		b := newBench(t, fake)
		b.bounds.Tools = 10
		if r := b.probe(); *r.Tools.Count() != 10 || !r.Truncated {
			t.Errorf("%d tools, truncated %v", *r.Tools.Count(), r.Truncated)
		}
		b.bounds.Tools = 20
		if r := b.probe(); *r.Tools.Count() != 20 || r.Truncated {
			t.Errorf("%d tools, truncated %v", *r.Tools.Count(), r.Truncated)
		}
	})
	t.Run("odd cursors", func(t *testing.T) {
		for _, cursor := range []any{nil, "", 1, map[string]any{}, []any{}} {
			fake := fakemcp.New().On(mcp.MethodToolsList, func(c *fakemcp.Call) {
				c.Result(map[string]any{"tools": alpha["tools"], "nextCursor": cursor})
			})
			wantResult(t, newBench(t, fake).probe(), proved)
			if n := fake.Count(mcp.MethodToolsList); n != 1 {
				t.Errorf("cursor %v followed: %d pages", cursor, n)
			}
		}
	})
	t.Run("an error on the second page", func(t *testing.T) {
		fake := fakemcp.New().On(mcp.MethodToolsList, func(c *fakemcp.Call) {
			if c.Cursor() != "" {
				c.Error(200, -32602, foreign, nil)
				return
			}
			page(c, "next", "t1")
		})
		wantResult(t, newBench(t, fake).probe(), failed(mcpprobe.ListFailed, mcpprobe.StepTools))
	})
}
