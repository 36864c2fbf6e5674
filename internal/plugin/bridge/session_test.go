// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpprobe/fakemcp"
)

// lively is a legacy server that tells of changes, and whose GET stream
// stands.
func lively() *fakemcp.Server {
	s := fakemcp.New()
	s.Settings.Capabilities = map[string]any{
		"tools": map[string]any{"listChanged": true}, "prompts": map[string]any{"listChanged": true},
		"resources": map[string]any{"subscribe": true}, "logging": map[string]any{},
	}
	empty := func(c *fakemcp.Call) { c.Result(map[string]any{}) }
	s.On(mcp.MethodSetLevel, empty).On(mcp.MethodSubscribe, empty).On(mcp.MethodUnsubscribe, empty).On(mcp.MethodPing, empty)
	s.On(fakemcp.GET, func(c *fakemcp.Call) {
		if c.OpenSessions() == 0 {
			c.Text(http.StatusNotFound, "text/plain", "unknown session")
			return
		}
		c.Stream(": standing\n\n")
		c.Hang()
	})
	return s
}

// replaced puts another server in the place of the one that is there.
func replaced(t *testing.T, at *place, s *fakemcp.Server) {
	t.Helper()
	at.set("")
	at.serve(t, s)
}

const (
	toolsChanged   = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`
	promptsChanged = `{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}`
)

// A pod is replaced. The standing stream shows it: the session is opened again
// as the client did, what it had set is set, and it is told to read again.
func TestSessionIsOpenedAgain(t *testing.T) {
	first := lively()
	at := fake(t, first)
	r := connect(t, at)
	r.shake()
	level := `{"jsonrpc":"2.0","id":"l","method":"logging/setLevel","params":{"level":"debug","x":1}}`
	a := `{"jsonrpc":"2.0","id":"a","method":"resources/subscribe","params":{"uri":"x://a"}}`
	b := `{"jsonrpc":"2.0","id":"b","method":"resources/subscribe","params":{"uri":"x://b"}}`
	for _, line := range []string{level, a, b} {
		r.send(line)
		r.until(`"result":{}`)
	}
	r.send(`{"jsonrpc":"2.0","id":"u","method":"resources/unsubscribe","params":{"uri":"x://b"}}`)
	r.until(`"id":"u"`)
	eventually(t, "the standing stream", func() bool { return first.Count(fakemcp.GET) == 1 })

	second := lively()
	replaced(t, at, second)
	r.expectAll(toolsChanged, promptsChanged, `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"x://a"}}`)
	var got []string
	for _, request := range second.Requests() {
		if request.HTTP == http.MethodPost {
			got = append(got, string(request.Body))
		}
	}
	if want := strings.Join([]string{hello, initialized, level, a}, "\n"); strings.Join(got, "\n") != want {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
	eventually(t, "the new standing stream", func() bool { return second.Count(fakemcp.GET) == 2 })
	r.send(`{"jsonrpc":"2.0","id":9,"method":"tools/list"}`)
	r.until(`"id":9`, `"alpha"`)
	r.close()
	if second.Count(fakemcp.DELETE) != 1 || second.OpenSessions() != 0 {
		t.Errorf("%d DELETE, %d sessions are left", second.Count(fakemcp.DELETE), second.OpenSessions())
	}
	for _, request := range second.Requests() {
		if version := request.Header.Get("Mcp-Protocol-Version"); request.Method != mcp.MethodInitialize && request.HTTP != http.MethodGet && version != "2025-06-18" {
			t.Errorf("%s %s with version %q", request.HTTP, request.Method, version)
		}
	}
}

// A server without a standing stream: the next request finds the session lost.
// It was refused, so even a call is sent again, once.
func TestLostSessionIsFoundByACall(t *testing.T) {
	for name, unknown := range map[string]fakemcp.Handler{
		"404": nil,
		"as the examples of the TypeScript SDK": func(c *fakemcp.Call) {
			if c.R.Header.Get("Mcp-Session-Id") != "s-1" || c.OpenSessions() > 0 {
				c.WellBehaved()
				return
			}
			c.Text(http.StatusBadRequest, "application/json", `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := fakemcp.New()
			s.Settings.Capabilities = map[string]any{"tools": map[string]any{"listChanged": true}}
			at := fake(t, s)
			r := connect(t, at)
			r.shake()
			r.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
			r.until(`"id":1`)
			// What asks for the standing stream would find the loss, if it came later.
			eventually(t, "the question for a standing stream", func() bool { return s.Count(fakemcp.GET) == 1 })
			second := fakemcp.New()
			second.Settings.Capabilities = s.Settings.Capabilities
			if unknown != nil {
				second.On(mcp.MethodToolsCall, unknown)
			}
			replaced(t, at, second)
			r.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"alpha","arguments":{"n":1}}}`)
			r.expectAll(toolsChanged, `{"id":2,"jsonrpc":"2.0","result":{"content":[{"text":"{\"n\":1}","type":"text"}]}}`)
			if n := second.Count(mcp.MethodToolsCall); n != 2 {
				t.Errorf("the call was sent %d times, want once in vain and once in the new session", n)
			}
			if n := second.Count(mcp.MethodInitialize); n != 1 {
				t.Errorf("%d handshakes", n)
			}
		})
	}
}

// Many requests that find the session lost open one new one.
func TestOneNewSessionForAll(t *testing.T) {
	s := fakemcp.New()
	at := fake(t, s)
	r := connect(t, at)
	r.shake()
	second := fakemcp.New()
	replaced(t, at, second)
	const many = 50
	var want []string
	for i := range many {
		id := strconv.Itoa(i)
		r.send(`{"jsonrpc":"2.0","id":"` + id + `","method":"tools/call","params":{"name":"alpha","arguments":{}}}`)
		want = append(want, `{"id":"`+id+`","jsonrpc":"2.0","result":{"content":[{"text":"{}","type":"text"}]}}`)
	}
	r.expectAll(want...)
	if n := second.MostSessions(); n != 1 {
		t.Errorf("%d sessions were opened", n)
	}
}

// A connection ends before the answer: a read is repeated, a call is not.
func TestLostConnection(t *testing.T) {
	for _, era := range []string{"legacy", "modern"} {
		t.Run(era, func(t *testing.T) {
			s := fakemcp.New()
			s.Settings.Modern = true
			var calls, lists atomic.Int32
			s.On(mcp.MethodToolsCall, func(c *fakemcp.Call) {
				calls.Add(1)
				c.Drop()
			})
			s.On(mcp.MethodToolsList, func(c *fakemcp.Call) {
				if lists.Add(1) == 1 {
					c.Drop()
				}
				c.WellBehaved()
			})
			s.On(mcp.MethodPing, (*fakemcp.Call).Drop)
			r := connect(t, fake(t, s))
			more := ""
			if era == "legacy" {
				r.shake()
			} else {
				more = meta
			}
			r.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"alpha"` + join(more) + `}}`)
			r.until(`"id":1`, `"reason":"ConnectionLost"`, `not sent again`)
			r.send(`{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{` + more + `}}`)
			r.until(`"id":2`, `"alpha"`)
			// What breaks the connection each time is given up.
			r.send(`{"jsonrpc":"2.0","id":3,"method":"ping","params":{` + more + `}}`)
			r.until(`"id":3`, `"reason":"ConnectionLost"`)
			if calls.Load() != 1 || lists.Load() != 2 {
				t.Errorf("%d calls and %d lists", calls.Load(), lists.Load())
			}
		})
	}
}

