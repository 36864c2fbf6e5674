// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpserver_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/espalier-dev/espalier/internal/mcpserver"
	"github.com/espalier-dev/espalier/internal/serverconfig"
	"github.com/espalier-dev/espalier/internal/tracing"
)

// traced gives an option that has a server make spans, and where they go.
func traced() (func(*mcpserver.Options), *tracetest.InMemoryExporter) {
	exporter := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
	return func(o *mcpserver.Options) { o.Tracer = tracing.New(provider) }, exporter
}

const (
	traceID     = "4bf92f3577b34da6a3ce929d0e0e4736"
	traceparent = "00-" + traceID + "-00f067aa0ba902b7-01"
	otherParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
)

// span gives the one span of a name.
func span(t *testing.T, exporter *tracetest.InMemoryExporter, name string) tracetest.SpanStub {
	t.Helper()
	var names []string
	var found []tracetest.SpanStub
	for _, s := range exporter.GetSpans() {
		names = append(names, s.Name)
		if s.Name == name {
			found = append(found, s)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d spans %q among %q", len(found), name, names)
	}
	return found[0]
}

func attribute(s tracetest.SpanStub, key string) string {
	for _, a := range s.Attributes {
		if string(a.Key) == key {
			return a.Value.String()
		}
	}
	return ""
}

func hasAttributes(t *testing.T, s tracetest.SpanStub, pairs ...string) {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if got := attribute(s, pairs[i]); got != pairs[i+1] {
			t.Errorf("%s: %s is %q, not %q", s.Name, pairs[i], got, pairs[i+1])
		}
	}
}

// within fails unless inner is a child of outer.
func within(t *testing.T, inner, outer tracetest.SpanStub) {
	t.Helper()
	if inner.SpanContext.TraceID() != outer.SpanContext.TraceID() || inner.Parent.SpanID() != outer.SpanContext.SpanID() {
		t.Errorf("%s is not within %s", inner.Name, outer.Name)
	}
}

// withMeta puts members before those of the protocol into _meta.
func withMeta(r *http.Request, members string) *http.Request {
	body, _ := io.ReadAll(r.Body)
	text := strings.Replace(string(body), `"_meta":{`, `"_meta":{`+members+`,`, 1)
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
	return r
}

// recorder is a backend that keeps the headers it saw.
type recorder struct {
	mu     sync.Mutex
	header []http.Header
}

