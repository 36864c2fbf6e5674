// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"

	"github.com/espalier-dev/espalier/internal/mcpserver/principal"
	"github.com/espalier-dev/espalier/internal/mcpserver/registry"
)

// maxWatched is how many resources one session may subscribe to.
const maxWatched = 256

// Session is the session of one legacy client.
type Session struct {
	// ID is what the client names it by. Who knows it and is the same
	// principal is the client: it belongs into no log.
	ID string
	// Transport that it came by, for the listing.
	Transport string
	Created   time.Time
	// Calls are its running requests.
	Calls Calls

	now  func() time.Time
	done chan struct{}
	used atomic.Int64 // when it was used last, Unix nanoseconds
	held atomic.Int64 // open streams and requests

	caller atomic.Pointer[principal.Principal]

	mu           sync.Mutex
	over         bool
	version      string
	capabilities json.RawMessage
	declared     json.RawMessage
	level        string
	began        bool // the client may be sent more than answers
	watched      map[string]string
	pending      registry.Changes
	updated      map[string]struct{}
	asks         asks
	out          outbox
}

// New gives a session of a caller that no registry holds yet.
func New(id string, caller *principal.Principal, transport string) *Session {
	return newSession(id, caller, transport, time.Now)
}

func newSession(id string, caller *principal.Principal, transport string, now func() time.Time) *Session {
	s := &Session{ID: id, Transport: transport, Created: now(), now: now, done: make(chan struct{})}
	s.caller.Store(caller)
	s.out.standing = &Channel{session: s}
	s.out.channels = map[uint64]*Channel{0: s.out.standing}
	s.touch()
	return s
}

// Caller is whose session it is, as their latest request showed them. Only
// requests of the same principal belong to the session.
func (s *Session) Caller() *principal.Principal { return s.caller.Load() }

// Begin notes what was agreed on in initialize: the version, the raw
// capabilities that the client declared (nil for none), and those that it was
// told, which hold for the session's life. It copies what it keeps. False: the
// session began before.
func (s *Session) Begin(version string, capabilities, declared []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.version != "" {
		return false
	}
	s.version = version
	s.capabilities = append(json.RawMessage(nil), capabilities...)
	s.declared = append(json.RawMessage(nil), declared...)
	return true
}

// Initialized notes that the client is ready for more than answers. What
// waited for that is sent.
func (s *Session) Initialized() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.began && s.version != "" {
		s.began = true
		s.out.standing.wake()
	}
}

// Version of the protocol; empty before initialize.
func (s *Session) Version() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// Capabilities that the client declared, a raw object.
func (s *Session) Capabilities() json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.capabilities == nil {
		return json.RawMessage("{}")
	}
	return s.capabilities
}

// Declared are the capabilities, extensions among them, that the client was
// told when the session began; a raw object, nil before.
func (s *Session) Declared() json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.declared
}

// Level of log messages that the client wants; empty when it never said.
func (s *Session) Level() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.level
}

// SetLevel notes the level that the client asks for.
func (s *Session) SetLevel(level string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.level = level
}

// Watch subscribes to a resource whose version is known; false when there are
// too many.
func (s *Session) Watch(uri, version string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, again := s.watched[uri]; !again && len(s.watched) >= maxWatched {
		return false
	}
	if s.watched == nil {
		s.watched = map[string]string{}
	}
	s.watched[uri] = version
	return true
}

// Unwatch ends a subscription.
func (s *Session) Unwatch(uri string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.watched, uri)
	delete(s.updated, uri)
}

// Tell notes changes of lists and looks whether the watched resources have
// other versions now. The client is told on its standing stream, now or as
// soon as there is one; what changes until then is told once.
func (s *Session) Tell(changes registry.Changes, version func(uri string) string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending = s.pending.Join(registry.Changes{Tools: changes.Tools, Resources: changes.Resources, Prompts: changes.Prompts})
	if changes.Content {
		for uri, before := range s.watched {
			if now := version(uri); now != before {
				s.watched[uri] = now
				s.due(uri)
			}
		}
	}
	s.out.standing.wake()
}

// due notes that the client has to be told of a resource. The lock is held.
func (s *Session) due(uri string) {
	if s.updated == nil {
		s.updated = map[string]struct{}{}
	}
	s.updated[uri] = struct{}{}
}

// Done is closed when the session is over. Its streams end by themselves.
func (s *Session) Done() <-chan struct{} { return s.done }

// close ends the session: its streams, what the client is asked and, with
// calls, its running requests.
func (s *Session) close(calls bool) {
	s.mu.Lock()
	first := !s.over
	s.over = true
	s.mu.Unlock()
	if first {
		close(s.done)
	}
	if calls {
		s.Calls.End()
	}
}

// Hold keeps the session from expiring until release is called.
func (s *Session) Hold() (release func()) {
	s.held.Add(1)
	return func() {
		s.touch()
		s.held.Add(-1)
	}
}

func (s *Session) touch() { s.used.Store(s.now().UnixNano()) }

// idle is since when the session was not used; 0 while it is.
func (s *Session) idle(now time.Time) time.Duration {
	if s.held.Load() > 0 || s.Calls.Len() > 0 {
		return 0
	}
	return max(0, now.Sub(time.Unix(0, s.used.Load())))
}
