// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/mcpserver/credentials"
	"github.com/espalier-dev/espalier/internal/mcpserver/principal"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
	"github.com/espalier-dev/espalier/internal/schema"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// seen is what a backend received.
type seen struct {
	Method, Path, Query, Host string
	Header                    http.Header
	Body                      string
}

// recorder is a backend that notes what it gets and answers as told.
type recorder struct {
	*httptest.Server
	mu     sync.Mutex
	got    []seen
	answer http.HandlerFunc
}

func newRecorder(t *testing.T, answer http.HandlerFunc) *recorder {
	t.Helper()
	r := &recorder{answer: answer}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		r.mu.Lock()
		r.got = append(r.got, seen{req.Method, req.URL.EscapedPath(), req.URL.RawQuery, req.Host, req.Header.Clone(), string(body)})
		r.mu.Unlock()
		if r.answer == nil {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"ok":true}`)
			return
		}
		r.answer(w, req)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *recorder) requests() []seen {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]seen(nil), r.got...)
}

// made is a handler ready to be called.
type made struct {
	t       *testing.T
	handler call.Handler
	input   *schema.Schema
}

func makeTool(t *testing.T, store *credentials.Store, input string, tool serverconfig.Tool) *made {
	t.Helper()
	if store == nil {
		store = credentials.New(t.TempDir())
	}
	compiled, err := schema.CompileInput(json.RawMessage(input))
	if err != nil {
		t.Fatal(err)
	}
	factory := NewFactory(store, "espalier/test")
	t.Cleanup(factory.Close)
	if tool.Name == "" {
		tool.Name = "tool"
	}
	handler, err := factory.Make(&tool, compiled)
	if err != nil {
		t.Fatal(err)
	}
	return &made{t, handler, compiled}
}

// call runs the handler as the engine does: arguments decoded, validated,
// coerced.
func (m *made) call(ctx context.Context, args string) (*call.Result, error) {
	m.t.Helper()
	value, err := wire.Decode([]byte(args))
	if err != nil {
		m.t.Fatalf("arguments %s: %v", args, err)
	}
	object := value.(map[string]any)
	if err := m.input.Validate(object); err != nil {
		return nil, call.Fail(call.InvalidArguments, "%s", err.Error())
	}
	m.input.Coerce(object)
	return m.handler.Call(ctx, &call.Call{
		Tool: "tool", Args: object, RawArgs: []byte(args), Caller: principal.Nobody(), MaxBytes: 1 << 20,
	})
}

func reason(err error) call.Reason {
	var failure *call.Error
	if errors.As(err, &failure) {
		return failure.Reason
	}
	return ""
}

func text(s string) *string { return &s }

func httpTool(h serverconfig.HTTP) serverconfig.Tool { return serverconfig.Tool{HTTP: &h} }

func quoted(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

const recordSchema = `{"type":"object","required":["id"],"properties":{"id":{"type":"string"},"q":{"type":"string"},"tag":{"type":"string"},"note":{"type":"string"}}}`

// recordTool is case B16's tool in this API.
func recordTool(url string) serverconfig.Tool {
	return httpTool(serverconfig.HTTP{
		Connection: serverconfig.Connection{URL: url + "/v1/records/{id}", Headers: []serverconfig.Value{{Name: "X-Tag", Expression: "args.?tag.orValue(null)"}}},
		Method:     "POST",
		Query:      []serverconfig.Value{{Name: "q", Expression: "args.?q.orValue(null)"}}, QuerySet: true,
		Body: &serverconfig.Body{Expression: `{"id": args.id, "note": args.?note.orValue("")}`},
	})
}

func TestPathArguments(t *testing.T) {
	tests := []struct {
		name string
		id   any // nil: absent
		want string
		// refused is the reason of a call that must not be sent.
		refused call.Reason
	}{
		{"plain", "42", "/v1/records/42", ""},
		{"climbing", "../../admin", "", call.InvalidArguments},
		{"dots", "..", "", call.InvalidArguments},
		{"dot", ".", "", call.InvalidArguments},
		{"slash", "a/b", "/v1/records/a%2Fb", ""},
		{"query", "a?x=1", "/v1/records/a%3Fx=1", ""},
		{"fragment", "a#f", "/v1/records/a%23f", ""},
		{"encoded climbing", "%2e%2e%2fadmin", "", call.InvalidArguments},
		{"twice encoded climbing", "%252e%252e%252fadmin", "", call.InvalidArguments},
		{"backslash climbing", `..\admin`, "", call.InvalidArguments},
		{"percent", "100%", "/v1/records/100%25", ""},
		{"space", "a b", "/v1/records/a%20b", ""},
		{"not ASCII", "é漢", "/v1/records/%C3%A9%E6%BC%A2", ""},
		{"semicolon", "a;b", "/v1/records/a%3Bb", ""},
		{"empty", "", "", call.InvalidArguments},
		{"slashes alone", "///", "", call.InvalidArguments},
		{"absent", nil, "", call.InvalidArguments},
		{"another placeholder", "{q}", "/v1/records/%7Bq%7D", ""},
		{"line break", "a\r\nb", "", call.InvalidArguments},
		{"NUL", "a\x00", "", call.InvalidArguments},
		{"very long", strings.Repeat("x", 100<<10), "", call.InvalidArguments},
		{"host in userinfo's place", "@evil.example", "/v1/records/@evil.example", ""},
		{"whole URL", "http://evil.example/", "/v1/records/http:%2F%2Fevil.example%2F", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			backend := newRecorder(t, nil)
			args := map[string]any{}
			if tt.id != nil {
				args["id"] = tt.id
			}
			_, err := makeTool(t, nil, recordSchema, recordTool(backend.URL)).call(context.Background(), quoted(t, args))
			got := backend.requests()
			if tt.refused != "" {
				if reason(err) != tt.refused || len(got) != 0 {
					t.Fatalf("got error %v and requests %v, want refusal", err, got)
				}
				return
			}
			if err != nil || len(got) != 1 {
				t.Fatalf("got error %v, requests %v", err, got)
			}
			if got[0].Path != tt.want || got[0].Host != strings.TrimPrefix(backend.URL, "http://") || got[0].Query != "" {
				t.Errorf("got path %q, host %q, query %q, want path %q", got[0].Path, got[0].Host, got[0].Query, tt.want)
			}
			if rest := strings.TrimPrefix(got[0].Path, "/v1/records/"); rest == got[0].Path || rest == "" || strings.Contains(rest, "/") {
				t.Errorf("path %q is not one segment below /v1/records/", got[0].Path)
			}
		})
	}
}

func TestOtherPartsCannotBeInjected(t *testing.T) {
	backend := newRecorder(t, nil)
	tool := makeTool(t, nil, recordSchema, recordTool(backend.URL))
	t.Run("header", func(t *testing.T) {
		before := len(backend.requests())
		_, err := tool.call(context.Background(), quoted(t, map[string]any{"id": "1", "tag": "x\r\nX-Admin: 1"}))
		if reason(err) != call.InvalidArguments || len(backend.requests()) != before {
			t.Fatalf("got %v, sent %d", err, len(backend.requests())-before)
		}
	})
	t.Run("query and body", func(t *testing.T) {
		if _, err := tool.call(context.Background(), quoted(t, map[string]any{"id": "1", "q": "1&admin=true", "note": `", "role": "admin`, "tag": "ok"})); err != nil {
			t.Fatal(err)
		}
		got := backend.requests()[len(backend.requests())-1]
		if got.Query != "q=1%26admin%3Dtrue" {
			t.Errorf("query %q", got.Query)
		}
		var body map[string]any
		if err := json.Unmarshal([]byte(got.Body), &body); err != nil || len(body) != 2 || body["note"] != `", "role": "admin` {
			t.Errorf("body %s: %v", got.Body, err)
		}
		if got.Header.Get("X-Tag") != "ok" || got.Header.Get("X-Admin") != "" {
			t.Errorf("headers %v", got.Header)
		}
	})
}

func TestDefaultMapping(t *testing.T) {
	const input = `{"type":"object","properties":{"id":{"type":"string"},"days":{"type":"integer"},"tags":{"type":"array"},"flag":{"type":"boolean"},"big":{"type":"integer"},"o":{"type":"object"},"n":{}}}`
	tests := []struct {
		name, method, url, args string
		query                   []serverconfig.Value
		wantPath, wantQuery     string
		wantBody                string
		refused                 call.Reason
	}{
		{
			name: "query of a GET", method: "GET", url: "/f/{id}?units=metric", args: `{"id":"x","days":3,"tags":["a b","c"],"flag":true,"o":{"k":1},"n":null}`,
			wantPath: "/f/x", wantQuery: `units=metric&days=3&flag=true&o=%7B%22k%22%3A1%7D&tags=a+b&tags=c`,
		},
		{
			name: "body of a POST keeps numbers exact", method: "POST", url: "/f/{id}", args: `{"id":"x","big":12345678901234567890,"o":{"a":1.50}}`,
			wantPath: "/f/x", wantBody: `{"big":12345678901234567890,"o":{"a":1.50}}`,
		},
		{name: "empty body of a POST", method: "POST", url: "/f", args: `{}`, wantPath: "/f", wantBody: `{}`},
		{
			name: "query of a POST leaves the body", method: "POST", url: "/f", args: `{"days":3}`,
			query: []serverconfig.Value{{Name: "d", Expression: "args.days"}}, wantPath: "/f", wantQuery: "d=3", wantBody: `{"days":3}`,
		},
		{name: "part of a segment", method: "GET", url: "/f/{id}.json", args: `{"id":"a/b"}`, wantPath: "/f/a%2Fb.json"},
		{name: "undeclared query", method: "GET", url: "/f/{id}", args: `{"id":"x","admin":"true"}`, refused: call.InvalidArguments},
		{name: "undeclared key", method: "POST", url: "/f/{id}", args: `{"id":"x","admin":"true"}`, refused: call.InvalidArguments},
		{name: "argument over the URL's own pair", method: "GET", url: "/f?days=1", args: `{"days":2}`, refused: call.InvalidArguments},
		{name: "object in the path", method: "GET", url: "/f/{o}", args: `{"o":{}}`, refused: call.InvalidArguments},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			backend := newRecorder(t, nil)
			tool := makeTool(t, nil, input, httpTool(serverconfig.HTTP{
				Connection: serverconfig.Connection{URL: backend.URL + tt.url}, Method: tt.method, Query: tt.query, QuerySet: tt.query != nil,
			}))
			_, err := tool.call(context.Background(), tt.args)
			got := backend.requests()
			if tt.refused != "" {
				if reason(err) != tt.refused || len(got) != 0 {
					t.Fatalf("got %v, requests %v", err, got)
				}
				return
			}
			if err != nil || len(got) != 1 {
				t.Fatalf("got %v, requests %v", err, got)
			}
			if got[0].Path != tt.wantPath || got[0].Query != tt.wantQuery || got[0].Body != tt.wantBody {
				t.Errorf("got %q ? %q body %q", got[0].Path, got[0].Query, got[0].Body)
			}
		})
	}
}

func TestDeclarationsThatAreRefused(t *testing.T) {
	input, err := schema.CompileInput(json.RawMessage(recordSchema))
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		http serverconfig.HTTP
		want string
	}{
		{"scheme", serverconfig.HTTP{Connection: serverconfig.Connection{URL: "file:///etc/passwd"}}, "must begin with http"},
		{"placeholder in the host", serverconfig.HTTP{Connection: serverconfig.Connection{URL: "http://{id}.example.com/"}}, "only in the path"},
		{"placeholder in the port", serverconfig.HTTP{Connection: serverconfig.Connection{URL: "http://example.com:{id}/"}}, ""},
		{"placeholder in the query", serverconfig.HTTP{Connection: serverconfig.Connection{URL: "http://example.com/?a={id}"}}, "only in the path"},
		{"credentials", serverconfig.HTTP{Connection: serverconfig.Connection{URL: "http://u:p@example.com/"}}, "credentials"},
		{"fragment", serverconfig.HTTP{Connection: serverconfig.Connection{URL: "http://example.com/#a"}}, "fragment"},
		{"dot segment", serverconfig.HTTP{Connection: serverconfig.Connection{URL: "http://example.com/a/../b"}}, "segments"},
		{"encoded dot segment", serverconfig.HTTP{Connection: serverconfig.Connection{URL: "http://example.com/a/%2e%2e/b"}}, "segments"},
		{"stray brace", serverconfig.HTTP{Connection: serverconfig.Connection{URL: "http://example.com/{id"}}, ""},
		{"unknown placeholder", serverconfig.HTTP{Connection: serverconfig.Connection{URL: "http://example.com/{nope}"}}, "no property of inputSchema"},
		{"path value without placeholder", serverconfig.HTTP{Connection: serverconfig.Connection{URL: "http://example.com/"}, Path: []serverconfig.Value{{Name: "x", Expression: "'a'"}}}, "no such placeholder"},
		{"method", serverconfig.HTTP{Connection: serverconfig.Connection{URL: "http://example.com/"}, Method: "CONNECT"}, "is not one of"},
		{"Host header", serverconfig.HTTP{Connection: serverconfig.Connection{URL: "http://example.com/", Headers: []serverconfig.Value{{Name: "host", Value: text("x")}}}}, "cannot be set"},
		{"header name", serverconfig.HTTP{Connection: serverconfig.Connection{URL: "http://example.com/", Headers: []serverconfig.Value{{Name: "a b", Value: text("x")}}}}, "not a header name"},
		{"two sources", serverconfig.HTTP{Connection: serverconfig.Connection{URL: "http://example.com/", Headers: []serverconfig.Value{{Name: "a", Value: text("x"), Expression: "'a'"}}}}, "needs one of"},
		{"expression", serverconfig.HTTP{Connection: serverconfig.Connection{URL: "http://example.com/"}, Result: &serverconfig.Result{Text: "response.boddy"}}, "no field"},
		{"two results", serverconfig.HTTP{Connection: serverconfig.Connection{URL: "http://example.com/"}, Result: &serverconfig.Result{Text: "'a'", Structured: "1"}}, "at most one"},
		{"body of a GET", serverconfig.HTTP{Connection: serverconfig.Connection{URL: "http://example.com/"}, Body: &serverconfig.Body{Expression: "args"}}, "no body"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := Check(&serverconfig.Tool{Name: "t", HTTP: &tt.http}, input)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}
