// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"time"

	"github.com/espalier-dev/espalier/internal/mcp"
)

// ErrReplaced says that another connection took a stream up.
var ErrReplaced = errors.New("another connection has taken the stream up")

// Channel is one stream of a session: the standing one, or the answer to one
// request. Its connection may break and another take it up.
type Channel struct {
	session *Session
	number  uint64 // 0: the standing one

	// Guarded by Session.mu.
	sent     uint64 // the last event that a connection took
	kept     int    // events in the outbox
	finished bool
	direct   Stream // the connection of the request itself
	server   *server
}

// server is the one connection that serves a channel now.
type server struct {
	woken, replaced chan struct{}
}

// wake tells the server of news; the lock is held.
func (c *Channel) wake() {
	if c.server == nil {
		return
	}
	select {
	case c.server.woken <- struct{}{}:
	default: // One more look is due already.
	}
}

// Channel opens a stream that answers one request on the connection of that
// request. It implements Stream; its Send fails never, since the client may
// come back for what it missed. Finish must be called after the answer.
func (s *Session) Channel(connection Stream) *Channel {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out.seq++ // Numbers of channels and events are of one sequence.
	c := &Channel{session: s, number: s.out.seq, sent: s.out.seq, direct: connection}
	s.out.channels[c.number] = c
	return c
}

// Prime tells the client how to take the stream up before there is any
// message. Clients before 2025-11-25 take it for a message.
func (c *Channel) Prime() {
	c.session.mu.Lock()
	direct, version := c.direct, c.session.version
	c.session.mu.Unlock()
	if numbered, ok := direct.(Numbered); ok && version >= mcp.Version20251125 {
		if numbered.SendEvent(event{seq: c.number, channel: c}.id(), nil) != nil {
			c.detach()
		}
	}
}

// Send implements Stream.
func (c *Channel) Send(message []byte) error {
	s := c.session
	s.mu.Lock()
	// What is kept for later must not change with its sender's buffer.
	e := s.out.add(c, append([]byte(nil), message...))
	direct := c.direct
	c.wake()
	s.mu.Unlock()
	if direct == nil {
		return nil
	}
	if send(direct, e) == nil {
		s.took(c, e.seq)
	} else {
		c.detach()
	}
	return nil
}

// KeepAlive implements Stream.
func (c *Channel) KeepAlive() error {
	c.session.mu.Lock()
	direct := c.direct
	c.session.mu.Unlock()
	if direct != nil && direct.KeepAlive() != nil {
		c.detach()
	}
	return nil
}

func (c *Channel) detach() {
	c.session.mu.Lock()
	defer c.session.mu.Unlock()
	c.direct = nil
}

// Finish says that the answer was sent; the connection is not used any more.
func (c *Channel) Finish() {
	c.session.mu.Lock()
	defer c.session.mu.Unlock()
	c.finished, c.direct = true, nil
	if c.kept == 0 {
		delete(c.session.out.channels, c.number)
	}
	c.wake()
}

func send(stream Stream, e event) error {
	if numbered, ok := stream.(Numbered); ok {
		return numbered.SendEvent(e.id(), e.data)
	}
	return stream.Send(e.data)
}

// Serve serves the stream that the event id last belongs to, from the next
// event on, or, where it is empty or unknown, the standing stream. It returns
// nil when the session or an answer is over, ctx's cause, ErrReplaced, or the
// connection's error. The connection is opened when the session already has
// it: a client that sees it open can be asked on it.
func (s *Session) Serve(ctx context.Context, open func() (Stream, error), last string) error {
	release := s.Hold()
	defer release()
	c, from, me := s.take(last)
	defer s.leave(c, me)
	stream, err := open()
	if err != nil {
		return err
	}
	ticker := time.NewTicker(KeepAlive)
	defer ticker.Stop()
	for {
		events, finished := s.next(c, from)
		for _, e := range events {
			if err := send(stream, e); err != nil {
				return err
			}
			from = e.seq
			s.took(c, e.seq)
		}
		if finished {
			return nil
		}
		var err error
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.done:
			return nil
		case <-me.replaced:
			return ErrReplaced
		case <-me.woken:
		case <-ticker.C:
			err = stream.KeepAlive()
		}
		if err != nil {
			return err
		}
	}
}

// take makes the caller the server of a stream.
func (s *Session) take(last string) (c *Channel, from uint64, me *server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, from, ok := s.out.find(last)
	switch {
	case !ok:
		c = s.out.standing
		from = c.sent
		s.retell()
	case c == s.out.standing && from < s.out.lost:
		s.retell()
	}
	me = &server{woken: make(chan struct{}, 1), replaced: make(chan struct{})}
	if c.server != nil {
		close(c.server.replaced)
	}
	c.server, c.direct = me, nil
	return c, from, me
}

func (s *Session) leave(c *Channel, me *server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.server == me {
		c.server = nil
	}
}

func (s *Session) next(c *Channel, from uint64) (events []event, finished bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c == s.out.standing {
		s.flush()
	}
	return s.out.after(c, from), c.finished
}

func (s *Session) took(c *Channel, seq uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.sent = max(c.sent, seq)
}
