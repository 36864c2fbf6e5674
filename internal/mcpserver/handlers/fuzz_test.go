// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/mcpserver/credentials"
	"github.com/espalier-dev/espalier/internal/mcpserver/principal"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
	"github.com/espalier-dev/espalier/internal/openapi"
	"github.com/espalier-dev/espalier/internal/schema"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

func fuzzHandler(f *testing.F, declared *serverconfig.HTTP, input string) *httpHandler {
	f.Helper()
	factory := NewFactory(credentials.New(f.TempDir()), "espalier/test")
	f.Cleanup(factory.Close)
	compiled, err := schema.CompileInput(json.RawMessage(input))
	if err != nil {
		f.Fatal(err)
	}
	h, err := factory.newHTTP(&serverconfig.Tool{Name: "tool", HTTP: declared}, compiled)
	if err != nil {
		f.Fatal(err)
	}
	return h
}

// FuzzAnswer: whatever a backend answers, the result is one that can be sent:
// its content blocks are valid, without line breaks between them, and
// structured content is what the backend wrote.
func FuzzAnswer(f *testing.F) {
	f.Add(200, "application/json; charset=utf-8", []byte(`{"a":[1, 2.50],"b":"\u00e4"}`))
	f.Add(200, "application/json", []byte("{\n\"a\":1}\n"))
	f.Add(200, "text/plain", []byte("a\xff\x00"))
	f.Add(500, "text/html", []byte(strings.Repeat("ä", 400)))
	f.Add(200, "image/png\r\nX: y", []byte{0})
	f.Add(200, "image/svg+xml;a=\"", []byte(`<svg/>`))
	f.Add(200, "audio/\u00e4", []byte{})
	f.Add(302, "", []byte(`[`))
	f.Add(204, "application/problem+json", []byte(`{"a":1,"a":2}`))
	plain := fuzzHandler(f, &serverconfig.HTTP{Connection: serverconfig.Connection{URL: "http://h/"}}, anyObject)
	mapped := fuzzHandler(f, &serverconfig.HTTP{
		Connection: serverconfig.Connection{URL: "http://h/"}, Result: &serverconfig.Result{Structured: "{'status': response.status, 'body': response.body, 'headers': response.headers}"},
	}, anyObject)
	f.Fuzz(func(t *testing.T, status int, contentType string, body []byte) {
		a := &answer{status: status, header: http.Header{"Content-Type": {contentType}}, body: body}
		c := &call.Call{Tool: "tool", Args: map[string]any{}, Caller: principal.Nobody(), MaxBytes: 1 << 20}
		for _, h := range []*httpHandler{plain, mapped} {
			result, err := h.answer(t.Context(), c, a)
			if err != nil {
				if h == plain {
					t.Fatalf("%v", err)
				}
				continue
			}
			if result.IsError != (h == plain && (status >= 400 || status < 200 || isRedirect(status))) && h == plain {
				t.Fatalf("status %d is an error: %t", status, result.IsError)
			}
			sendable(t, result.Content, result.Structured)
			if h == plain && result.Structured != nil {
				var theirs, ours any
				if json.Unmarshal(body, &theirs) != nil || json.Unmarshal(result.Structured, &ours) != nil {
					t.Fatalf("%q becomes %q", body, result.Structured)
				}
			}
		}
	})
}

func sendable(t *testing.T, content, structured json.RawMessage) {
	t.Helper()
	for _, raw := range []json.RawMessage{content, structured} {
		if raw != nil && (!json.Valid(raw) || strings.ContainsAny(string(raw), "\r\n")) {
			t.Fatalf("%q cannot be sent", raw)
		}
	}
	if content == nil {
		return
	}
	var blocks []struct{ Type string }
	if err := json.Unmarshal(content, &blocks); err != nil || len(blocks) == 0 {
		t.Fatalf("the content %q: %v", content, err)
	}
	for _, b := range blocks {
		switch b.Type {
		case "text", "image", "audio", "resource":
		default:
			t.Fatalf("a block of type %q", b.Type)
		}
	}
}

