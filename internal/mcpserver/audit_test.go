// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpserver_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver"
	"github.com/espalier-dev/espalier/internal/mcpserver/audit"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// ledger keeps the lines of an audit log. broken is set while it takes none.
type ledger struct {
	mu     sync.Mutex
	buf    bytes.Buffer
	broken bool
}

func (l *ledger) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken {
		return 0, errors.New("no space left")
	}
	return l.buf.Write(p)
}

func (l *ledger) fail(broken bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.broken = broken
}

// take gives what was written since it was called last.
func (l *ledger) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.buf.Reset()
	return l.buf.String()
}

// one gives the one line that was written, without what differs each time.
func (l *ledger) one(t *testing.T) audit.Line {
	t.Helper()
	text := l.take()
	var line audit.Line
	if err := json.Unmarshal([]byte(text), &line); err != nil || strings.Count(text, "\n") != 1 {
		t.Fatalf("not one line: %q, %v", text, err)
	}
	if line.Audit != "call" || line.RequestID == "" || time.Since(line.Time) > time.Minute || line.Time.Location() != time.UTC {
		t.Errorf("the line is %q", text)
	}
	line.Audit, line.RequestID, line.Time, line.DurationSeconds = "", "", time.Time{}, 0
	return line
}

// TestAudit: each call is one line that says who called what and how it ended,
// and holds no argument.
func TestAudit(t *testing.T) {
	book := &ledger{}
	on, _ := traced()
	text, secret := "words", regexp.MustCompile("s3cr3t|words")
	back := start(t, config(tool("deep", nil)))
	g := startGuardedAs(t, func(o *mcpserver.Options) {
		hurried(o)
		on(o)
		o.Audit = audit.New(book)
	}, func(c *serverconfig.Config) {
		c.Requires = append(c.Requires, serverconfig.FeatureUpstreams)
		c.Upstreams, c.Policy = []serverconfig.Upstream{{Name: "back", Prefix: "b_", Connection: serverconfig.Connection{URL: back.url()}}}, &serverconfig.ToolsPolicy{Max: 100}
		c.Resources = []serverconfig.Resource{resource("x:a", func(r *serverconfig.Resource) { r.Text = &text })}
		c.Templates = []serverconfig.Resource{resource("x:t/{v}", nil)}
		c.Access = &serverconfig.Access{Rules: []serverconfig.AccessRule{{Tools: []string{"hidden"}, When: ciOnly}}}
	}, tool("hidden", nil), tool("ask", func(t *serverconfig.Tool) {
		t.Definition = json.RawMessage(`{"name":"ask","inputSchema":{"type":"object","properties":{"n":{"type":"integer"},"s":{"type":"string"}}}}`)
		t.Metadata = map[string]string{"costCategory": "high"}
		t.Expression = &serverconfig.Result{Text: "string(1/args.n)"}
	}))
	ci, alice := audit.Principal{Kind: "APIKey", Subject: "ci"}, audit.Principal{Kind: "JWT", Subject: "alice"}
	token := g.token(map[string]any{"sub": "alice"})
	g.until("the tool behind", func() bool { return len(g.names(token)) == 2 })
	_ = book.take()
	for name, c := range map[string]struct {
		request *http.Request
		want    audit.Line
	}{
		"ok": {as(g.callModern("ask", `{"n":1,"s":"s3cr3t"}`), keyCI),
			audit.Line{Principal: ci, Method: "tools/call", Tool: "ask", Outcome: "ok", CostCategory: "high"}},
		"failed": {as(g.callModern("ask", `{"n":0,"s":"s3cr3t"}`), token),
			audit.Line{Principal: alice, Method: "tools/call", Tool: "ask", Outcome: "ExpressionFailed", CostCategory: "high"}},
		"invalid": {as(g.callModern("ask", `{"n":"s3cr3t"}`), token),
			audit.Line{Principal: alice, Method: "tools/call", Tool: "ask", Outcome: "InvalidArguments", CostCategory: "high"}},
		"hidden": {as(g.callModern("hidden", `{"s":"s3cr3t"}`), token),
			audit.Line{Principal: alice, Method: "tools/call", Asked: "hidden", Outcome: "UnknownTool", Code: -32602}},
		"upstream": {as(g.callModern("b_deep", `{"s":"s3cr3t"}`), token),
			audit.Line{Principal: alice, Method: "tools/call", Tool: "b_deep", Outcome: "ok", Upstream: "back"}},
		"resource": {as(named(g.modern("resources/read", `"uri":"x:a"`), "x:a"), token),
			audit.Line{Principal: alice, Method: "resources/read", Resource: "x:a", Outcome: "ok"}},
		"template": {as(named(g.modern("resources/read", `"uri":"x:t/s3cr3t"`), "x:t/s3cr3t"), token),
			audit.Line{Principal: alice, Method: "resources/read", Resource: "x:t/{v}", Outcome: "ok"}},
		"no resource": {as(named(g.modern("resources/read", `"uri":"y:s3cr3t"`), "y:s3cr3t"), token),
			audit.Line{Principal: alice, Method: "resources/read", Outcome: "UnknownTool", Code: -32602}},
		"arguments of no kind": {as(g.callModern("ask", `["s3cr3t"]`), token),
			audit.Line{Principal: alice, Method: "tools/call", Asked: "ask", Outcome: "Refused", Code: -32602}},
		"the probe": {as(g.callModern("ask", `{"n":1}`), g.probeToken()),
			audit.Line{Principal: audit.Principal{Kind: "Probe"}, Method: "tools/call", Asked: "ask", Outcome: "ProbeMayList", Code: mcp.CodeForbidden}},
	} {
		t.Run(name, func(t *testing.T) {
			c.request.Header.Set("Traceparent", traceparent)
			g.do(c.request)
			got := book.one(t)
			c.want.Server, c.want.TraceID = "test", traceID
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("the line (-want +got):\n%s", diff)
			}
			if raw, _ := json.Marshal(got); secret.Match(raw) {
				t.Errorf("the line holds what was given: %s", raw)
			}
		})
	}
	g.do(as(g.modern("tools/list", ""), token))
	if got := book.take(); got != "" {
		t.Errorf("a list is a line: %s", got)
	}
}

