// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpserver_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

func headerTool() serverconfig.Tool {
	return tool("routed", func(t *serverconfig.Tool) {
		t.Definition = json.RawMessage(`{"name":"routed","inputSchema":{"type":"object","properties":{
			"region":{"type":"string","x-mcp-header":"Region"},"n":{"type":"integer","x-mcp-header":"N"},"deep":{"type":"object","properties":{"b":{"type":"boolean","x-mcp-header":"B"}}}}}}`)
		t.Expression = &serverconfig.Result{Structured: "args"}
	})
}

func TestModernRequests(t *testing.T) {
	f := start(t, config(tool("ping", nil), headerTool()))
	set := func(r *http.Request, pairs ...string) *http.Request {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i+1] == "" {
				r.Header.Del(pairs[i])
			} else {
				r.Header.Set(pairs[i], pairs[i+1])
			}
		}
		return r
	}
	raw := func(body string, pairs ...string) *http.Request {
		return set(f.post(body), append([]string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/list"}, pairs...)...)
	}
	tests := []struct {
		name    string
		request *http.Request
		status  int
		code    int
	}{
		{"discover", f.modern("server/discover", ""), 200, 0},
		{"list", f.modern("tools/list", ""), 200, 0},
		{"call", f.callModern("ping", "{}"), 200, 0},
		{"call without arguments", set(f.modern("tools/call", `"name":"ping"`), "Mcp-Name", "ping"), 200, 0},
		{"name encoded", set(f.callModern("ping", "{}"), "Mcp-Name", "=?base64?cGluZw==?="), 200, 0},
		{"no version header", set(f.modern("tools/list", ""), "Mcp-Protocol-Version", ""), 400, mcp.CodeHeaderMismatch},
		{"other version header", set(f.modern("tools/list", ""), "Mcp-Protocol-Version", "2027-01-01"), 400, mcp.CodeHeaderMismatch},
		{"legacy version header", set(f.modern("tools/list", ""), "Mcp-Protocol-Version", "2025-11-25"), 400, mcp.CodeHeaderMismatch},
		{"unknown version", raw(strings.ReplaceAll(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{`+modernMeta+`}}`, "2026-07-28", "2027-01-01"), "Mcp-Protocol-Version", "2027-01-01"), 400, mcp.CodeUnsupportedProtocolVersion},
		{"unknown version without meta", raw(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "Mcp-Protocol-Version", "1900-01-01"), 400, mcp.CodeUnsupportedProtocolVersion},
		{"nonsense version", raw(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "Mcp-Protocol-Version", "x"), 400, mcp.CodeUnsupportedProtocolVersion},
		{"no meta", raw(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`), 400, mcp.CodeInvalidParams},
		{"no capabilities", raw(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`), 400, mcp.CodeInvalidParams},
		{"no method header", set(f.modern("tools/list", ""), "Mcp-Method", ""), 400, mcp.CodeHeaderMismatch},
		{"other method header", set(f.modern("tools/list", ""), "Mcp-Method", "tools/call"), 400, mcp.CodeHeaderMismatch},
		{"no name header", set(f.callModern("ping", "{}"), "Mcp-Name", ""), 400, mcp.CodeHeaderMismatch},
		{"other name header", set(f.callModern("ping", "{}"), "Mcp-Name", "routed"), 400, mcp.CodeHeaderMismatch},
		{"unknown method", f.modern("nope", ""), 404, mcp.CodeMethodNotFound},
		{"legacy method", f.modern("ping", ""), 404, mcp.CodeMethodNotFound},
		{"prototype's name", f.modern("__proto__", ""), 404, mcp.CodeMethodNotFound},
		{"unknown tool", f.callModern("nope", "{}"), 200, mcp.CodeInvalidParams},
		{"list as arguments", f.callModern("ping", "[]"), 200, mcp.CodeInvalidParams},
		{"key twice in arguments", f.callModern("ping", `{"a":1,"a":2}`), 200, mcp.CodeInvalidParams},
		{"name is a number", set(f.modern("tools/call", `"name":1`), "Mcp-Name", "1"), 200, mcp.CodeInvalidParams},
		{"garbage cursor", f.modern("tools/list", `"cursor":"!!"`), 200, mcp.CodeInvalidParams},
		{"param headers", set(f.callModern("routed", `{"region":"eu","n":42,"deep":{"b":true}}`), "Mcp-Param-Region", "eu", "Mcp-Param-N", "42.0", "Mcp-Param-B", "true"), 200, 0},
		{"param header encoded", set(f.callModern("routed", `{"region":"Zürich"}`), "Mcp-Param-Region", "=?base64?WsO8cmljaA==?="), 200, 0},
		{"param header null", f.callModern("routed", `{"region":null}`), 200, 0},
		{"param header missing", f.callModern("routed", `{"region":"eu"}`), 400, mcp.CodeHeaderMismatch},
		{"param header differs", set(f.callModern("routed", `{"region":"eu"}`), "Mcp-Param-Region", "us"), 400, mcp.CodeHeaderMismatch},
		{"param header without argument", set(f.callModern("routed", `{}`), "Mcp-Param-Region", "us"), 400, mcp.CodeHeaderMismatch},
		{"param header not ASCII", set(f.callModern("routed", `{"region":"é"}`), "Mcp-Param-Region", "é"), 400, mcp.CodeHeaderMismatch},
		{"other param header", set(f.callModern("routed", `{}`), "Mcp-Param-Other", "us"), 200, 0},
		{"notification", raw(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`), 202, 0},
		{"response", raw(`{"jsonrpc":"2.0","id":1,"result":{}}`), 400, mcp.CodeInvalidRequest},
		{"batch", raw(`[{"jsonrpc":"2.0","id":1,"method":"tools/list"}]`), 400, mcp.CodeInvalidRequest},
		{"not JSON", raw(`{`), 400, mcp.CodeParseError},
		{"empty", raw(``), 400, mcp.CodeParseError},
		{"deep", raw(strings.Repeat(`{"a":`, 1<<16)), 400, mcp.CodeParseError},
		{"session header is ignored", set(f.modern("tools/list", ""), "Mcp-Session-Id", "x"), 200, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := f.do(tt.request)
			if got.status != tt.status || got.errorCode() != tt.code {
				t.Errorf("got %d and %d, want %d and %d: %s", got.status, got.errorCode(), tt.status, tt.code, got.body)
			}
			if got.header.Get("Mcp-Session-Id") != "" {
				t.Error("a session id was given out")
			}
		})
	}
}