func join(more string) string {
	if more == "" {
		return ""
	}
	return "," + more
}

// While nobody listens, a call waits; then it is sent, once.
func TestCallWaitsForAReplica(t *testing.T) {
	at := &place{}
	r := connect(t, at)
	r.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"alpha","arguments":{},` + meta + `}}`)
	s := fakemcp.New()
	s.Settings.Modern = true
	at.serve(t, s)
	r.until(`"id":1`, `"result"`)
	if n := s.Count(mcp.MethodToolsCall); n != 1 {
		t.Errorf("%d calls", n)
	}
	// One of our servers that says that it has no catalog yet is no other case.
	var refused atomic.Bool
	s.On(mcp.MethodToolsCall, func(c *fakemcp.Call) {
		if refused.CompareAndSwap(false, true) {
			c.Error(http.StatusServiceUnavailable, mcp.CodeUnavailable, "draining", nil)
			return
		}
		c.WellBehaved()
	})
	r.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"alpha","arguments":{},` + meta + `}}`)
	r.until(`"id":2`, `"result"`)
}

// A stream that ends before its answer is taken up where it ended.
func TestStreamIsTakenUp(t *testing.T) {
	s := lively()
	progress := `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":1}}`
	s.On(mcp.MethodToolsCall, func(c *fakemcp.Call) {
		c.Stream("id: s1-0\nretry: 1\ndata:\n\n", "id: s1-1\n"+fakemcp.Data(progress))
	})
	s.On(fakemcp.GET, func(c *fakemcp.Call) {
		switch c.R.Header.Get("Last-Event-Id") {
		case "s1-1":
			c.Stream("id: s1-2\n" + fakemcp.Data(progress)) // It ends early once more.
		case "s1-2":
			c.Stream("id: s1-3\n" + fakemcp.Data(`{"jsonrpc":"2.0","id":4,"result":{"content":[]}}`))
		default:
			c.Stream(": standing\n\n")
			c.Hang()
		}
	})
	r := connect(t, fake(t, s))
	r.shake()
	r.send(`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"alpha"}}`)
	r.expect(progress)
	r.expect(progress)
	r.expect(`{"jsonrpc":"2.0","id":4,"result":{"content":[]}}`)
	if n := s.Count(mcp.MethodToolsCall); n != 1 {
		t.Errorf("%d calls", n)
	}
	// Where the session is no more the call is not sent again.
	s.On(fakemcp.GET, func(c *fakemcp.Call) { c.Text(http.StatusNotFound, "", "") })
	r.send(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"alpha"}}`)
	r.until(`"id":5`, `"reason":"ConnectionLost"`)
	if n := s.Count(mcp.MethodToolsCall); n != 2 {
		t.Errorf("%d calls", n)
	}
}

// The standing stream goes on after the event that came last.
func TestStandingStreamIsResumed(t *testing.T) {
	s := lively()
	note := `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}`
	s.On(fakemcp.GET, func(c *fakemcp.Call) {
		if c.R.Header.Get("Last-Event-Id") == "" {
			c.Stream("id: 7\nretry: 1\n" + fakemcp.Data(note))
			return
		}
		c.Stream(fakemcp.Data(`{"jsonrpc":"2.0","method":"after","params":{"id":"` + c.R.Header.Get("Last-Event-Id") + `"}}`))
		c.Hang()
	})
	r := connect(t, fake(t, s))
	r.shake()
	r.expect(note)
	r.expect(`{"jsonrpc":"2.0","method":"after","params":{"id":"7"}}`)
}

// Questions of the server reach the client, and its answers the session that
// asked; those of a session that is lost are taken back.
func TestQuestions(t *testing.T) {
	s := lively()
	question := `{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{}}`
	answers := make(chan string, 10)
	s.On(fakemcp.GET, func(c *fakemcp.Call) {
		c.Stream(fakemcp.Data(question))
		c.Hang()
	})
	s.On(fakemcp.Reply, func(c *fakemcp.Call) { c.WellBehaved() })
	at := fake(t, s)
	r := connect(t, at)
	r.shake()
	r.expect(question)
	second := lively()
	second.On(fakemcp.Any, func(c *fakemcp.Call) {
		if c.Method == "" && c.R.Method == http.MethodPost {
			answers <- c.R.Header.Get("Mcp-Session-Id")
		}
		c.Default()
	})
	replaced(t, at, second)
	r.until(`"method":"notifications/cancelled"`, `"requestId":1`)
	r.until("prompts/list_changed")
	r.send(`{"jsonrpc":"2.0","id":1,"result":{"late":true}}`)
	r.send(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	r.until(`"id":2`)
	select {
	case <-answers:
		t.Error("the new session got the answer to a question of the old one")
	default:
	}
}

// A second initialize ends the first session and begins anew.
func TestSecondInitialize(t *testing.T) {
	s := fakemcp.New()
	r := connect(t, fake(t, s))
	r.shake()
	r.shake()
	r.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	r.until(`"id":1`, "alpha")
	if s.OpenSessions() != 1 || s.Count(fakemcp.DELETE) != 1 {
		t.Errorf("%d sessions, %d DELETE", s.OpenSessions(), s.Count(fakemcp.DELETE))
	}
}
