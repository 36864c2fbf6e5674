// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"time"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
)

// steady is how long a stream must have stood to be opened again soon.
const steady = 10 * time.Second

// listening is a subscriptions/listen of the client, which outlives the
// server's streams.
type listening struct {
	b *bridge
	m *message
	// granted is the filter as the server acknowledged it first, raw; nil
	// until a stream stood.
	granted []byte
	// last is the answer that ended a stream, which need not end the
	// subscription. refused: it is an error.
	last    *packet
	refused bool
	// ended is why the stream ended, nil when by an answer.
	ended *fault
}

// listen carries a listen stream, and opens it again when it ends: a client
// need not know that a pod was replaced, but what it missed by that.
func (b *bridge) listen(ctx context.Context, m *message) *fault {
	s := &listening{b: b, m: m}
	f := b.persist(ctx, m, func(patience context.Context) *fault {
		s.once(ctx, patience)
		if over(ctx) || s.granted != nil {
			return nil // It stood: it is not for patience to end it.
		}
		return s.ended
	})
	if f != nil {
		return f
	}
	for try := 0; ; try++ {
		switch {
		case over(ctx):
			return nil
		case s.ended == nil && (s.refused || !s.grants()):
			m.settle(*s.last)
			b.write(s.last.raw)
			return nil
		case s.ended != nil && s.ended.kind == refused:
			return s.ended
		}
		b.o.Log.Debug("A listen stream ended; it is opened again", "error", s.ended)
		if !pause(ctx, backoff(try)) {
			return nil
		}
		began := time.Now()
		s.once(ctx, ctx)
		if time.Since(began) > steady {
			try = 0
		}
	}
}

// over reports whether ctx has ended.
func over(ctx context.Context) bool { return ctx.Err() != nil }

// once opens a stream and stays with it.
func (s *listening) once(ctx, patience context.Context) {
	s.last, s.refused = nil, false
	l, f := s.b.modern.get(patience, s.b)
	if f == nil {
		m, _ := read(s.m.raw) // It counts its answers anew.
		f = l.exchange(ctx, patience, m, s.take)
		s.b.modern.failed(l, f)
	}
	s.ended = f
}

func (s *listening) take(p packet) {
	in := &p.parts[0]
	switch {
	case in.isAnswer():
		s.last, s.refused = &p, in.failure != nil
	case in.method == mcp.NotificationAcknowledged && s.granted != nil:
		s.missed()
	case in.method == mcp.NotificationAcknowledged:
		s.granted = []byte("{}")
		if params, err := wire.DecodeObject(in.params); err == nil && wire.IsObject(params.Get("notifications")) {
			s.granted = params.Get("notifications")
		}
		s.b.write(p.raw)
	default:
		s.b.write(p.raw)
	}
}

// grants reports whether the server tells of anything.
func (s *listening) grants() bool {
	object, err := wire.DecodeObject(s.granted)
	return err == nil && len(object) > 0
}

// missed tells the client of all that it listens to: what happened between two
// streams is not known.
func (s *listening) missed() {
	granted, err := wire.DecodeObject(s.granted)
	if err != nil {
		return
	}
	meta := append([]byte(`"_meta":{"`+mcp.MetaSubscriptionID+`":`), s.m.ID...)
	meta = append(meta, '}')
	for _, n := range []struct{ key, method string }{
		{"toolsListChanged", mcp.NotificationToolsChanged},
		{"resourcesListChanged", mcp.NotificationResources},
		{"promptsListChanged", mcp.NotificationPrompts},
	} {
		if string(granted.Get(n.key)) == "true" {
			s.b.write(notification(n.method, meta))
		}
	}
	for _, uri := range rawList(granted.Get("resourceSubscriptions")) {
		s.b.write(notification(mcp.NotificationUpdated, wire.AppendField(meta[:len(meta):len(meta)], "uri", uri)))
	}
}

// notification with members of its params, nil for none.
func notification(method string, params []byte) []byte {
	out := wire.AppendField([]byte(`{"jsonrpc":"2.0"`), "method", wire.AppendString(nil, method))
	if params != nil {
		out = append(append(append(out, `,"params":{`...), params...), '}')
	}
	return append(out, '}')
}
