// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package httpgate

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"golang.org/x/net/http/httpguts"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
)

// FuzzPreflight: what a browser asks for, it is told of parameters' headers
// alone, so many and no more, and nothing that breaks a header.
func FuzzPreflight(f *testing.F) {
	f.Add("Mcp-Param-City, content-type,, mcp-param-a b")
	f.Add("mcp-param-\r\nX: y")
	f.Add(strings.Repeat("Mcp-Param-A,", 200))
	f.Fuzz(func(t *testing.T, asked string) {
		const origin = "https://app.example.com"
		header := http.Header{}
		r := &http.Request{Method: http.MethodOptions, Header: http.Header{"Access-Control-Request-Headers": {asked}}}
		allowOrigin(header, r, origin, "POST")
		if header.Get("Access-Control-Allow-Origin") != origin {
			t.Fatal("another origin")
		}
		allowed := strings.Split(header.Get("Access-Control-Allow-Headers"), ", ")
		if len(allowed) > maxAllowed {
			t.Fatalf("%d headers", len(allowed))
		}
		for i, name := range allowed {
			if i < len(corsHeaders) {
				continue
			}
			if !strings.HasPrefix(name, mcp.HeaderParamPrefix) || !httpguts.ValidHeaderFieldName(name) {
				t.Fatalf("%q is allowed", name)
			}
		}
	})
}

// FuzzBody: a body is taken whole or not at all, whatever length it claims to
// have.
func FuzzBody(f *testing.F) {
	f.Add([]byte(`{"a":1}`), int64(7))
	f.Add([]byte(``), int64(-1))
	f.Add(bytes.Repeat([]byte("x"), 200), int64(-1))
	f.Add([]byte(`short`), int64(64))
	f.Add([]byte(``), int64(1<<40))
	f.Fuzz(func(t *testing.T, body []byte, length int64) {
		const limit = 64
		r := &http.Request{Method: http.MethodPost, Header: http.Header{}, ContentLength: max(length, -1), Body: io.NopCloser(bytes.NewReader(body))}
		var into bytes.Buffer
		status, refusal := Body(httptest.NewRecorder(), r, &into, limit)
		switch {
		case refusal == nil && (len(body) > limit || !bytes.Equal(into.Bytes(), body)):
			t.Fatalf("%d bytes of %d were taken", into.Len(), len(body))
		case refusal != nil && len(body) <= limit && length <= limit:
			t.Fatalf("%d bytes are refused: %d %v", len(body), status, refusal)
		case refusal != nil && !wire.Valid(wire.AppendError(nil, nil, refusal)):
			t.Fatal("the refusal is no JSON")
		case into.Len() > limit+bytes.MinRead || into.Cap() > 4*grown:
			t.Fatalf("%d bytes are held in %d", into.Len(), into.Cap())
		}
	})
}
