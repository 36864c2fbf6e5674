// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/mcpserver/principal"
	"github.com/espalier-dev/espalier/internal/mcpserver/registry"
)

// sink is a connection that a test reads from. Each line is ID MESSAGE.
type sink struct {
	lines chan string
	err   error // of each message
}

func newSink() *sink { return &sink{lines: make(chan string, 1000)} }

func (s *sink) Send(message []byte) error { return s.SendEvent("", message) }

func (s *sink) SendEvent(id string, message []byte) error {
	if s.err != nil {
		return s.err
	}
	s.lines <- id + " " + string(message)
	return nil
}

func (s *sink) KeepAlive() error { return s.err }

func (s *sink) next(t *testing.T) (id, message string) {
	t.Helper()
	select {
	case line := <-s.lines:
		id, message, _ = strings.Cut(line, " ")
		return id, message
	case <-time.After(time.Minute):
		t.Fatal("no message came")
		return "", ""
	}
}

func (s *sink) nothing(t *testing.T) {
	t.Helper()
	select {
	case line := <-s.lines:
		t.Errorf("got %s", line)
	default:
	}
}

// serving is a stream that is served until stop.
type serving struct {
	*sink
	stop func() error
}

func serve(t *testing.T, s *Session, last string) serving {
	t.Helper()
	connection := newSink()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, opened(connection), last) }()
	stop := func() error { cancel(); return <-ended }
	for last == "" && !s.Standing() {
		time.Sleep(time.Millisecond)
	}
	return serving{connection, stop}
}

func sameVersion(string) string { return "1" }