func (r *recorder) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.header = append(r.header, q.Header.Clone())
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"answer":"words of the backend"}`)
}

func (r *recorder) last() http.Header {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.header[len(r.header)-1]
}

func tracedTool(name, target string) serverconfig.Tool {
	return tool(name, func(t *serverconfig.Tool) {
		t.Definition = json.RawMessage(`{"name":"` + name + `","inputSchema":{"type":"object","properties":{"secret":{"type":"string"}}}}`)
		t.Metadata = map[string]string{"costCategory": "high"}
		t.Expression = nil
		t.HTTP = &serverconfig.HTTP{Connection: serverconfig.Connection{URL: target + "/v1"}, Method: "GET", TimeoutSeconds: 30}
	})
}

// TestTraceHTTP: a call's span has the context of the caller for its parent,
// and the request to the backend is within it and carries it on.
func TestTraceHTTP(t *testing.T) {
	on, spans := traced()
	backend := &recorder{}
	target := httptest.NewServer(backend)
	defer target.Close()
	f := start(t, config(tracedTool("ask", target.URL)), on)

	r := f.callModern("ask", `{"secret":"s3cr3t"}`)
	r.Header.Set("traceparent", traceparent)
	r.Header.Set("tracestate", "rojo=1")
	f.do(r)
	server, handler, client := span(t, spans, "tools/call ask"), span(t, spans, "execute_tool ask"), span(t, spans, "GET")
	within(t, handler, server)
	within(t, client, handler)
	if server.SpanContext.TraceID().String() != traceID || server.Parent.SpanID().String() != "00f067aa0ba902b7" || server.SpanKind != trace.SpanKindServer {
		t.Errorf("the call's span is %v of %v", server.SpanContext.TraceID(), server.Parent.SpanID())
	}
	hasAttributes(t, server, "mcp.method.name", "tools/call", "gen_ai.tool.name", "ask", "gen_ai.operation.name", "execute_tool",
		"jsonrpc.request.id", "1", "mcp.protocol.version", "2026-07-28", "espalier.server", "test", "espalier.outcome", "ok",
		"espalier.cost_category", "high", "espalier.principal.kind", "Anonymous", "error.type", "")
	hasAttributes(t, client, "http.request.method", "GET", "server.address", "127.0.0.1", "http.response.status_code", "200")
	if got := backend.last(); got.Get("traceparent") != "00-"+traceID+"-"+client.SpanContext.SpanID().String()+"-01" || got.Get("tracestate") != "rojo=1" {
		t.Errorf("the backend got %q, %q", got.Get("traceparent"), got.Get("tracestate"))
	}
	if all := fmt.Sprintf("%+v", spans.GetSpans()); strings.Contains(all, "s3cr3t") || strings.Contains(all, "words of the backend") || strings.Contains(all, "/v1") {
		t.Error("a span holds an argument, an answer or a URL")
	}
}

// TestTraceMeta: _meta outweighs the header, which is linked.
func TestTraceMeta(t *testing.T) {
	on, spans := traced()
	f := start(t, config(tool("ping", nil)), on)
	r := withMeta(f.callModern("ping", "{}"), `"traceparent":"`+traceparent+`"`)
	r.Header.Set("traceparent", otherParent)
	f.do(r)
	got := span(t, spans, "tools/call ping")
	if got.SpanContext.TraceID().String() != traceID || len(got.Links) != 1 || got.Links[0].SpanContext.SpanID().String() != "b7ad6b7169203331" {
		t.Errorf("the span is of %v and has links %v", got.SpanContext.TraceID(), got.Links)
	}
}

// TestTraceChoice: calls have spans, what is answered from memory has them for
// callers with a trace, and what a caller makes up is no name.
func TestTraceChoice(t *testing.T) {
	on, spans := traced()
	f := start(t, config(tool("ping", nil), tool("broken", func(t *serverconfig.Tool) {
		t.Expression = &serverconfig.Result{Text: "string(1/0)"}
	})), on)
	f.do(f.modern("tools/list", ""))
	f.do(f.modern("server/discover", ""))
	if n := len(spans.GetSpans()); n != 0 {
		t.Errorf("lists made %d spans", n)
	}
	f.do(withMeta(f.modern("tools/list", ""), `"traceparent":"`+traceparent+`"`))
	span(t, spans, "tools/list")
	f.do(f.callModern("made-up", "{}"))
	unknown := span(t, spans, "tools/call")
	hasAttributes(t, unknown, "error.type", "-32602", "rpc.response.status_code", "-32602", "espalier.outcome", "UnknownTool", "gen_ai.tool.name", "")
	if unknown.Status.Code != codes.Error || unknown.Status.Description != "" {
		t.Errorf("its status is %v", unknown.Status)
	}
	f.do(f.callModern("broken", "{}"))
	hasAttributes(t, span(t, spans, "tools/call broken"), "error.type", "tool_error", "espalier.outcome", "ExpressionFailed", "rpc.response.status_code", "")
	hasAttributes(t, span(t, spans, "execute_tool broken"), "error.type", "ExpressionFailed")
	if strings.Contains(fmt.Sprintf("%+v", spans.GetSpans()), "made-up") {
		t.Error("a span holds the words of a caller")
	}
}

// TestTraceUpstream: one trace goes through a front and the server behind it,
// whatever the eras of the two ends.
func TestTraceUpstream(t *testing.T) {
	for _, behind := range []serverconfig.Protocol{serverconfig.ProtocolModern, serverconfig.ProtocolLegacy} {
		for _, caller := range []string{"modern", "asking", "legacy", "session"} {
			t.Run(caller+" to "+string(behind), func(t *testing.T) {
				frontOn, fronts := traced()
				backOn, backs := traced()
				back := start(t, config(tool("deep", nil)), backOn)
				fronted := serverconfig.Upstream{Name: "deep", Prefix: "d_", Protocol: behind, Connection: serverconfig.Connection{URL: back.url()}}
				front := start(t, fronting(fronted), hurried, frontOn)
				front.lists("d_deep", "own")

				trip := front.callModern("d_deep", "{}")
				const body = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"d_deep","_meta":{}}}`
				switch caller {
				case "legacy":
					trip = front.post(body)
					trip.Header.Set("Mcp-Protocol-Version", "2025-11-25")
				case "session":
					trip = front.post(body)
					trip.Header.Set("Mcp-Protocol-Version", "2025-11-25")
					trip.Header.Set("Mcp-Session-Id", front.connect("2025-11-25", "{}").id)
				}
				const mine = `"traceparent":"` + traceparent + `","tracestate":"rojo=1"`
				switch caller {
				case "legacy", "session":
					raw, _ := io.ReadAll(trip.Body)
					text := strings.Replace(string(raw), `"_meta":{}`, `"_meta":{`+mine+`}`, 1)
					trip.Body, trip.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
				case "asking": // Its call is parked when the server behind asks.
					raw, _ := io.ReadAll(trip.Body)
					text := strings.Replace(string(raw), `clientCapabilities":{}`, `clientCapabilities":{"elicitation":{}}`, 1)
					trip.Body = io.NopCloser(strings.NewReader(text))
					trip = withMeta(trip, mine)
				default:
					trip = withMeta(trip, mine)
				}
				if got := front.do(trip); got.text() != "deep" {
					t.Fatalf("answered %d %s", got.status, got.body)
				}
				outer, handler, client := span(t, fronts, "tools/call d_deep"), span(t, fronts, "execute_tool d_deep"), span(t, fronts, "tools/call deep")
				inner := span(t, backs, "tools/call deep")
				within(t, handler, outer)
				within(t, client, handler)
				within(t, inner, client)
				if outer.SpanContext.TraceID().String() != traceID || inner.SpanContext.TraceState().String() != "rojo=1" || len(inner.Links) != 0 {
					t.Errorf("the trace is %v with state %q and links %v", outer.SpanContext.TraceID(), inner.SpanContext.TraceState(), inner.Links)
				}
				if client.SpanKind != trace.SpanKindClient {
					t.Errorf("the span of the request is %v", client.SpanKind)
				}
				hasAttributes(t, outer, "espalier.upstream", "deep")
				hasAttributes(t, client, "mcp.method.name", "tools/call", "gen_ai.tool.name", "deep", "network.transport", "tcp", "server.address", "127.0.0.1")
			})
		}
	}
}