func TestModernAnswers(t *testing.T) {
	f := start(t, config(
		tool("ping", nil),
		tool("last", func(t *serverconfig.Tool) {
			t.Metadata = map[string]string{"entryPoint": "true", "costCategory": "high"}
		}),
		tool("list", func(t *serverconfig.Tool) {
			t.Definition = json.RawMessage(`{"name":"list", "inputSchema":{"type":"object"},"outputSchema":{"type":"array"},"x-unknown":{"kept":[1.50]}}`)
			t.Expression = &serverconfig.Result{Structured: "[1, 2]"}
		}),
		tool("none", func(t *serverconfig.Tool) { t.Expression = nil }),
	))
	discover := f.do(f.modern("server/discover", ""))
	digest := f.server.Report().CatalogDigest
	want := `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"],"capabilities":{"tools":{"listChanged":true}},"instructions":"Ask.","ttlMs":5000,"cacheScope":"public","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"test","title":"Test","version":"1.0.0"},"mcp.espalier.dev/catalog-digest":"` + digest + `"}}}`
	if diff := cmp.Diff(want, discover.body); diff != "" {
		t.Error(diff)
	}
	const info = `"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"test","title":"Test","version":"1.0.0"}`
	want = `{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"last","description":"Says last.","inputSchema":{"type":"object"}},{"name":"list","inputSchema":{"type":"object"},"outputSchema":{"type":"array"},"x-unknown":{"kept":[1.50]}},{"name":"none","description":"Says none.","inputSchema":{"type":"object"}},{"name":"ping","description":"Says ping.","inputSchema":{"type":"object"}}],"resultType":"complete","ttlMs":5000,"cacheScope":"public",` + info + `}}}`
	if diff := cmp.Diff(want, f.do(f.modern("tools/list", "")).body); diff != "" {
		t.Error(diff)
	}
	want = `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[{"type":"text","text":"[1,2]"}],"structuredContent":[1,2],` + info + `}}}`
	if diff := cmp.Diff(want, f.do(f.callModern("list", "{}")).body); diff != "" {
		t.Error(diff)
	}
	want = `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[{"type":"text","text":"no executor configured"}],"isError":true,` + info + `,"mcp.espalier.dev/reason":"NoExecutor"}}}`
	if diff := cmp.Diff(want, f.do(f.callModern("none", "{}")).body); diff != "" {
		t.Error(diff)
	}
}