// FuzzArguments: arguments steer a request to no other host, scheme or place
// of the path, and put nothing into its headers but a value.
func FuzzArguments(f *testing.F) {
	handlers := []*httpHandler{
		fuzzHandler(f, &serverconfig.HTTP{Connection: serverconfig.Connection{URL: "https://api.example.com/v1/{a}?fixed=1"}}, `{"type":"object","properties":{"a":{},"b":{}}}`),
		fuzzHandler(f, &serverconfig.HTTP{
			Method:     http.MethodPost,
			Connection: serverconfig.Connection{URL: "https://api.example.com/v1/x", Headers: []serverconfig.Value{{Name: "X-A", Expression: "string(args.a)"}}},
		}, `{"type":"object","properties":{"a":{},"b":{}}}`),
		fuzzHandler(f, &serverconfig.HTTP{
			Method: http.MethodPut, Connection: serverconfig.Connection{URL: "https://api.example.com/v1/x"}, Body: &serverconfig.Body{MediaType: mediaForm, Expression: "args"},
		}, anyObject),
	}
	operation, err := handlers[0].factory.Operation("tool", &openapi.Request{
		Method: http.MethodPost, URL: "https://api.example.com/v1/{a}",
		Params: []openapi.Param{
			{Arg: "a", Name: "a", In: openapi.InPath, Style: openapi.StyleSimple}, {Arg: "b", Name: "b", In: openapi.InQuery, Style: openapi.StyleDeep, Explode: true},
			{Arg: "c", Name: "X-C", In: openapi.InHeader, Style: openapi.StyleSimple}, {Arg: "d", Name: "d", In: openapi.InQuery, Style: openapi.StyleForm, Explode: true},
		},
		Body: &openapi.Body{Arg: "e", MediaType: mediaForm, Kind: openapi.BodyForm},
	}, &serverconfig.Connection{})
	if err != nil {
		f.Fatal(err)
	}
	handlers = append(handlers, operation.(*httpHandler))
	for _, seed := range []string{
		`{"a":"x","b":["y",1.5,null,true],"c":"v","d":{"k":1},"e":{"f":"g&h"}}`, `{"a":"../../admin"}`, `{"a":"x?y#z@evil.example.com:80"}`, `{"a":"\r\nX-Evil: 1","c":"\r\nX-Evil: 1"}`,
		`{"a":{"b":1}}`, `{"a":[]}`, `{"a":"\u0000"}`, `{"fixed":"2","a":1}`, `{"a":1e308,"b":{"c":{"d":[[]]}}}`, `{"a":"%2e%2e"}`, `{}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		value, err := wire.Decode(raw)
		args, ok := value.(map[string]any)
		if err != nil || !ok {
			return
		}
		for i, h := range handlers {
			c := &call.Call{Tool: "tool", Args: args, RawArgs: raw, Caller: principal.Nobody(), MaxBytes: 1 << 20}
			p, err := h.prepare(t.Context(), c)
			if err != nil {
				if len(err.Error()) > 1000 {
					t.Fatalf("an error of %d bytes", len(err.Error()))
				}
				continue
			}
			segments := strings.Split(p.url.EscapedPath(), "/")
			if p.url.Scheme != "https" || p.url.Host != "api.example.com" || p.url.User != nil || p.url.Fragment != "" || len(segments) != 3 || segments[1] != "v1" {
				t.Fatalf("handler %d: %q steers to %s", i, raw, p.url)
			}
			if i == 0 && !strings.HasPrefix(p.url.RawQuery, "fixed=1") || strings.Count(p.url.RawQuery, "fixed=") > 1 {
				t.Fatalf("the query %q", p.url.RawQuery)
			}
			for name, values := range p.header {
				for _, v := range values {
					if !validHeaderValue(v) || strings.Contains(name, "Evil") {
						t.Fatalf("handler %d: the header %s: %q", i, name, v)
					}
				}
			}
			if p.header.Get("Content-Type") == mediaJSON && len(p.body) > 0 && !json.Valid(p.body) {
				t.Fatalf("the body %q", p.body)
			}
		}
	})
}
