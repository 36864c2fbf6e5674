// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/mcpserver/principal"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
)

// clock is a time that moves when it is told to.
type clock struct{ now time.Time }

func newTestRegistry() (*Registry, *clock) {
	c := &clock{time.Unix(1_000_000, 0)}
	r := NewRegistry()
	r.OwnedBy("owner")
	r.now = func() time.Time { return c.now }
	return r, c
}

// named is a caller.
func named(subject string) *principal.Principal {
	return principal.New(principal.JWT, subject, nil, nil, time.Time{})
}

func open(t *testing.T, r *Registry, subject string) *Session {
	t.Helper()
	s, err := r.Open(named(subject), "test")
	if err != nil {
		t.Fatal(err)
	}
	s.Begin("2025-11-25", []byte(`{"elicitation":{}}`), []byte(`{"tools":{}}`))
	return s
}

func isOver(s *Session) bool {
	select {
	case <-s.Done():
		return true
	default:
		return false
	}
}

func TestRegistry(t *testing.T) {
	r, clock := newTestRegistry()
	r.Configure(3, 10*time.Minute)
	var ended []string
	r.OnEnd(func(s *Session) { ended = append(ended, s.Caller().Subject) })
	a, b := open(t, r, "a"), open(t, r, "b")
	if !strings.HasPrefix(a.ID, "owner.") || len(a.ID) < len("owner.")+26 || a.ID == b.ID {
		t.Errorf("ids %q, %q", a.ID, b.ID)
	}
	if r.Get(a.ID, named("a")) != a || r.Get(a.ID, named("b")) != nil || r.Get("owner.", named("a")) != nil {
		t.Error("a session is found by others than its tenant, or not at all")
	}
	if Owner(a.ID) != "owner" || Owner("0f8fad5b-d9cb-469f") != "" {
		t.Errorf("owner %q", Owner(a.ID))
	}
	t.Run("the last one of an id wins", func(t *testing.T) {
		again := newSession(b.ID, named("b2"), "test", r.now)
		if err := r.Add(again); err != nil || !isOver(b) || r.Get(b.ID, named("b2")) != again || r.Len() != 2 {
			t.Errorf("got %v, over %t", err, isOver(b))
		}
		if r.Remove(b) || !r.Remove(again) || r.Remove(again) || r.Len() != 1 {
			t.Error("the wrong one was removed")
		}
	})
	t.Run("too many", func(t *testing.T) {
		open(t, r, "c")
		open(t, r, "d")
		if _, err := r.Open(named("e"), "test"); !errors.Is(err, ErrFull) {
			t.Fatalf("got %v", err)
		}
		clock.now = clock.now.Add(2 * time.Minute)
		r.Get(a.ID, named("a"))
		held := r.All()[0]
		for _, s := range r.All() {
			if s.Caller().Subject == "c" {
				held = s
			}
		}
		defer held.Hold()()
		open(t, r, "e") // In the place of d: a was used since, c is.
		if isOver(a) || isOver(held) || r.Len() != 3 {
			t.Error("a session in use made room")
		}
	})
	t.Run("idle", func(t *testing.T) {
		clock.now = clock.now.Add(9 * time.Minute)
		r.Get(a.ID, named("a"))
		clock.now = clock.now.Add(time.Minute)
		r.Expire()
		if isOver(a) || r.Len() != 1 {
			t.Errorf("%d are left", r.Len())
		}
	})
	r.Close()
	r.Close()
	if !isOver(a) || r.Len() != 0 || r.Add(a) == nil {
		t.Error("it is not closed")
	}
	if diff := cmp.Diff([]string{"b", "b2", "d"}, ended[:3]); diff != "" || len(ended) != 6 {
		t.Errorf("%v: %s", ended, diff)
	}
}

func TestList(t *testing.T) {
	r, clock := newTestRegistry()
	open(t, r, "a")
	clock.now = clock.now.Add(time.Minute)
	b := open(t, r, "b")
	defer b.Hold()()
	clock.now = clock.now.Add(time.Minute)
	got := r.List()
	if len(got) != 2 || got[0].Tenant.Subject != "a" || got[0].IdleSeconds != 120 || got[1].Tenant.Kind != principal.JWT || got[1].IdleSeconds != 0 || got[0].Version != "2025-11-25" {
		t.Errorf("got %+v", got)
	}
	raw, _ := json.Marshal(got)
	if strings.Contains(string(raw), "owner.") {
		t.Errorf("it tells ids: %s", raw)
	}
}

func TestBeginOnce(t *testing.T) {
	s := New("x", principal.Nobody(), "test")
	if string(s.Capabilities()) != "{}" || s.Version() != "" {
		t.Errorf("got %s", s.Capabilities())
	}
	raw := []byte(`{"roots":{}}`)
	if !s.Begin("2025-06-18", raw, nil) || s.Begin("2025-11-25", nil, nil) || s.Version() != "2025-06-18" {
		t.Error("it began twice or never")
	}
	copy(raw, "xxxxxxxxxxxx")
	if string(s.Capabilities()) != `{"roots":{}}` {
		t.Errorf("it kept the caller's buffer: %s", s.Capabilities())
	}
}

