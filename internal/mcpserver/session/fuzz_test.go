// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/mcpserver/principal"
)

// FuzzID: an id that was not given out is nobody's session, whatever owner it
// names; one that was is its principal's alone.
func FuzzID(f *testing.F) {
	for _, seed := range []string{"", ".", "abcdefgh.X", "a.b.c", "\x00.", strings.Repeat("x", 5000)} {
		f.Add(seed, "bob")
	}
	f.Fuzz(func(t *testing.T, id, subject string) {
		r := NewRegistry()
		r.OwnedBy("abcdefgh")
		alice := principal.New(principal.APIKey, "alice", nil, nil, time.Time{})
		s, err := r.Open(alice, "test")
		if err != nil || Owner(s.ID) != "abcdefgh" {
			t.Fatalf("%q, %v", s.ID, err)
		}
		if owner := Owner(id); owner != "" && !strings.HasPrefix(id, owner+ownerEnd) || strings.Contains(owner, ownerEnd) {
			t.Fatalf("%q is of %q", id, owner)
		}
		if id != s.ID && r.Get(id, alice) != nil {
			t.Fatalf("%q is a session", id)
		}
		other := principal.New(principal.APIKey, subject, nil, nil, time.Time{})
		if got := r.Get(s.ID, other); (got != nil) != (subject == "alice") {
			t.Fatalf("%q gets %v", subject, got)
		}
	})
}

// FuzzLastEvent: whatever a client names as the last event that it has seen,
// it gets events of one stream of its session, in their order, each after what
// it named.
func FuzzLastEvent(f *testing.F) {
	for _, seed := range []string{"", "0-1", "0-0", "1-3", "99-1", "0-18446744073709551615", "-", "0-", "1--1", "0-99999999999999999999", "+0-1"} {
		f.Add(seed, 5)
	}
	f.Add("0-2", 1000)
	f.Fuzz(func(t *testing.T, last string, events int) {
		s := New("id", principal.Nobody(), "test")
		answer := s.Channel(nil)
		for i := range min(max(events, 0), 2*maxEvents) {
			c := s.out.standing
			if i%2 == 1 {
				c = answer
			}
			s.mu.Lock()
			s.out.add(c, []byte("{}"))
			s.mu.Unlock()
		}
		c, from, me := s.take(last)
		defer s.leave(c, me)
		if c != s.out.standing && c != answer {
			t.Fatal("a stream of nobody")
		}
		got, _ := s.next(c, from)
		if len(got) > maxEvents {
			t.Fatalf("%d events", len(got))
		}
		for _, e := range got {
			if e.channel != c || e.seq <= from {
				t.Fatalf("after %d of stream %d comes %d of %d", from, c.number, e.seq, e.channel.number)
			}
			from = e.seq
			if again, seq, ok := s.out.find(e.id()); !ok || again != c || seq != e.seq {
				t.Fatalf("%q names another event", e.id())
			}
		}
	})
}