func TestLegacyRequests(t *testing.T) {
	f := start(t, config(tool("ping", nil), tool("list", func(t *serverconfig.Tool) {
		t.Definition = json.RawMessage(`{"name":"list","inputSchema":{"type":"object"},"outputSchema":{"type":"array"}}`)
		t.Expression = &serverconfig.Result{Structured: "[1]"}
	})))
	initialize := func(version string) string {
		return `{"jsonrpc":"2.0","id":"a","method":"initialize","params":{"protocolVersion":"` + version + `","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`
	}
	tests := []struct {
		name, body, version, session string
		status, code                 int
		want                         string // part of the body
	}{
		{"initialize", initialize("2025-06-18"), "", "", 200, 0, `"id":"a","result":{"protocolVersion":"2025-06-18"`},
		{"initialize at an unknown version", initialize("1999-01-01"), "", "", 200, 0, `"protocolVersion":"2025-11-25"`},
		{"initialize at the modern version", initialize("2026-07-28"), "", "", 200, 0, `"protocolVersion":"2025-11-25"`},
		{"initialize with a stale session", initialize("2025-06-18"), "", "stale", 200, 0, `"protocolVersion":"2025-06-18"`},
		{"initialized", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, "2025-06-18", "", 202, 0, ""},
		{"unknown notification", `{"jsonrpc":"2.0","method":"notifications/nope"}`, "2025-06-18", "", 202, 0, ""},
		{"response", `{"jsonrpc":"2.0","id":7,"result":{}}`, "2025-06-18", "", 202, 0, ""},
		{"ping", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, "2025-06-18", "", 200, 0, `"result":{}`},
		{"list without a version", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "", "", 200, 0, `{"tools":[{"name":"list","inputSchema":{"type":"object"}},{"name":"ping","description":"Says ping.","inputSchema":{"type":"object"}}]}`},
		{"call", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ping"}}`, "2025-11-25", "", 200, 0, `"result":{"content":[{"type":"text","text":"ping"}]}`},
		{"call with structured list", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list"}}`, "2025-11-25", "", 200, 0, `"result":{"content":[{"type":"text","text":"[1]"}]}`},
		{"unknown method", `{"jsonrpc":"2.0","id":1,"method":"resources/subscribe"}`, "2025-11-25", "", 200, mcp.CodeMethodNotFound, ""},
		{"undeclared logging", `{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"info"}}`, "2025-11-25", "", 200, mcp.CodeMethodNotFound, ""},
		{"modern method", `{"jsonrpc":"2.0","id":1,"method":"server/discover"}`, "2025-11-25", "", 200, mcp.CodeMethodNotFound, ""},
		{"unknown session", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, "2025-11-25", "abc", 404, mcp.CodeInvalidRequest, ""},
		{"batch", `[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/initialized"},{"jsonrpc":"2.0","id":2,"method":"nope"}]`, "2025-03-26", "", 200, 0, `[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":2,"error":{"code":-32601`},
		{"batch of notifications", `[{"jsonrpc":"2.0","method":"notifications/initialized"}]`, "", "", 202, 0, ""},
		{"batch in a later revision", `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, "2025-06-18", "", 400, mcp.CodeInvalidRequest, "one message per request"},
		{"initialize in a batch", `[` + initialize("2025-03-26") + `]`, "2025-03-26", "", 200, 0, "cannot stand in a batch"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := f.post(tt.body)
			for name, value := range map[string]string{"Mcp-Protocol-Version": tt.version, "Mcp-Session-Id": tt.session} {
				if value != "" {
					r.Header.Set(name, value)
				}
			}
			got := f.do(r)
			if got.status != tt.status || got.errorCode() != tt.code || !strings.Contains(got.body, tt.want) {
				t.Errorf("got %d, %d: %s", got.status, got.errorCode(), got.body)
			}
			if begins := strings.HasPrefix(tt.name, "initialize at") || tt.name == "initialize" || tt.name == "initialize with a stale session"; begins != (got.header.Get("Mcp-Session-Id") != "") {
				t.Errorf("session id %q", got.header.Get("Mcp-Session-Id"))
			}
		})
	}
	for _, method := range []string{http.MethodGet, http.MethodDelete, http.MethodPut} {
		r, err := http.NewRequest(method, f.url(), nil)
		must(t, err)
		if got := f.do(r); got.status != http.StatusMethodNotAllowed || got.header.Get("Allow") != "POST, OPTIONS" {
			t.Errorf("%s: got %d, %v", method, got.status, got.header)
		}
	}
}

// TestHosts is the server's side of case B09.
func TestHosts(t *testing.T) {
	f := start(t, config(tool("ping", nil)))
	const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`
	for _, host := range []string{"search.team-a.svc.cluster.local:8080", "search", "10.0.0.7:8080", "[fd00::7]:8080", "search.team-a.svc"} {
		r := f.post(initialize)
		r.Host = host
		if got := f.do(r); got.status != 200 {
			t.Errorf("%s: got %d", host, got.status)
		}
		for _, path := range []string{"/healthz", "/readyz"} {
			r, err := http.NewRequest(http.MethodGet, f.internal()+path, nil)
			must(t, err)
			r.Host = host
			if got := f.do(r); got.status != 200 {
				t.Errorf("%s on %s: got %d", path, host, got.status)
			}
		}
	}
}

func TestOrigin(t *testing.T) {
	f := start(t, config(tool("ping", nil)))
	foreign := []string{"http://evil.example.test", "null", "", "https://app.example.com.evil.test", "https://app.example.com:444", "http://app.example.com", "HTTPS://APP.EXAMPLE.COM", "http://" + f.server.Addr().String()}
	for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete, http.MethodOptions, http.MethodHead, "BREW"} {
		for _, origin := range foreign {
			r := f.modern("tools/list", "")
			r.Method = method
			r.Header["Origin"] = []string{origin}
			r.Host = strings.TrimPrefix(strings.TrimPrefix(origin, "http://"), "https://") // Equal to Origin: no excuse.
			if r.Host == "" || r.Host == "null" {
				r.Host = "search"
			}
			if got := f.do(r); got.status != http.StatusForbidden || got.header.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s from %q: got %d, %v", method, origin, got.status, got.header)
			}
		}
	}
	r := f.modern("tools/list", "")
	r.Header.Set("Origin", "https://app.example.com")
	if got := f.do(r); got.status != 200 || got.header.Get("Access-Control-Allow-Origin") != "https://app.example.com" || got.header.Get("Vary") != "Origin" {
		t.Errorf("got %d, %v", got.status, got.header)
	}
	r.Header.Add("Origin", "https://app.example.com")
	r.Body, _ = r.GetBody()
	if got := f.do(r); got.status != http.StatusForbidden {
		t.Errorf("two Origins: got %d", got.status)
	}
	preflight, err := http.NewRequest(http.MethodOptions, f.url(), nil)
	must(t, err)
	preflight.Header.Set("Origin", "https://app.example.com")
	preflight.Header.Set("Access-Control-Request-Method", "POST")
	preflight.Header.Set("Access-Control-Request-Headers", "content-type, mcp-param-region, x-other")
	got := f.do(preflight)
	allowed := got.header.Get("Access-Control-Allow-Headers")
	if got.status != http.StatusNoContent || !strings.Contains(allowed, "Mcp-Param-Region") || strings.Contains(strings.ToLower(allowed), "x-other") || !strings.Contains(allowed, "Mcp-Protocol-Version") {
		t.Errorf("preflight: got %d, %v", got.status, got.header)
	}
}

// TestMediaTypes is the server's side of case B10.
func TestMediaTypes(t *testing.T) {
	f := start(t, config(tool("ping", nil)))
	tests := []struct {
		name, contentType, accept string
		method                    string
		status                    int
		say                       string
	}{
		{"plain", "application/json", "application/json, text/event-stream", "tools/list", 200, ""},
		{"case and charset", "Application/JSON; Charset=UTF-8", "application/json", "tools/list", 200, ""},
		{"no space", "application/json;charset=utf-8", "*/*", "tools/list", 200, ""},
		{"no Accept", "application/json", "", "tools/list", 200, ""},
		{"group", "application/json", "application/*;q=0.8", "tools/list", 200, ""},
		{"refused by q", "application/json", "application/json;q=0.0", "tools/list", 406, "application/json, text/event-stream"},
		{"only streams", "application/json", "text/event-stream", "tools/list", 406, "application/json, text/event-stream"},
		{"HTML", "application/json", "text/html", "tools/list", 406, "application/json, text/event-stream"},
		{"listen without streams", "application/json", "application/json", "subscriptions/listen", 406, "application/json, text/event-stream"},
		{"text", "text/plain", "*/*", "tools/list", 415, "application/json"},
		{"form", "application/x-www-form-urlencoded", "*/*", "tools/list", 415, "application/json"},
		{"no Content-Type", "", "*/*", "tools/list", 415, "application/json"},
		{"JSON of another kind", "application/json-patch+json", "*/*", "tools/list", 415, "application/json"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := f.modern(tt.method, `"notifications":{}`)
			r.Header.Del("Content-Type")
			r.Header.Del("Accept")
			if tt.contentType != "" {
				r.Header.Set("Content-Type", tt.contentType)
			}
			if tt.accept != "" {
				r.Header.Set("Accept", tt.accept)
			}
			if got := f.do(r); got.status != tt.status || !strings.Contains(got.body, tt.say) {
				t.Errorf("got %d: %s", got.status, got.body)
			}
		})
	}
}

func TestBodyLimit(t *testing.T) {
	f := start(t, config(tool("ping", nil)))
	large := `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"` + strings.Repeat("x", 1<<20) + `"}}`
	r := f.post(large)
	if got := f.do(r); got.status != http.StatusRequestEntityTooLarge || got.errorCode() != mcp.CodeTooLarge {
		t.Errorf("with a length: got %d: %s", got.status, got.body)
	}
	r = f.post(large)
	r.ContentLength = -1 // chunked
	if got := f.do(r); got.status != http.StatusRequestEntityTooLarge {
		t.Errorf("chunked: got %d: %s", got.status, got.body)
	}
}

func TestNoCatalog(t *testing.T) {
	f := start(t, nil)
	if got := f.do(f.modern("tools/list", "")); got.status != http.StatusServiceUnavailable || got.errorCode() != mcp.CodeUnavailable {
		t.Errorf("got %d: %s", got.status, got.body)
	}
	r, err := http.NewRequest(http.MethodGet, f.internal()+"/readyz", nil)
	must(t, err)
	if got := f.do(r); got.status != http.StatusServiceUnavailable || got.body != "NoCatalog\n" {
		t.Errorf("got %d: %s", got.status, got.body)
	}
	f.reload(config(tool("ping", nil)))
	if got := f.do(f.callModern("ping", "{}")); got.text() != "ping" {
		t.Errorf("got %s", got.body)
	}
	r = f.post(`{}`)
	r.URL.Path = "/other"
	if got := f.do(r); got.status != http.StatusNotFound {
		t.Errorf("got %d", got.status)
	}
}
