// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"
	"strconv"
	"strings"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/registry"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
)

const (
	// maxEvents and maxEventBytes bound what of a session's streams is kept
	// for who takes them up again. The newest event is kept whatever its size.
	maxEvents     = 256
	maxEventBytes = 256 << 10
	// maxBacklog is how many messages may wait for a slow standing stream.
	maxBacklog = 128
)

// errNoStream says that nothing can be sent outside of answers now.
var errNoStream = errors.New("the session has no standing stream")

// outbox holds the events of a session's streams. It is guarded by Session.mu.
type outbox struct {
	seq      uint64
	events   []event // by seq
	bytes    int
	lost     uint64 // the last event of the standing stream that is not kept any more
	standing *Channel
	channels map[uint64]*Channel
	// told is what the standing stream told since it was taken up last: the
	// connection may have been dead.
	told registry.Changes
	sent map[string]struct{}
}

type event struct {
	seq     uint64
	channel *Channel
	data    []byte
}

// id names an event over all streams of the session.
func (e event) id() string {
	return strconv.FormatUint(e.channel.number, 10) + "-" + strconv.FormatUint(e.seq, 10)
}

// add appends an event; the lock is held.
func (o *outbox) add(c *Channel, data []byte) event {
	o.seq++
	e := event{seq: o.seq, channel: c, data: data}
	o.events = append(o.events, e)
	o.bytes += len(data)
	c.kept++
	drop := 0
	for ; drop < len(o.events)-1 && (len(o.events)-drop > maxEvents || o.bytes > maxEventBytes); drop++ {
		o.bytes -= len(o.events[drop].data)
		o.release(o.events[drop])
	}
	if drop > 0 {
		o.events = append(o.events[:0], o.events[drop:]...)
		clear(o.events[len(o.events) : len(o.events)+drop])
	}
	return e
}

func (o *outbox) release(e event) {
	c := e.channel
	if c.kept--; c.kept == 0 && c.finished {
		delete(o.channels, c.number)
	}
	if c.number == 0 {
		o.lost = e.seq
	}
}

// after gives the events of c after seq.
func (o *outbox) after(c *Channel, seq uint64) []event {
	var out []event
	for _, e := range o.events {
		if e.channel == c && e.seq > seq {
			out = append(out, e)
		}
	}
	return out
}

// find gives the stream and event that an id names.
func (o *outbox) find(id string) (c *Channel, seq uint64, ok bool) {
	channel, event, ok := strings.Cut(id, "-")
	number, err := strconv.ParseUint(channel, 10, 64)
	if !ok || err != nil {
		return nil, 0, false
	}
	seq, err = strconv.ParseUint(event, 10, 64)
	c = o.channels[number]
	return c, seq, err == nil && c != nil && seq <= o.seq
}

// Push sends a message on the standing stream. It is an error when there is
// none, or when too much waits for it.
func (s *Session) Push(message []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.out.standing
	if c.server == nil || s.over || len(s.out.after(c, c.sent)) >= maxBacklog {
		return errNoStream
	}
	s.out.add(c, wire.OneLine(message))
	c.wake()
	return nil
}

// Standing reports whether the standing stream has a connection.
func (s *Session) Standing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.standing.server != nil && !s.over
}

// flush makes events of what is pending; the lock is held.
func (s *Session) flush() {
	if !s.began {
		return
	}
	for _, n := range []struct {
		due    bool
		method string
	}{
		{s.pending.Tools, mcp.NotificationToolsChanged},
		{s.pending.Resources, mcp.NotificationResources},
		{s.pending.Prompts, mcp.NotificationPrompts},
	} {
		if n.due {
			s.out.add(s.out.standing, []byte(`{"jsonrpc":"2.0","method":"`+n.method+`"}`))
		}
	}
	s.out.told = s.out.told.Join(s.pending)
	s.pending = registry.Changes{}
	for uri := range s.updated {
		out := wire.AppendString([]byte(`{"jsonrpc":"2.0","method":"`+mcp.NotificationUpdated+`","params":{"uri":`), uri)
		s.out.add(s.out.standing, append(out, "}}"...))
		if s.out.sent == nil {
			s.out.sent = map[string]struct{}{}
		}
		s.out.sent[uri] = struct{}{}
	}
	s.updated = nil
}

// retell makes pending once more what was told on a connection that may have
// been dead; the lock is held.
func (s *Session) retell() {
	s.pending = s.pending.Join(s.out.told)
	for uri := range s.out.sent {
		if _, still := s.watched[uri]; still {
			s.due(uri)
		}
	}
	s.out.told, s.out.sent = registry.Changes{}, nil
}
