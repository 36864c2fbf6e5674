// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/mcpserver/credentials"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

const anyObject = `{"type":"object"}`

func getTool(url string, change func(*serverconfig.HTTP)) serverconfig.Tool {
	h := serverconfig.HTTP{Connection: serverconfig.Connection{URL: url}, Method: "GET"}
	if change != nil {
		change(&h)
	}
	return httpTool(h)
}

func respond(status int, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if contentType != "" {
			w.Header().Set("Content-Type", contentType)
		} else {
			w.Header()["Content-Type"] = nil
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func TestDefaultResults(t *testing.T) {
	binary := "\x00\x01\xff\xfe"
	data := base64.StdEncoding.EncodeToString([]byte(binary))
	tests := []struct {
		name   string
		answer http.HandlerFunc
		want   string
	}{
		{"JSON object", respond(200, "application/json; charset=utf-8", ` {"a":"<b>"} `), `{"content":[{"type":"text","text":"{\"a\":\"<b>\"}"}],"structured":{"a":"<b>"}}`},
		{"JSON over lines", respond(200, "application/json", "{\n  \"a\": 1\n}\n"), `{"content":[{"type":"text","text":"{\n  \"a\": 1\n}"}],"structured":{"a":1}}`},
		{"JSON list", respond(200, "application/problem+json", `[1]`), `{"content":[{"type":"text","text":"[1]"}],"structured":[1]}`},
		{"JSON without its type", respond(200, "", `{"a":1}`), `{"content":[{"type":"text","text":"{\"a\":1}"}],"structured":{"a":1}}`},
		{"broken JSON", respond(200, "application/json", `{"a":`), `{"content":[{"type":"text","text":"{\"a\":"}]}`},
		{"text", respond(200, "text/plain", "hello"), `{"content":[{"type":"text","text":"hello"}]}`},
		{"text that is not UTF-8", respond(200, "text/plain", "a\xffb"), `{"content":[{"type":"text","text":"a` + "\uFFFD" + `b"}]}`},
		{"image", respond(200, "image/png", binary), `{"content":[{"type":"image","data":"` + data + `","mimeType":"image/png"}]}`},
		{"audio", respond(200, "audio/wav", binary), `{"content":[{"type":"audio","data":"` + data + `","mimeType":"audio/wav"}]}`},
		{"binary", respond(200, "application/pdf", binary), `{"content":[{"type":"resource","resource":{"uri":"urn:espalier:tool:tool","mimeType":"application/pdf","blob":"` + data + `"}}]}`},
		{"bytes without a type", respond(200, "", binary), `{"content":[{"type":"resource","resource":{"uri":"urn:espalier:tool:tool","mimeType":"application/octet-stream","blob":"` + data + `"}}]}`},
		{"empty", respond(204, "", ""), `{}`},
		{"HTML error", respond(500, "text/html", "<h1>"+strings.Repeat("x", 10000)), `{"content":[{"type":"text","text":"HTTP 500 Internal Server Error: <h1>` + strings.Repeat("x", 508) + `…"}],"isError":true}`},
		{"bare error", respond(404, "application/octet-stream", binary), `{"content":[{"type":"text","text":"HTTP 404 Not Found"}],"isError":true}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			backend := newRecorder(t, tt.answer)
			got, err := makeTool(t, nil, anyObject, getTool(backend.URL, nil)).call(context.Background(), `{}`)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, flat(t, got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// flat writes a result for comparison.
func flat(t *testing.T, r *call.Result) string {
	t.Helper()
	out := struct {
		Content    json.RawMessage `json:"content,omitempty"`
		Structured json.RawMessage `json:"structured,omitempty"`
		IsError    bool            `json:"isError,omitempty"`
	}{r.Content, r.Structured, r.IsError}
	var buf bytes.Buffer
	encoder := json.NewEncoder(&buf)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(out); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(buf.String())
}

func TestMappedResults(t *testing.T) {
	tests := []struct {
		name   string
		answer http.HandlerFunc
		result serverconfig.Result
		want   string
		err    call.Reason
	}{
		{"structured", respond(200, "application/json", `{"daily":[{"tmax":1},{"tmax":2.5}]}`), serverconfig.Result{Structured: "{'highs': response.body.daily.map(d, d.tmax), 'who': principal.kind}"}, `{"content":[{"type":"text","text":"{\"highs\":[1,2.5],\"who\":\"Anonymous\"}"}],"structured":{"highs":[1,2.5],"who":"Anonymous"}}`, ""},
		{"text with status and header", respond(201, "text/plain", "x"), serverconfig.Result{Text: "string(response.status) + response.headers['content-type'] + response.body"}, `{"content":[{"type":"text","text":"201text/plainx"}]}`, ""},
		{"content", respond(200, "application/octet-stream", "\x00\xff"), serverconfig.Result{Content: []serverconfig.Content{
			{Type: serverconfig.ContentText, Expression: "'a'"},
			{Type: serverconfig.ContentImage, MIMEType: "image/png", Expression: "response.body"},
			{Type: serverconfig.ContentEmbeddedResource, URI: "test://x", MIMEType: "text/plain", Expression: "'b'"},
			{Type: serverconfig.ContentResourceLink, URI: "test://y", Expression: "'c'"},
		}}, `{"content":[{"type":"text","text":"a"},{"type":"image","data":"AP8=","mimeType":"image/png"},{"type":"resource","resource":{"uri":"test://x","mimeType":"text/plain","text":"b"}},{"type":"resource_link","uri":"test://y","name":"c"}]}`, ""},
		{"an error stays an error", respond(503, "application/json", `{}`), serverconfig.Result{Structured: "response.body.x"}, `{"content":[{"type":"text","text":"HTTP 503 Service Unavailable: {}"}],"isError":true}`, ""},
		{"unless the author looks", respond(404, "application/json", `{"m":"none"}`), serverconfig.Result{Text: "response.body.m", IsError: "response.status >= 500"}, `{"content":[{"type":"text","text":"none"}]}`, ""},
		{"isError alone", respond(200, "application/json", `{"error":true}`), serverconfig.Result{IsError: "has(response.body.error)"}, `{"content":[{"type":"text","text":"{\"error\":true}"}],"structured":{"error":true},"isError":true}`, ""},
		{"missing key", respond(200, "application/json", `{}`), serverconfig.Result{Text: "response.body.x"}, "", call.ExpressionFailed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			backend := newRecorder(t, tt.answer)
			got, err := makeTool(t, nil, anyObject, getTool(backend.URL, func(h *serverconfig.HTTP) { h.Result = &tt.result })).call(context.Background(), `{}`)
			if tt.err != "" {
				if reason(err) != tt.err {
					t.Fatalf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, flat(t, got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestLargeAnswersAreRefused(t *testing.T) {
	backend := newRecorder(t, func(w http.ResponseWriter, _ *http.Request) {
		chunk := bytes.Repeat([]byte("x"), 1<<16)
		for range 800 { // 50 MiB
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	_, err := makeTool(t, nil, anyObject, getTool(backend.URL, nil)).call(context.Background(), `{}`)
	if reason(err) != call.ResultTooLarge {
		t.Fatalf("got %v", err)
	}
}

func TestTimeoutAndCancellationReachTheBackend(t *testing.T) {
	left := make(chan struct{}, 2)
	arrived := make(chan struct{}, 2)
	backend := newRecorder(t, func(_ http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-r.Context().Done()
		left <- struct{}{}
	})
	t.Run("timeout", func(t *testing.T) {
		tool := makeTool(t, nil, anyObject, getTool(backend.URL, func(h *serverconfig.HTTP) { h.TimeoutSeconds = 3 }))
		started := time.Now()
		_, err := tool.call(context.Background(), `{}`)
		if reason(err) != call.BackendTimeout || time.Since(started) > time.Minute {
			t.Fatalf("got %v after %v", err, time.Since(started))
		}
		<-arrived
		<-left
	})
	t.Run("cancellation", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(context.Background())
		go func() {
			<-arrived
			cancel(call.ErrWithdrawn)
		}()
		_, err := makeTool(t, nil, anyObject, getTool(backend.URL, nil)).call(ctx, `{}`)
		if !errors.Is(err, call.ErrWithdrawn) {
			t.Fatalf("got %v", err)
		}
		<-left
	})
}

func TestRetries(t *testing.T) {
	tests := []struct {
		name, method  string
		retries, want int32
		failures      int32
		wantError     bool
	}{
		{"GET until it works", "GET", 3, 3, 2, false},
		{"GET gives up", "GET", 1, 2, 9, true},
		{"POST is sent once", "POST", 3, 1, 9, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var calls atomic.Int32
			backend := newRecorder(t, func(w http.ResponseWriter, _ *http.Request) {
				if calls.Add(1) <= tt.failures {
					w.WriteHeader(http.StatusServiceUnavailable)
				}
			})
			got, err := makeTool(t, nil, anyObject, getTool(backend.URL, func(h *serverconfig.HTTP) { h.Method, h.Retries = tt.method, tt.retries })).call(context.Background(), `{}`)
			if err != nil || got.IsError != tt.wantError || calls.Load() != tt.want {
				t.Fatalf("got %+v, %v after %d calls", got, err, calls.Load())
			}
		})
	}
}

func writeKey(t *testing.T, folder, path, value string) {
	t.Helper()
	full := filepath.Join(folder, path)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		t.Fatal(err)
	}
	next := full + ".next" // A new file, as the kubelet makes one.
	if err := os.WriteFile(next, []byte(value), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, full); err != nil {
		t.Fatal(err)
	}
}

func authorized(h *serverconfig.HTTP) {
	h.Headers = []serverconfig.Value{{Name: "Authorization", Prefix: "Bearer ", File: "secrets/weather-api/token"}, {Name: "X-Key", Value: text("k")}}
}

func TestCredentials(t *testing.T) {
	folder := t.TempDir()
	backend := newRecorder(t, nil)
	tool := makeTool(t, credentials.New(folder), anyObject, getTool(backend.URL, authorized))
	_, err := tool.call(context.Background(), `{}`)
	if reason(err) != call.CredentialMissing || err.Error() != `Secret "weather-api" has no key "token" mounted here` {
		t.Fatalf("got %v", err)
	}
	writeKey(t, folder, "secrets/weather-api/token", "one\n")
	eventually(t, func() bool { _, err := tool.call(context.Background(), `{}`); return err == nil })
	writeKey(t, folder, "secrets/weather-api/token", "two")
	eventually(t, func() bool {
		if _, err := tool.call(context.Background(), `{}`); err != nil {
			t.Fatal(err)
		}
		all := backend.requests()
		return all[len(all)-1].Header.Get("Authorization") == "Bearer two"
	})
	if first := backend.requests()[0].Header.Get("Authorization"); first != "Bearer one" {
		t.Errorf("first used %q", first)
	}
}

func eventually(t *testing.T, check func() bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !check() {
		if time.Now().After(deadline) {
			t.Fatal("did not happen in time")
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func TestRedirects(t *testing.T) {
	folder := t.TempDir()
	writeKey(t, folder, "secrets/weather-api/token", "secret-value")
	other := newRecorder(t, nil)
	tests := []struct {
		name, method string
		status       int
		to           func(backend string) string
		wantFollowed bool
		wantAuth     string
	}{
		{"another origin without credentials", "GET", 302, func(string) string { return other.URL + "/elsewhere" }, true, ""},
		{"same origin with them", "GET", 302, func(string) string { return "/there" }, true, "Bearer secret-value"},
		{"a body stays at home", "POST", 307, func(string) string { return other.URL + "/elsewhere" }, false, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var backend *recorder
			backend = newRecorder(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/there" {
					return
				}
				http.Redirect(w, r, tt.to(backend.URL), tt.status)
			})
			before := len(other.requests())
			tool := makeTool(t, credentials.New(folder), anyObject, getTool(backend.URL+"/start?key=hidden", func(h *serverconfig.HTTP) { authorized(h); h.Method = tt.method }))
			got, err := tool.call(context.Background(), `{}`)
			if err != nil {
				t.Fatal(err)
			}
			all := append(backend.requests()[1:], other.requests()[before:]...)
			if followed := len(all) == 1; followed != tt.wantFollowed || got.IsError == tt.wantFollowed {
				t.Fatalf("followed %v, result %s", followed, flat(t, got))
			}
			if !tt.wantFollowed {
				return
			}
			header := all[0].Header
			if header.Get("Authorization") != tt.wantAuth || tt.wantAuth == "" && (header.Get("X-Key") != "" || header.Get("Referer") != "" || header.Get("Cookie") != "") {
				t.Errorf("headers %v", header)
			}
		})
	}
}

func TestCheckRedirect(t *testing.T) {
	request := func(method, raw string) *http.Request {
		u, err := url.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		return &http.Request{Method: method, URL: u, Header: http.Header{"Authorization": {"x"}, "X-Any": {"x"}, "Referer": {"x"}, "Accept": {"a"}}}
	}
	tests := []struct {
		name, from, to string
		bound, follow  bool
		keeps          bool
	}{
		{"same origin", "https://a.example/x", "https://a.example:443/y", false, true, true},
		{"other host", "https://a.example/x", "https://b.example/y", false, true, false},
		{"subdomain", "https://a.example/x", "https://b.a.example/y", false, true, false},
		{"other port", "http://a.example/x", "http://a.example:81/y", false, true, false},
		{"downgrade", "https://a.example/x", "http://a.example/y", false, false, false},
		{"own TLS", "https://a.example/x", "https://b.example/y", true, false, false},
		{"metadata service", "http://a.example/x", "http://169.254.169.254/y", false, false, false},
		{"loopback", "http://a.example/x", "http://127.0.0.1:8081/y", false, false, false},
		{"mapped loopback", "http://a.example/x", "http://[::ffff:127.0.0.1]/y", false, false, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			next := request("GET", tt.to)
			err := checkRedirect(next, []*http.Request{request("GET", tt.from)}, tt.bound)
			if follow := err == nil; follow != tt.follow {
				t.Fatalf("followed %v (%v)", follow, err)
			}
			if err != nil {
				return
			}
			if kept := next.Header.Get("Authorization") != ""; kept != tt.keeps || !tt.keeps && len(next.Header) != 1 {
				t.Errorf("headers %v", next.Header)
			}
		})
	}
}

func TestTLS(t *testing.T) {
	backend := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }))
	defer backend.Close()
	folder := t.TempDir()
	ca := &bytes.Buffer{}
	ca.WriteString("-----BEGIN CERTIFICATE-----\n" + base64.StdEncoding.EncodeToString(backend.Certificate().Raw) + "\n-----END CERTIFICATE-----\n")
	writeKey(t, folder, "configmaps/ca/ca.crt", ca.String())
	with := func(settings *serverconfig.TLS) serverconfig.Tool {
		return getTool(backend.URL, func(h *serverconfig.HTTP) { h.TLS = settings })
	}
	tests := []struct {
		name     string
		settings *serverconfig.TLS
		want     call.Reason
		text     string
	}{
		{"untrusted", nil, call.BackendFailed, "certificate is not trusted"},
		{"trusted", &serverconfig.TLS{CAFile: "configmaps/ca/ca.crt"}, "", ""},
		{"by another name", &serverconfig.TLS{CAFile: "configmaps/ca/ca.crt", ServerName: "example.com"}, "", ""},
		{"by a wrong name", &serverconfig.TLS{CAFile: "configmaps/ca/ca.crt", ServerName: "wrong.test"}, call.BackendFailed, "certificate is not trusted"},
		{"missing CA", &serverconfig.TLS{CAFile: "configmaps/none/ca.crt"}, call.CredentialMissing, `ConfigMap "none" has no key "ca.crt"`},
		{"missing client certificate", &serverconfig.TLS{CertFile: "secrets/c/tls.crt", KeyFile: "secrets/c/tls.key"}, call.CredentialMissing, `Secret "c" has no key "tls.crt"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := makeTool(t, credentials.New(folder), anyObject, with(tt.settings)).call(context.Background(), `{}`)
			if reason(err) != tt.want || err != nil && !strings.Contains(err.Error(), tt.text) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestFailuresNameNoAddress(t *testing.T) {
	gone := httptest.NewServer(nil)
	gone.Close()
	folder := t.TempDir()
	writeKey(t, folder, "secrets/s/k", "secret-value")
	tool := makeTool(t, credentials.New(folder), anyObject, getTool(gone.URL, func(h *serverconfig.HTTP) {
		h.Query, h.QuerySet = []serverconfig.Value{{Name: "token", File: "secrets/s/k"}}, true
	}))
	_, err := tool.call(context.Background(), `{}`)
	var failure *call.Error
	if !errors.As(err, &failure) || failure.Reason != call.BackendFailed {
		t.Fatalf("got %v", err)
	}
	if strings.Contains(failure.Message, "127.0.0.1") || strings.Contains(failure.Message+failure.Cause.Error(), "secret-value") {
		t.Errorf("message %q, cause %q", failure.Message, failure.Cause)
	}
}

func TestExpressionAndNone(t *testing.T) {
	tool := makeTool(t, nil, `{"type":"object","properties":{"x":{"type":"number"}}}`, serverconfig.Tool{Expression: &serverconfig.Result{Structured: "{'double': args.x * 2.0}"}})
	got, err := tool.call(context.Background(), `{"x":3}`)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(`{"content":[{"type":"text","text":"{\"double\":6}"}],"structured":{"double":6}}`, flat(t, got)); diff != "" {
		t.Error(diff)
	}
	if _, err := tool.call(context.Background(), `{}`); reason(err) != call.ExpressionFailed {
		t.Errorf("got %v", err)
	}
	if _, err := makeTool(t, nil, anyObject, serverconfig.Tool{}).call(context.Background(), `{}`); reason(err) != call.NoExecutor || err.Error() != "no executor configured" {
		t.Errorf("got %v", err)
	}
}