const toolsChanged = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`

func TestStandingStream(t *testing.T) {
	r, _ := newTestRegistry()
	s := open(t, r, "")
	s.Watch("x:a", "1")
	s.Watch("x:b", "1")
	if s.Push([]byte("{}")) == nil {
		t.Error("a message for nobody was taken")
	}
	for range 3 { // They are told once.
		s.Tell(registry.Changes{Tools: true, Content: true}, func(uri string) string { return map[string]string{"x:a": "2", "x:b": "1"}[uri] })
	}
	first := serve(t, s, "")
	first.nothing(t)
	s.Initialized()
	id, message := first.next(t)
	if message != toolsChanged || id != "0-1" {
		t.Errorf("got %s %s", id, message)
	}
	if _, message = first.next(t); message != `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"x:a"}}` {
		t.Errorf("got %s", message)
	}
	if err := s.Push([]byte("{\"a\":\n1}")); err != nil {
		t.Fatal(err)
	}
	last, message := first.next(t)
	if message != `{"a":1}` || last != "0-3" {
		t.Errorf("got %s %s", last, message)
	}
	first.nothing(t)
	if err := first.stop(); !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}

	t.Run("resumed", func(t *testing.T) {
		s.Tell(registry.Changes{Prompts: true}, sameVersion)
		again := serve(t, s, "0-2")
		if id, message := again.next(t); id != "0-3" || message != `{"a":1}` {
			t.Errorf("got %s %s", id, message)
		}
		if id, message := again.next(t); id != "0-4" || !strings.Contains(message, "prompts") {
			t.Errorf("got %s %s", id, message)
		}
		_ = again.stop()
	})
	t.Run("taken up with no word of what arrived", func(t *testing.T) {
		// Who told of the changes may have spoken to a dead connection.
		again := serve(t, s, "")
		var got []string
		for range 3 {
			_, message := again.next(t)
			got = append(got, message)
		}
		for _, part := range []string{"tools/list_changed", "prompts/list_changed", "x:a"} {
			if !slices.ContainsFunc(got, func(m string) bool { return strings.Contains(m, part) }) {
				t.Errorf("%s is missing in %v", part, got)
			}
		}
		replacing := serve(t, s, "0-1")
		replacing.next(t)
		if err := again.stop(); !errors.Is(err, ErrReplaced) {
			t.Errorf("the older one ended with %v", err)
		}
		r.Remove(s)
		if err := replacing.stop(); err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("ended with %v", err)
		}
	})
}

func TestSessionEndsItsStreams(t *testing.T) {
	r, _ := newTestRegistry()
	s := open(t, r, "")
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(t.Context(), opened(newSink()), "") }()
	r.Close()
	if err := <-ended; err != nil {
		t.Errorf("ended with %v", err)
	}
	if err := s.Serve(t.Context(), opened(newSink()), ""); err != nil || s.Standing() {
		t.Errorf("a stream of what is over: %v", err)
	}
}

func TestLostEvents(t *testing.T) {
	r, _ := newTestRegistry()
	s := open(t, r, "")
	s.Initialized()
	s.Tell(registry.Changes{Tools: true}, sameVersion)
	first := serve(t, s, "")
	first.next(t)
	for i := range 2 * maxEvents {
		if err := s.Push(fmt.Appendf(nil, `{"n":%d}`, i)); err != nil {
			t.Fatal(err)
		}
		first.next(t)
	}
	_ = first.stop()
	if len(s.out.events) != maxEvents {
		t.Errorf("%d events are kept", len(s.out.events))
	}
	// The change may have been among what was lost: it is told again, after
	// what is still there.
	again := serve(t, s, "0-0")
	for range maxEvents - 1 {
		again.next(t)
	}
	found := false
	for !found {
		_, message := again.next(t)
		found = message == toolsChanged
	}
	_ = again.stop()
	large := make([]byte, maxEventBytes)
	third := serve(t, s, "")
	third.next(t)
	_ = s.Push(append(append([]byte(`{"x":"`), strings.Repeat("x", len(large))...), `"}`...))
	third.next(t)
	if len(s.out.events) != 1 || s.out.bytes != len(large)+8 {
		t.Errorf("%d events of %d bytes are kept", len(s.out.events), s.out.bytes)
	}
	_ = third.stop()
}

func TestBacklog(t *testing.T) {
	s := New("x", principal.Nobody(), "test")
	s.Begin("2025-11-25", nil, nil)
	blocked := &blocking{sink: newSink(), in: make(chan struct{}), out: make(chan struct{})}
	go func() { _ = s.Serve(t.Context(), opened(blocked), "") }()
	for !s.Standing() {
		time.Sleep(time.Millisecond)
	}
	_ = s.Push([]byte("{}"))
	<-blocked.in
	taken := 0
	for s.Push([]byte("{}")) == nil {
		taken++
	}
	if taken > maxBacklog {
		t.Errorf("%d messages wait for a client that reads none", taken)
	}
	close(blocked.out)
}

type blocking struct {
	*sink
	in, out chan struct{}
}

func (b *blocking) SendEvent(id string, message []byte) error {
	select {
	case b.in <- struct{}{}:
	case <-b.out:
	}
	<-b.out
	return b.sink.SendEvent(id, message)
}

func TestChannel(t *testing.T) {
	r, _ := newTestRegistry()
	s := open(t, r, "")
	connection := newSink()
	c := s.Channel(connection)
	c.Prime()
	primed, message := connection.next(t)
	if message != "" {
		t.Errorf("primed with %q", message)
	}
	message1 := []byte("one")
	_ = c.Send(message1)
	copy(message1, "xxx")
	one, _ := connection.next(t)
	connection.err = errors.New("gone")
	if err := c.Send([]byte("two")); err != nil {
		t.Errorf("a client that is gone may come back: %v", err)
	}
	if err := c.KeepAlive(); err != nil {
		t.Errorf("got %v", err)
	}
	resumed := serve(t, s, one)
	if _, got := resumed.next(t); got != "two" {
		t.Errorf("got %s", got)
	}
	_ = c.Send([]byte("three"))
	if _, got := resumed.next(t); got != "three" {
		t.Errorf("got %s", got)
	}
	c.Finish()
	if err := resumed.stop(); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
	t.Run("after the end", func(t *testing.T) {
		whole := newSink()
		if err := s.Serve(t.Context(), opened(whole), primed); err != nil {
			t.Errorf("got %v", err)
		}
		for _, want := range []string{"one", "two", "three"} {
			if _, got := whole.next(t); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
		whole.nothing(t)
	})
	t.Run("of an older client", func(t *testing.T) {
		older := New("y", principal.Nobody(), "test")
		older.Begin("2025-06-18", nil, nil)
		connection := newSink()
		older.Channel(connection).Prime()
		connection.nothing(t)
	})
	t.Run("nothing is kept of what said nothing", func(t *testing.T) {
		before := len(s.out.channels)
		s.Channel(newSink()).Finish()
		if len(s.out.channels) != before {
			t.Errorf("%d channels", len(s.out.channels))
		}
	})
	t.Run("nor of what is lost", func(t *testing.T) {
		for range maxEvents {
			other := s.Channel(newSink())
			_ = other.Send([]byte("{}"))
			other.Finish()
		}
		if len(s.out.channels) != maxEvents+1 || s.out.channels[c.number] != nil {
			t.Errorf("%d channels", len(s.out.channels))
		}
	})
}

// opened gives a connection that is open already.
func opened(stream Stream) func() (Stream, error) {
	return func() (Stream, error) { return stream, nil }
}
