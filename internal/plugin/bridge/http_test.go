// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpprobe/fakemcp"
)

// The bytes of a message are nobody's business: unknown members, numbers that
// no float64 holds, order and escapes stay.
func TestBytes(t *testing.T) {
	s := fakemcp.New()
	answer := `{"id":"a\u0062","x":[1E400,18446744073709551616,0.10],"result":{"zeta":"\u00e9","_meta":{"k/v":null},"content":[]},"jsonrpc":"2.0"}`
	s.On(mcp.MethodToolsCall, func(c *fakemcp.Call) { c.Text(200, "application/json; charset=utf-8", answer) })
	note := `{"method":"notifications/message","params":{"level":"info","data":1e999},"jsonrpc":"2.0"}`
	s.On(mcp.MethodPromptsGet, func(c *fakemcp.Call) {
		c.Stream(": hello\n\n", fakemcp.Data(note), "event: other\n"+fakemcp.Data(`{"jsonrpc":"2.0","method":"x"}`), fakemcp.Data(`not json`),
			"data: {\"jsonrpc\":\"2.0\",\r\ndata:  \"id\":2.0,\ndata: \"result\":{\"n\":1.0}}\n\n")
	})
	r := connect(t, fake(t, s))
	r.shake()
	call := `{"params":{"arguments":{"n":123456789012345678901234567890},"name":"alpha","_meta":{"progressToken":0.50}},"extra":[ ],"id":"a\u0062","method":"tools/call","jsonrpc":"2.0"}`
	r.send(call)
	r.expect(answer)
	r.send("  " + `{"jsonrpc":"2.0","id":2.0,"method":"prompts/get","params":{"name":"p"}}` + "\r")
	r.expect(note)
	r.expect(`{"jsonrpc":"2.0","id":2.0,"result":{"n":1.0}}`) // One message is one line.
	for _, request := range s.Requests() {
		if request.Method == mcp.MethodToolsCall && string(request.Body) != call {
			t.Errorf("sent  %s\nwant %s", request.Body, call)
		}
		if request.Method == mcp.MethodInitialize && string(request.Body) != hello {
			t.Errorf("sent %s", request.Body)
		}
	}
}

// What the modern era wants in headers is there, and no session.
func TestModernHeaders(t *testing.T) {
	s := fakemcp.New()
	s.Settings.Modern, s.Settings.Legacy = true, false
	r := connect(t, fake(t, s), func(o *Options) {
		o.Header = func() (http.Header, error) { return http.Header{"X-Api-Key": {"secret"}}, nil }
	})
	for _, one := range []struct{ method, params, name string }{
		{"server/discover", "", ""},
		{"tools/call", `"name":"alpha","arguments":{},`, "alpha"},
		{"prompts/get", `"name":" odd ",`, "=?base64?IG9kZCA=?="},
		{"resources/read", `"uri":"x://ä",`, "=?base64?eDovL8Ok?="},
		{"tools/list", "", ""},
	} {
		r.send(`{"jsonrpc":"2.0","id":1,"method":"` + one.method + `","params":{` + one.params + meta + `}}`)
		r.until(`"id":1`)
		all := s.Requests()
		header := all[len(all)-1].Header
		if got := header.Get("Mcp-Name"); got != one.name {
			t.Errorf("%s: Mcp-Name is %q, want %q", one.method, got, one.name)
		}
		if header.Get("Mcp-Method") != one.method || header.Get("Mcp-Protocol-Version") != "2026-07-28" || header.Get("Mcp-Session-Id") != "" ||
			header.Get("X-Api-Key") != "secret" || header.Get("User-Agent") != "test" || !strings.Contains(header.Get("Accept"), "text/event-stream") {
			t.Errorf("%s: headers are %v", one.method, header)
		}
	}
}

