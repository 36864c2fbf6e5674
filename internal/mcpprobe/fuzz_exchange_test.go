// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpprobe

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/sse"
)

// FuzzProbe: a server that answers everything with the same bytes is judged,
// within so many requests, by an outcome that is declared, and nothing that it
// said stands in the report unescaped.
func FuzzProbe(f *testing.F) {
	const handshake = `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"serverInfo":{"name":"a","version":"1"},"tools":[{"name":"a"}]}}`
	for _, seed := range []struct {
		status               int
		kind, encoding, body string
	}{
		{200, typeJSON, "", handshake}, {200, typeSSE, "", "data: " + handshake + "\n\n"}, {202, "", "", ""}, {401, typeJSON, "", handshake}, {307, "text/html", "", "<html>"},
		{200, typeJSON, "gzip", "\x1f\x8b"}, {404, typeJSON, "", `{"jsonrpc":"2.0","id":null,"error":{"code":-32022,"message":"m","data":{"supported":["2024-11-05"]}}}`},
		{200, typeJSON, "br", "x"}, {200, typeSSE, "", "event: endpoint\ndata: /x\n\n"}, {500, "text/plain", "", "invalid host \u202e"}, {200, "application/json;\"", "", "[" + handshake + "," + handshake + "]"},
	} {
		for id := 1; id < 4; id++ {
			f.Add(seed.status, seed.kind, seed.encoding, []byte(strings.ReplaceAll(seed.body, `"id":1`, `"id":`+string(rune('0'+id)))))
		}
	}
	type reply struct {
		status         int
		kind, encoding string
		body           []byte
	}
	var now reply
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		w.Header()["Content-Type"] = []string{now.kind}
		w.Header().Set("Mcp-Session-Id", now.kind)
		w.Header().Set("Location", "/again")
		w.Header().Set("WWW-Authenticate", string(now.body[:min(len(now.body), 100)]))
		if now.encoding != "" {
			w.Header().Set("Content-Encoding", now.encoding)
		}
		w.WriteHeader(now.status)
		_, _ = w.Write(now.body)
	}))
	f.Cleanup(server.Close)
	bounds := DefaultBounds()
	bounds.BodyBytes, bounds.TotalBytes, bounds.Pages = 64<<10, 256<<10, 10
	client := New(Options{Policy: Policy{AllowLoopback: true}, Bounds: bounds, Version: "test"})
	f.Fuzz(func(t *testing.T, status int, kind, encoding string, body []byte) {
		if status < 200 || status > 599 || len(body) > 64<<10 {
			return
		}
		now, requests = reply{status, kind, encoding, body}, 0
		report := client.Probe(context.Background(), Target{URL: server.URL + "/mcp", ReportURL: server.URL + "/report", Timeout: 20 * time.Second})
		client.Close()
		// Both eras, both transports, all pages of four lists, redirects.
		if requests > 100 {
			t.Errorf("%d requests", requests)
		}
		if !slices.Contains(Outcomes, report.Outcome) || report.Outcome == Timeout {
			t.Errorf("the outcome %q at %s", report.Outcome, report.Step)
		}
		report.Diagnostics = Diagnostics{}
		everyText(t, reflect.ValueOf(report))
		printable(t, Message(&report, Where{Pod: "p", Namespace: "ns"}))
	})
}

// everyText finds the texts in a value, however deep, and fails on those that
// may not stand in a status.
func everyText(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.String:
		printable(t, v.String())
		if v.Len() > 1000 {
			t.Errorf("a text of %d bytes", v.Len())
		}
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			everyText(t, v.Elem())
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			everyText(t, v.Index(i))
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			everyText(t, key)
			everyText(t, v.MapIndex(key))
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range v.NumField() {
			everyText(t, v.Field(i))
		}
	}
}

// FuzzBody: of a body no more is read than may be, compressed or not, and what
// is read is what was sent.
func FuzzBody(f *testing.F) {
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	_, _ = z.Write(make([]byte, 1<<20))
	_ = z.Close()
	f.Add("gzip", bomb.Bytes())
	f.Add("GZIP, identity", bomb.Bytes()[:20])
	f.Add("", []byte("hello"))
	f.Add("br", []byte("x"))
	f.Add("gzip, gzip", []byte("x"))
	f.Add("x-gzip", []byte{})
	f.Fuzz(func(t *testing.T, encoding string, body []byte) {
		const limit = 4096
		response := &http.Response{Header: http.Header{"Content-Encoding": {encoding}}, Body: io.NopCloser(bytes.NewReader(body))}
		total := &budget{limit: 2 * limit, slots: make(chan struct{}, 1)}
		defer total.release()
		r, err := openBody(t.Context(), response, limit, total)
		var unknown encodingError
		if errors.As(err, &unknown) && unknown.name != "other" && !encodings[unknown.name] {
			t.Fatalf("it tells of %q", unknown.name)
		}
		if err != nil {
			return
		}
		read, err := io.ReadAll(r)
		var large tooLargeError
		switch {
		case len(read) > limit || total.used > limit:
			t.Fatalf("%d bytes were read", len(read))
		case encodingOf(response.Header) != "":
		case errors.As(err, &large) != (len(body) > limit), err == nil && !bytes.Equal(read, body):
			t.Fatalf("%d bytes of %d, %v", len(read), len(body), err)
		}
	})
}

// FuzzHeaders: what is told of an answer's headers is one of the words that
// may be told.
func FuzzHeaders(f *testing.F) {
	f.Add("application/json; charset=utf-8", "s1")
	f.Add("Text/HTML", "\x7f")
	f.Add("x/y", " ")
	f.Add("\xff/;", strings.Repeat("a", 5000))
	f.Fuzz(func(t *testing.T, contentType, session string) {
		kind := mediaTypeOf(http.Header{"Content-Type": {contentType}})
		if !mediaTypes[kind] && kind != typeNone && kind != typeMalformed && kind != typeOther {
			t.Fatalf("%q is %q", contentType, kind)
		}
		e := &exchange{bounds: DefaultBounds()}
		id := e.opened(http.Header{"Mcp-Session-Id": {session}}, "2025-06-18")
		if id != "" && (id != session || strings.ContainsFunc(id, func(r rune) bool { return r < 0x21 || r > 0x7e })) {
			t.Fatalf("the session %q of %q", id, session)
		}
	})
}

// FuzzEndpoint: messages of HTTP with SSE go to the origin that was asked, or
// nowhere.
func FuzzEndpoint(f *testing.F) {
	for _, seed := range []string{"/messages?id=1", "http://host.example.com:80/x", "//evil.example.com", "https://host.example.com/", "http://u@host.example.com/", "http://host.example.com:081/", "\\\\evil", "?#x", " "} {
		f.Add(seed)
	}
	from, err := url.Parse("http://host.example.com/sse")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data string) {
		e := &exchange{bounds: DefaultBounds()}
		e.setURL(from)
		j := &judge{exchange: e, call: &call{step: StepStream}, resp: &http.Response{StatusCode: http.StatusOK, Header: http.Header{}}}
		to, failure := j.endpoint(t.Context(), sse.NewReader(strings.NewReader("event: endpoint\ndata: "+data+"\n\n")))
		if failure != nil {
			return
		}
		if to.Scheme != "http" || !strings.EqualFold(to.Hostname(), "host.example.com") || portOf(to) != "80" || to.User != nil || to.Fragment != "" {
			t.Fatalf("%q leads to %s", data, to)
		}
	})
}