func TestCalls(t *testing.T) {
	var calls Calls
	ctx, done := calls.Begin(t.Context(), []byte("1"))
	other, otherDone := calls.Begin(t.Context(), []byte(`"1"`))
	defer otherDone()
	if calls.Cancel([]byte("2")) || !calls.Cancel([]byte("1")) || !errors.Is(context.Cause(ctx), ErrCancelled) || other.Err() != nil {
		t.Error("the wrong one was cancelled")
	}
	done()
	if calls.Cancel([]byte("1")) || calls.Len() != 1 {
		t.Error("it is still there")
	}
	calls.End()
	late, lateDone := calls.Begin(t.Context(), []byte("3"))
	defer lateDone()
	if !errors.Is(context.Cause(other), ErrEnded) || !errors.Is(context.Cause(late), ErrEnded) {
		t.Error("the end did not end them")
	}
}

// response makes a message of the client.
func response(t *testing.T, raw string) *wire.Message {
	t.Helper()
	m := new(wire.Message)
	if err := wire.DecodeMessage([]byte(raw), m); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestAsk(t *testing.T) {
	answers := map[string]struct {
		answer string
		result string
		err    string
	}{
		"result":      {`{"jsonrpc":"2.0","id":1,"result":{"action":"accept"}}`, `{"action":"accept"}`, ""},
		"id as text":  {`{"jsonrpc":"2.0","id":"1","result":{}}`, `{}`, ""},
		"error":       {`{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no","data":[1]}}`, "", "no"},
		"null result": {`{"jsonrpc":"2.0","id":1,"result":null}`, "", "the client's answer cannot be read"},
	}
	for name, tt := range answers {
		t.Run(name, func(t *testing.T) {
			s := New("x", principal.Nobody(), "test")
			var sent string
			result, err := s.Ask(t.Context(), "elicitation/create", json.RawMessage(`{"message":"?"}`), func(m []byte) error {
				sent = string(m)
				if s.Answer(response(t, `{"jsonrpc":"2.0","id":2,"result":{}}`)) {
					t.Error("the answer to nothing was taken")
				}
				if !s.Answer(response(t, tt.answer)) || s.Answer(response(t, tt.answer)) {
					t.Error("the answer was not taken once")
				}
				return nil
			})
			if sent != `{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":"?"}}` || string(result) != tt.result {
				t.Errorf("sent %s, got %s", sent, result)
			}
			if (err == nil) != (tt.err == "") || err != nil && err.Error() != tt.err {
				t.Errorf("got %v", err)
			}
			var answered *call.RPCAnswer
			if name == "error" && (!errors.As(err, &answered) || answered.Code != -1 || string(answered.Data) != "[1]") {
				t.Errorf("got %+v", answered)
			}
		})
	}
}

func TestAskEnds(t *testing.T) {
	t.Run("nowhere to ask", func(t *testing.T) {
		if _, err := New("x", principal.Nobody(), "test").Ask(t.Context(), "ping", nil, nil); !errors.Is(err, call.ErrCannotAsk) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("the asker gives up", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		var sent []string
		_, err := New("x", principal.Nobody(), "test").Ask(ctx, "ping", nil, func(m []byte) error {
			sent = append(sent, string(m))
			cancel(errors.New("enough"))
			return nil
		})
		want := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`
		if err == nil || err.Error() != "enough" || len(sent) != 2 || sent[1] != want {
			t.Errorf("got %v, sent %q", err, sent)
		}
	})
	t.Run("the session ends", func(t *testing.T) {
		r, _ := newTestRegistry()
		s := open(t, r, "")
		_, err := s.Ask(t.Context(), "ping", nil, func([]byte) error { r.Remove(s); return nil })
		if !errors.Is(err, call.ErrCannotAsk) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("too many at once", func(t *testing.T) {
		s := New("x", principal.Nobody(), "test")
		for range maxAsks {
			if _, _, err := s.expect(); err != nil {
				t.Fatal(err)
			}
		}
		if _, _, err := s.expect(); !errors.Is(err, call.ErrCannotAsk) {
			t.Errorf("got %v", err)
		}
	})
}

func TestTooManyWatched(t *testing.T) {
	s := New("x", principal.Nobody(), "test")
	for i := range maxWatched {
		if !s.Watch(fmt.Sprint("x:", i), "1") {
			t.Fatal(i)
		}
	}
	if s.Watch("y:", "1") || !s.Watch("x:1", "2") {
		t.Error("the bound does not hold")
	}
	s.Unwatch("x:0")
	if !s.Watch("y:", "1") {
		t.Error("no place was made")
	}
}
