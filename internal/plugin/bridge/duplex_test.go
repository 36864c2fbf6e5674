// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpprobe/fakemcp"
)

// speaking lets the bridge speak another transport.
func speaking(at *place, transport Transport) func(*Options) {
	return func(o *Options) {
		client := &http.Client{Transport: &http.Transport{DialContext: at.dial}}
		o.Open = func(context.Context) (*Way, error) {
			return &Way{URL: "http://server.example/mcp", Transport: transport, HTTP: client}, nil
		}
	}
}

// One connection carries everything: its end is that of the session, and what
// was under way is repeated where that changes nothing.
func TestOneConnection(t *testing.T) {
	for _, transport := range []Transport{SSE, WebSocket} {
		t.Run(string(transport), func(t *testing.T) {
			s := fakemcp.New()
			s.Settings.Stateless = true // The session is the connection.
			s.Settings.Capabilities = map[string]any{"tools": map[string]any{"listChanged": true}}
			serve := func() http.Handler {
				if transport == SSE {
					return s.SSE(nil)
				}
				return s.WebSocket(nil)
			}
			began := make(chan struct{}, 10)
			var lists atomic.Int32
			s.On(mcp.MethodToolsCall, func(c *fakemcp.Call) {
				began <- struct{}{}
				c.Hang()
			})
			s.On(mcp.MethodToolsList, func(c *fakemcp.Call) {
				if lists.Add(1) == 1 {
					began <- struct{}{}
					c.Hang()
				}
				c.WellBehaved()
			})
			at := &place{}
			at.serve(t, serve())
			r := connect(t, at, speaking(at, transport))
			r.shake()
			note := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":0}}`
			r.send(`{"jsonrpc":"2.0","id":0,"method":"tools/call","params":{"name":"alpha"}}`)
			<-began
			r.send(note)
			eventually(t, "the client's own words", func() bool {
				for _, request := range s.Requests() {
					if string(request.Body) == note {
						return true
					}
				}
				return false
			})
			r.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"alpha"}}`, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
			<-began
			<-began
			at.set("")
			r.until(`"id":1`, `"reason":"ConnectionLost"`)
			at.serve(t, serve())
			s.Release()
			seen := r.line() + r.line()
			if !strings.Contains(seen, `"alpha"`) || !strings.Contains(seen, "list_changed") {
				t.Errorf("got %s", seen)
			}
			if n := s.Count(mcp.MethodInitialize); n != 2 {
				t.Errorf("%d handshakes", n)
			}
			r.close()
		})
	}
}

// Credentials do not follow a server to another place.
func TestEndpointElsewhere(t *testing.T) {
	s := fakemcp.New()
	at := &place{}
	at.serve(t, s.SSE(func(l *fakemcp.Link) { l.Send("event: endpoint\ndata: http://elsewhere.example/x\n\n") }))
	r := connect(t, at, speaking(at, SSE))
	r.send(hello)
	r.until(`"id":"hello"`, "another place")
}

// What no carrier is made for is said.
func TestUnknownTransport(t *testing.T) {
	r := connect(t, &place{}, speaking(&place{}, "Pigeon"), func(o *Options) { o.Wait = time.Minute })
	r.send(hello)
	r.until(`"id":"hello"`, "Pigeon")
}