// Arguments that a tool wants mirrored are, as the list told, and when the
// server finds that they are not what it wants, after a look at its list.
func TestMirroredArguments(t *testing.T) {
	s := fakemcp.New()
	s.Settings.Modern, s.Settings.Legacy = true, false
	tool := `{"name":"alpha","inputSchema":{"type":"object","properties":{"r":{"type":"string","x-mcp-header":"Region"},"n":{"type":"integer","x-mcp-header":"N"}}}}`
	s.Settings.Tools = append(s.Settings.Tools[:0], []byte(tool))
	s.On(mcp.MethodToolsCall, func(c *fakemcp.Call) {
		if c.R.Header.Get("Mcp-Param-Region") != "eu" || c.R.Header.Get("Mcp-Param-N") != "9007199254740993" {
			c.Error(http.StatusBadRequest, mcp.CodeHeaderMismatch, "mismatch", nil)
			return
		}
		c.WellBehaved()
	})
	call := `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"alpha","arguments":{"r":"eu","n":9007199254740993},` + meta + `}}`
	r := connect(t, fake(t, s))
	r.send(call)
	r.until(`"id":7`, `"result"`)
	if got := s.Count(mcp.MethodToolsCall); got != 2 {
		t.Errorf("%d calls, want one in vain and one after a look at the list", got)
	}
	r.send(call)
	r.until(`"id":7`, `"result"`)
	if got := s.Count(mcp.MethodToolsList); got != 1 {
		t.Errorf("%d lists, want 1", got)
	}
	again := connect(t, r.place)
	again.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + meta + `}}`)
	again.until(`"id":1`)
	again.send(call)
	again.until(`"id":7`, `"result"`)
	if got := s.Count(mcp.MethodToolsCall); got != 4 {
		t.Errorf("%d calls, want 4: a client that lists needs no second try", got)
	}
	// What the server refuses for good is told in its own words.
	s.On(mcp.MethodToolsCall, func(c *fakemcp.Call) { c.Error(http.StatusBadRequest, mcp.CodeHeaderMismatch, "never", nil) })
	again.send(call)
	again.expect(`{"jsonrpc":"2.0","id":7,"error":{"code":-32020,"message":"never"}}`)
}

// A refusal becomes an answer to the request, whatever form it has.
func TestRefusals(t *testing.T) {
	for name, tt := range map[string]struct {
		answer fakemcp.Handler
		want   []string
	}{
		"an error of the server passes": {
			func(c *fakemcp.Call) { c.Error(http.StatusBadRequest, -32602, "no such thing", map[string]any{"a": 1}) },
			[]string{`{"jsonrpc":"2.0","id":5,"error":{"code":-32602,"data":{"a":1},"message":"no such thing"}}`},
		},
		"an error without an id": {
			func(c *fakemcp.Call) {
				c.Text(http.StatusBadRequest, "application/json", `{"jsonrpc":"2.0","error":{"code":-32600,"message":"bad","more":1e400}}`)
			},
			[]string{`{"jsonrpc":"2.0","id":5,"error":{"code":-32600,"message":"bad","more":1e400}}`},
		},
		"such an error with success": {
			func(c *fakemcp.Call) {
				c.Text(http.StatusOK, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"bad"}}`)
			},
			[]string{`{"jsonrpc":"2.0","id":5,"error":{"code":-32600,"message":"bad"}}`},
		},
		"a status alone": {
			func(c *fakemcp.Call) { c.Text(http.StatusTeapot, "text/html", "<html>secret") },
			[]string{`"id":5`, `HTTP status 418`, `"reason":"UnexpectedStatus"`},
		},
		"no credential": {
			func(c *fakemcp.Call) { c.Text(http.StatusUnauthorized, "", "") },
			[]string{`"id":5`, `"code":-31005`, `--token-file`},
		},
		"a redirect to another place": {
			func(c *fakemcp.Call) {
				c.W.Header().Set("Location", "http://elsewhere.example/")
				c.Text(http.StatusTemporaryRedirect, "", "")
			},
			[]string{`"id":5`, `redirects`},
		},
		"no message": {
			func(c *fakemcp.Call) { c.Text(http.StatusOK, "application/json", "}{") },
			[]string{`"id":5`, `"reason":"NotMCP"`},
		},
		"another's answer": {
			func(c *fakemcp.Call) { c.Stream(fakemcp.Data(`{"jsonrpc":"2.0","id":6,"result":{}}`)) },
			[]string{`"id":5`, `"reason":"ConnectionLost"`},
		},
		"a page": {
			func(c *fakemcp.Call) { c.Text(http.StatusOK, "text/html", "<html></html>") },
			[]string{`"id":5`, `"reason":"NotMCP"`},
		},
		"too much": {
			func(c *fakemcp.Call) { c.Result(map[string]any{"x": strings.Repeat("x", 2<<20)}) },
			[]string{`"id":5`, `"reason":"TooLarge"`},
		},
		"too much in a stream": {
			func(c *fakemcp.Call) {
				c.Stream(fakemcp.Data(c.Response(map[string]any{"x": strings.Repeat("x", 2<<20)})))
			},
			[]string{`"id":5`, `"reason":"TooLarge"`},
		},
	} {
		for _, era := range []string{"legacy", "modern"} {
			t.Run(name+", "+era, func(t *testing.T) {
				s := fakemcp.New()
				s.Settings.Modern = true
				s.On(mcp.MethodToolsCall, tt.answer)
				r := connect(t, fake(t, s))
				params := `"name":"alpha"`
				if era == "legacy" {
					r.shake()
				} else {
					params += "," + meta
				}
				r.send(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{` + params + `}}`)
				line := r.until(`"id":5`)
				for _, want := range tt.want {
					if !strings.Contains(line, want) {
						t.Errorf("got %s\nwant %s in it", line, want)
					}
				}
				if strings.Contains(line, "secret") {
					t.Errorf("the page is told: %s", line)
				}
			})
		}
	}
}

