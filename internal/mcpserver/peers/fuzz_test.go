// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package peers

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"strings"
	"testing"
)

// FuzzForward: what one replica passes on reaches another as it came, and none
// but a replica that was looked up is ever connected.
func FuzzForward(f *testing.F) {
	var seen *http.Request
	var read []byte
	server := httptest.NewServer(Receive(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = r
		read, _ = io.ReadAll(r.Body)
		_, _ = w.Write(read)
	})))
	f.Cleanup(server.Close)
	owner := server.Listener.Addr().String()
	p := New((&names{addresses: []string{self, owner}}).resolve, slog.New(slog.DiscardHandler))
	p.At(self)
	p.pause, p.waiting = 0, nil // Nobody waits for newcomers.
	f.Cleanup(p.Close)
	dial := p.client.DialContext
	p.client.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if address != owner {
			f.Errorf("%s is dialled", address)
		}
		return dial(ctx, network, address)
	}
	f.Add(Hash(owner), "X-Forwarded-For", "198.51.100.1", "a=b&c", []byte("{}"))
	f.Add(Hash(owner), "Mcp-Session-Id", "x.y", "", []byte(nil))
	f.Add(Hash(other), "Connection", "X-A", "%zz", []byte("x"))
	f.Add("127.0.0.1:80", "Host", "evil.example.com", "", []byte("x"))
	f.Add(Hash(owner), "Transfer-Encoding", "chunked", ";", []byte("0\r\n\r\n"))
	f.Fuzz(func(t *testing.T, hash, name, value, query string, body []byte) {
		name = textproto.CanonicalMIMEHeaderKey(name)
		r := httptest.NewRequest(http.MethodPost, "http://front.example.com/mcp", nil)
		r.URL.RawQuery = query
		if strings.ContainsFunc(query, func(c rune) bool { return c <= ' ' || c > '~' || c == '#' }) {
			return // No server hands that on.
		}
		r.Header = http.Header{name: {value}, "Authorization": {"Bearer t"}}
		seen, read = nil, nil
		w := httptest.NewRecorder()
		err := p.Forward(w, r, hash, body)
		if hash != Hash(owner) && !errors.Is(err, ErrGone) && !errors.Is(err, ErrBroken) {
			t.Fatalf("%q: %v", hash, err)
		}
		if err != nil {
			if w.Body.Len() > 0 {
				t.Fatalf("an error and an answer: %v, %q", err, w.Body)
			}
			return
		}
		if seen.URL.Path != "/mcp" || seen.Host != "front.example.com" || string(read) != string(body) || w.Body.String() != string(body) {
			t.Fatalf("came as %s %s: %q", seen.Host, seen.URL.Path, read)
		}
		if !strings.Contains(query, ";") && seen.URL.RawQuery != query && !strings.Contains(query, "%") {
			t.Fatalf("the query came as %q, not %q", seen.URL.RawQuery, query)
		}
		if name == "Mcp-Session-Id" && strings.TrimSpace(value) != seen.Header.Get(name) {
			t.Fatalf("the id came as %q, not %q", seen.Header.Get(name), value)
		}
		if p.Elsewhere(seen.Context(), Hash(other)) {
			t.Fatal("it would be passed on again")
		}
	})
}