// named mirrors the name of what is asked for in its header.
func named(r *http.Request, name string) *http.Request {
	r.Header.Set("Mcp-Name", name)
	return r
}

// TestAuditArguments: who asks for them has the arguments of calls.
func TestAuditArguments(t *testing.T) {
	book := &ledger{}
	log := audit.New(book)
	log.Params = true
	f := start(t, config(tool("ask", nil)), func(o *mcpserver.Options) { o.Audit = log })
	f.do(f.callModern("ask", `{ "s": "given" }`))
	if got := book.one(t); string(got.Params) != `{"s":"given"}` {
		t.Errorf("the arguments are %s", got.Params)
	}
	f.do(named(f.modern("resources/read", `"uri":"y:given"`), "y:given"))
	if got := book.one(t); string(got.Params) != `"y:given"` {
		t.Errorf("the URI is %s", got.Params)
	}
}

// says counts lines of the server's log, of any level, that hold words.
func (f *fixture) says(words string) (n int) {
	for {
		select {
		case line := <-f.log.lines:
			if strings.Contains(string(line), words) {
				n++
			}
		default:
			return n
		}
	}
}

// TestAuditFailure: a log that takes no line stops no call, and is told of.
func TestAuditFailure(t *testing.T) {
	book := &ledger{}
	f := start(t, config(tool("ask", nil)), func(o *mcpserver.Options) { o.Audit = audit.New(book) })
	book.fail(true)
	for range 2 {
		if got := f.do(f.callModern("ask", "{}")); got.text() != "ask" {
			t.Errorf("answered %s", got.body)
		}
	}
	book.fail(false)
	if n := f.says("Audit log cannot be written"); n != 1 {
		t.Errorf("told %d times", n)
	}
	response, err := f.client.Get(f.internal() + "/metrics")
	must(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	must(t, err)
	if !strings.Contains(string(body), "espalier_server_audit_failures_total 2\n") {
		t.Error("it is not counted")
	}
}

// TestRequestID: a request keeps the id that it came with, if that can stand in
// a log, and its answer has it, whatever the answer is.
func TestRequestID(t *testing.T) {
	book := &ledger{}
	f := start(t, config(tool("ask", nil)), func(o *mcpserver.Options) { o.Audit = audit.New(book) })
	made := regexp.MustCompile(`^[0-9a-f]{32}$`)
	for _, c := range []struct {
		given []string
		kept  bool
	}{
		{nil, false}, {[]string{"7f2c-a:1/b+c_d.e="}, true}, {[]string{""}, false}, {[]string{"a b"}, false}, {[]string{`a"b`}, false},
		{[]string{"ä"}, false}, {[]string{strings.Repeat("a", 128)}, true}, {[]string{strings.Repeat("a", 129)}, false}, {[]string{"a", "b"}, false},
	} {
		r := f.callModern("ask", "{}")
		r.Header["X-Request-Id"] = c.given
		id := f.do(r).header.Get("X-Request-Id")
		if c.kept && id != c.given[0] || !c.kept && !made.MatchString(id) {
			t.Errorf("%q became %q", c.given, id)
		}
		if line := book.take(); !strings.Contains(line, `"requestId":"`+id+`"`) {
			t.Errorf("the line of %q is %s", id, line)
		}
		if f.says(id) == 0 {
			t.Errorf("the log does not name %q", id)
		}
	}
	if got := f.do(f.post("{")); got.status != http.StatusBadRequest || !made.MatchString(got.header.Get("X-Request-Id")) {
		t.Errorf("a refusal has the id %q", got.header.Get("X-Request-Id"))
	}
}

// TestRequestIDElsewhere: the replica that has a session answers under the id
// that the one which was asked gave.
func TestRequestIDElsewhere(t *testing.T) {
	f := startFleet(t, config(tool("ask", nil)))
	r := f.replicas[1].post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask"}}`)
	r.Header.Set("Mcp-Protocol-Version", "2025-11-25")
	r.Header.Set("Mcp-Session-Id", f.replicas[0].connect("2025-11-25", "{}").id)
	id := f.replicas[1].do(r).header.Values("X-Request-Id")
	if len(id) != 1 || f.replicas[0].says(id[0]) == 0 {
		t.Errorf("answered under %q", id)
	}
}

// TestRequestIDStays: the id is for logs, and nothing behind hears of it.
func TestRequestIDStays(t *testing.T) {
	backend := &recorder{}
	target := httptest.NewServer(backend)
	defer target.Close()
	f := start(t, config(tracedTool("ask", target.URL)))
	r := f.callModern("ask", "{}")
	r.Header.Set("X-Request-Id", "given")
	f.do(r)
	if got := backend.last().Get("X-Request-Id"); got != "" {
		t.Errorf("the backend got %q", got)
	}
}
