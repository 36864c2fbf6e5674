// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package fakemcp

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"

	"github.com/coder/websocket"

	"github.com/espalier-dev/espalier/internal/mcp"
)

// Link is an open stream of HTTP with SSE, or a WebSocket: what a handler
// answers goes out on it.
type Link struct {
	server *Server
	ctx    context.Context //nolint:containedctx // It is the connection's.
	send   func(message string)
	header http.Header
}

// Send sends a message, whatever it is.
func (l *Link) Send(message string) { l.send(message) }

// SSE serves HTTP with SSE at one path: GET opens a stream whose first event
// names the path to POST to. Handlers answer messages as ever; what they
// answer with success goes out on the stream, any other status answers the
// POST. began, if set, is called in place of the first event.
func (s *Server) SSE(began func(*Link)) http.Handler {
	var mu sync.Mutex
	var open *Link // while its stream is
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			s.record(r)
			events := &Call{Server: s, Settings: s.settings(), W: w, R: r}
			if h := s.handler(GET); h != nil {
				h(events)
				return
			}
			events.Stream()
			l := &Link{server: s, ctx: r.Context(), send: func(m string) { events.Send("event: message\n" + Data(m)) }}
			mu.Lock()
			open = l
			if began != nil {
				l.send = events.Send
				began(l)
				l.send = func(m string) { events.Send("event: message\n" + Data(m)) }
			} else {
				events.Send("event: endpoint\ndata: " + r.URL.Path + "?session=1\n\n")
			}
			mu.Unlock()
			events.Hang()
			mu.Lock()
			open = nil
			mu.Unlock()
			return
		}
		if r.URL.Query().Get("session") != "1" {
			// As servers do that know nothing newer.
			s.record(r)
			http.Error(w, "Cannot POST", http.StatusNotFound)
			return
		}
		answer := s.answer(r)
		if answer.Code/100 != 2 {
			w.WriteHeader(answer.Code)
			_, _ = w.Write(answer.Body.Bytes())
			return
		}
		w.WriteHeader(http.StatusAccepted)
		if body := strings.TrimSpace(answer.Body.String()); body != "" {
			mu.Lock()
			defer mu.Unlock()
			if open != nil {
				open.send(body)
			}
		}
	})
}

// answer lets the handlers answer a message aside.
func (s *Server) answer(r *http.Request) *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	s.ServeHTTP(answer, r)
	return answer
}

// WebSocket serves one message per text frame. Handlers answer messages as
// ever; with Legacy their session is that of the connection. began, if set, is
// called when a connection stands.
func (s *Server) WebSocket(began func(*Link)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h := s.handler(GET); h != nil {
			s.record(r)
			h(&Call{Server: s, Settings: s.settings(), W: w, R: r})
			return
		}
		socket, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"mcp"}})
		if err != nil {
			return
		}
		defer socket.CloseNow() //nolint:errcheck // It may be closed already.
		l := &Link{server: s, ctx: r.Context(), header: r.Header, send: func(m string) {
			_ = socket.Write(context.Background(), websocket.MessageText, []byte(m))
		}}
		if began != nil {
			began(l)
		}
		for {
			_, message, err := socket.Read(r.Context())
			if err != nil {
				return
			}
			l.message(message)
		}
	})
}

// message answers what came on a WebSocket as if it had come by HTTP.
func (l *Link) message(message []byte) {
	r, err := http.NewRequestWithContext(l.ctx, http.MethodPost, "/", bytes.NewReader(message))
	if err != nil {
		return
	}
	for name, values := range l.header {
		r.Header[name] = values
	}
	if text := string(message); strings.Contains(text, `"`+mcp.MetaProtocolVersion+`"`) {
		r.Header.Set(mcp.HeaderProtocolVersion, mcp.Version20260728)
		_, rest, _ := strings.Cut(text, `"method":"`)
		method, _, _ := strings.Cut(rest, `"`)
		r.Header.Set(mcp.HeaderMethod, method)
	}
	go func() {
		answer := l.server.answer(r)
		body := strings.TrimSpace(answer.Body.String())
		if answer.Header().Get("Content-Type") != "application/json" && answer.Code/100 != 2 {
			var m struct {
				ID json.RawMessage `json:"id"`
			}
			_ = json.Unmarshal(message, &m)
			body = (&Call{ID: m.ID}).ErrorResponse(mcp.CodeMethodNotFound, "method not found", nil)
		}
		if body != "" {
			l.send(body)
		}
	}()
}
