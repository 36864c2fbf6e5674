// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"

	"github.com/coder/websocket"

	"github.com/espalier-dev/espalier/internal/mcpserver/upstream/client"
)

// openWebSocket makes a connection that carries one message per text frame, in
// both eras.
func openWebSocket(ctx context.Context, o *Options, way *Way, others take) (link, *fault) {
	header, f := o.ownHeaders()
	if f != nil {
		return nil, f
	}
	own := *way.HTTP
	own.CheckRedirect = client.SameOriginOnly
	socket, response, err := websocket.Dial(ctx, way.URL, &websocket.DialOptions{ //nolint:bodyclose // The library has read it.
		HTTPClient: &own, HTTPHeader: header, Subprotocols: []string{"mcp"},
	})
	if err != nil {
		if response != nil && response.StatusCode != http.StatusSwitchingProtocols {
			return nil, statusFault(response.StatusCode, "", o.Credential)
		}
		var wrapped *url.Error // It repeats the URL.
		if errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		return nil, noReplica(err)
	}
	socket.SetReadLimit(o.MaxBytes)
	l := &duplexLink{
		others: others, ended: make(chan struct{}), waiting: map[string]*waiting{},
		cut: func() { _ = socket.CloseNow() },
		send: func(ctx context.Context, m *message) *fault {
			// A message is written whole: that its request is given up must not
			// end what is the connection of all.
			writing, cancel := context.WithTimeout(context.WithoutCancel(ctx), sayLimit)
			defer cancel()
			if err := socket.Write(writing, websocket.MessageText, m.raw); err != nil {
				return lost(err)
			}
			return nil
		},
	}
	life := context.WithoutCancel(ctx)
	go func() {
		defer close(l.ended)
		defer l.cut()
		for {
			kind, r, err := socket.Reader(life)
			if err != nil {
				return
			}
			raw, err := io.ReadAll(r)
			if err != nil {
				o.Log.Warn("The connection broke within a message, which may be too large", "limit", o.MaxBytes)
				return
			}
			p, ok := parse(raw)
			if !ok || kind != websocket.MessageText {
				o.Log.Warn("The server sent what is no message; it is left out")
				continue
			}
			l.take(p)
		}
	}()
	return l, nil
}