// TestTraceUpstreamHeader: a server behind that sees only headers has the
// context there, and one that sees only the message has it in _meta.
func TestTraceUpstreamHeader(t *testing.T) {
	on, spans := traced()
	fake, behind := fakePeer(t, true, "deep")
	f := start(t, fronting(behind.upstream("deep", "")), hurried, on)
	f.lists("deep", "own")
	f.do(withMeta(f.callModern("deep", "{}"), `"traceparent":"`+traceparent+`"`))
	client := slices.IndexFunc(spans.GetSpans(), func(s tracetest.SpanStub) bool { return s.SpanKind == trace.SpanKindClient })
	want := "00-" + traceID + "-" + spans.GetSpans()[client].SpanContext.SpanID().String() + "-01"
	seen := 0
	for _, r := range fake.Requests() {
		if r.Method != "tools/call" {
			continue
		}
		seen++
		if r.Header.Get("Traceparent") != want || strings.Count(string(r.Body), `"traceparent":"`) != 1 || !strings.Contains(string(r.Body), want) {
			t.Errorf("the upstream got %q and %s", r.Header.Get("Traceparent"), r.Body)
		}
	}
	if seen != 1 {
		t.Errorf("the upstream got %d calls", seen)
	}
}

// TestTraceOff: the caller's own context in _meta goes on as it stands, and
// nothing of its headers does.
func TestTraceOff(t *testing.T) {
	backOn, backs := traced()
	back := start(t, config(tool("deep", nil)), backOn)
	f := start(t, fronting(serverconfig.Upstream{Name: "deep", Connection: serverconfig.Connection{URL: back.url()}}), hurried)
	f.lists("deep", "own")
	r := withMeta(f.callModern("deep", "{}"), `"traceparent":"`+traceparent+`"`)
	r.Header.Set("traceparent", otherParent)
	f.do(r)
	if got := span(t, backs, "tools/call deep"); got.Parent.SpanID().String() != "00f067aa0ba902b7" || len(got.Links) != 0 {
		t.Errorf("its parent is %v, its links %v", got.Parent.SpanID(), got.Links)
	}
}
