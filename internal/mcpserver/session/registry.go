// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/internal/mcpserver/principal"
)

var (
	// ErrFull says that there are as many sessions as there may be.
	ErrFull = errors.New("too many sessions")
	// ErrClosed says that the server takes no more sessions.
	ErrClosed = errors.New("the server is shutting down")
)

// Limits where the catalog says nothing.
const (
	DefaultMax  = 1000
	DefaultIdle = 30 * time.Minute
)

const (
	// yields is how long a session must have been idle to make room for a new
	// one: most clients never end theirs.
	yields = time.Minute
	// sweep is how often idle sessions are looked for.
	sweep = 5 * time.Second
)

// Registry holds the sessions of one replica.
type Registry struct {
	owner string
	now   func() time.Time

	mu       sync.RWMutex
	sessions map[string]*Session
	max      int
	idle     time.Duration
	closed   bool
	ended    []func(*Session)
	roots    []func(*Session)
}

// NewRegistry gives an empty registry.
func NewRegistry() *Registry {
	return &Registry{now: time.Now, sessions: map[string]*Session{}, max: DefaultMax, idle: DefaultIdle}
}

// ownerEnd ends the owner in an id.
const ownerEnd = "."

// OwnedBy sets the name of this replica, which begins the ids that it makes.
// It must be called before any session is opened.
func (r *Registry) OwnedBy(name string) {
	if name != "" {
		r.owner = name + ownerEnd
	}
}

// Owner gives the name of the replica that an id was made by; empty where it
// says none.
func Owner(id string) string {
	name, _, ok := strings.Cut(id, ownerEnd)
	if !ok {
		return ""
	}
	return name
}

// Configure sets how many sessions there may be and how long one may be idle;
// 0 is the default. Sessions there are stay.
func (r *Registry) Configure(most int, idle time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.max, r.idle = DefaultMax, DefaultIdle
	if most > 0 {
		r.max = most
	}
	if idle > 0 {
		r.idle = idle
	}
}

// OnEnd registers f to be called once after each session's end, and OnRoots
// after a client told that its roots changed. Neither may block.
func (r *Registry) OnEnd(f func(*Session)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = append(r.ended, f)
}

// OnRoots is told in OnEnd.
func (r *Registry) OnRoots(f func(*Session)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.roots = append(r.roots, f)
}

// RootsChanged tells that the client's roots changed.
func (r *Registry) RootsChanged(s *Session) {
	r.mu.RLock()
	hooks := r.roots
	r.mu.RUnlock()
	for _, f := range hooks {
		f(s)
	}
}

// Open adds a session with an id that nobody can guess. When there are too
// many, the one that was idle longest makes room, if it was so for a minute.
func (r *Registry) Open(caller *principal.Principal, transport string) (*Session, error) {
	s := newSession(r.owner+rand.Text(), caller, transport, r.now)
	return s, r.Add(s)
}

// Add adds a session. One that has its id is ended.
func (r *Registry) Add(s *Session) error {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return ErrClosed
	}
	displaced := r.sessions[s.ID]
	if displaced == nil && len(r.sessions) >= r.max {
		if displaced = r.idlest(); displaced == nil {
			r.mu.Unlock()
			return ErrFull
		}
		delete(r.sessions, displaced.ID)
	}
	r.sessions[s.ID] = s
	r.mu.Unlock()
	if displaced != nil && displaced != s {
		r.end(displaced)
	}
	return nil
}

// idlest gives the session that may make room; the lock is held.
func (r *Registry) idlest() (found *Session) {
	now, longest := r.now(), min(yields, r.idle)
	for _, s := range r.sessions {
		if idle := s.idle(now); idle >= longest {
			found, longest = s, idle
		}
	}
	return found
}

// Get gives the session of an id and notes that it is used; nil when there is
// none of this caller.
func (r *Registry) Get(id string, caller *principal.Principal) *Session {
	r.mu.RLock()
	s := r.sessions[id]
	r.mu.RUnlock()
	if s == nil {
		return nil
	}
	if known := s.caller.Load(); known != caller {
		if known.Kind != caller.Kind || known.Subject != caller.Subject {
			return nil
		}
		s.caller.Store(caller)
	}
	s.touch()
	return s
}

// All gives the sessions in no order.
func (r *Registry) All() []*Session {
	r.mu.RLock()
	defer r.mu.RUnlock()
	all := make([]*Session, 0, len(r.sessions))
	for _, s := range r.sessions {
		all = append(all, s)
	}
	return all
}

// Len is how many sessions there are.
func (r *Registry) Len() int {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return len(r.sessions)
}

// Remove ends a session and what runs in it. False: it is not held any more.
func (r *Registry) Remove(s *Session) bool {
	r.mu.Lock()
	held := r.sessions[s.ID] == s
	if held {
		delete(r.sessions, s.ID)
	}
	r.mu.Unlock()
	if held {
		r.end(s)
	}
	return held
}

func (r *Registry) end(s *Session) {
	s.close(true)
	r.tellEnd(s)
}

func (r *Registry) tellEnd(s *Session) {
	r.mu.RLock()
	hooks := r.ended
	r.mu.RUnlock()
	for _, f := range hooks {
		f(s)
	}
}

// Expire ends the sessions that were idle for too long.
func (r *Registry) Expire() {
	now := r.now()
	r.mu.Lock()
	var gone []*Session
	for id, s := range r.sessions {
		if s.idle(now) >= r.idle {
			delete(r.sessions, id)
			gone = append(gone, s)
		}
	}
	r.mu.Unlock()
	for _, s := range gone {
		r.end(s)
	}
}

// Run expires sessions until ctx ends.
func (r *Registry) Run(ctx context.Context) {
	ticker := time.NewTicker(sweep)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			r.Expire()
		}
	}
}

// Close ends all sessions and takes no new one. Their running requests go on
// to their ends. It is idempotent.
func (r *Registry) Close() {
	r.mu.Lock()
	gone := r.sessions
	r.sessions, r.closed = map[string]*Session{}, true
	r.mu.Unlock()
	for _, s := range gone {
		s.close(false)
		r.tellEnd(s)
	}
}

// Info tells of a session to who may list them.
type Info struct {
	Tenant    Tenant    `json:"tenant"`
	Transport string    `json:"transport"`
	Version   string    `json:"version"`
	Created   time.Time `json:"created"`
	// IdleSeconds is 0 while a stream is open or a request runs.
	IdleSeconds int64 `json:"idleSeconds"`
	Streaming   bool  `json:"streaming"`
	Running     int   `json:"running"`
}

// Tenant is the principal whose session it is.
type Tenant struct {
	Kind    principal.Kind `json:"kind"`
	Subject string         `json:"subject,omitempty"`
}

// List tells of all sessions, the oldest first. Ids are left out: who has one
// has the session.
func (r *Registry) List() []Info {
	now, out := r.now(), []Info{}
	for _, s := range r.All() {
		out = append(out, Info{
			Tenant: Tenant{s.Caller().Kind, s.Caller().Subject}, Transport: s.Transport, Version: s.Version(), Created: s.Created,
			IdleSeconds: int64(s.idle(now) / time.Second), Streaming: s.Standing(), Running: s.Calls.Len(),
		})
	}
	slices.SortFunc(out, func(a, b Info) int {
		if c := a.Created.Compare(b.Created); c != 0 {
			return c
		}
		return strings.Compare(a.Tenant.Subject, b.Tenant.Subject)
	})
	return out
}