// A client of both eras learns that a server knows the legacy one alone.
func TestDiscoverOfLegacyServer(t *testing.T) {
	r := connect(t, fake(t, fakemcp.New()))
	r.send(`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{` + meta + `}}`)
	r.until(`"id":1`, `"code":-32601`)
	r.shake()
	r.send(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
	r.until(`"id":2`, `"alpha"`)
}

// What the client sends and is no message is answered here.
func TestBadLines(t *testing.T) {
	s := fakemcp.New()
	r := connect(t, fake(t, s))
	r.send("}{")
	r.until(`"code":-32700`)
	r.send(`{"jsonrpc":"2.0","id":3,"params":{}}`)
	r.until(`"id":3`, `"code":-32600`)
	big := strings.Repeat("x", 1<<20)
	r.send(`{"jsonrpc":"2.0","id":"head","method":"tools/call","params":{"id":9,"x":"` + big + `"}}`)
	r.until(`"id":"head"`, `"reason":"TooLarge"`)
	r.send(`{"method":"tools/call","params":{"id":9,"x":"` + big + `"},"jsonrpc":"2.0","id":8}`)
	r.until(`"id":8`, `"reason":"TooLarge"`)
	r.send(`{"method":"tools/call","id":8,"params":{"x":"` + big + `","y":{"id":9}}}`)
	if line := r.until(`"reason":"TooLarge"`); strings.Contains(line, `"id"`) {
		t.Errorf("an id is guessed: %s", line)
	}
	if n := len(s.Requests()); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
	r.shake()
	r.send(`{"jsonrpc":"2.0","id":4,"method":"ping"}`)
	r.until(`"id":4`)
}

// Without a replica a request waits, and then is told so in plain words.
func TestNoReplica(t *testing.T) {
	r := connect(t, &place{}, func(o *Options) { o.Wait = time.Millisecond })
	r.send(hello)
	r.until(`"id":"hello"`, `"code":-31004`, `no replica`)
	r.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + meta + `}}`)
	r.until(`"id":1`, `no replica`)
	// A dial that never ends is given up as well.
	hung := connect(t, &place{}, func(o *Options) {
		o.Wait = time.Millisecond
		o.Open = func(context.Context) (*Way, error) {
			return &Way{URL: "http://server.example/mcp", Transport: StreamableHTTP, HTTP: &http.Client{Transport: hanging{}}}, nil
		}
	})
	hung.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{` + meta + `}}`)
	hung.until(`"id":1`, `no replica`, `in time`)
	closed := connect(t, &place{}, func(o *Options) {
		o.Wait = time.Millisecond
		o.Open = func(context.Context) (*Way, error) { return nil, errors.New("it is suspended") }
	})
	closed.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{` + meta + `}}`)
	closed.until(`"id":1`, `it is suspended`)
}

type hanging struct{}

func (hanging) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}
