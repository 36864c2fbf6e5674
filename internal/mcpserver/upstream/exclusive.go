// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/mcpserver/principal"
	"github.com/espalier-dev/espalier/internal/mcpserver/upstream/client"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// exclusive is a session that is for one client: over HTTP for one of its calls
// at a time, with a child for all of its calls.
type exclusive struct {
	pool *pool
	key  string
	// caller whose token its requests carry; nil where they carry none of a
	// caller's.
	caller *principal.Principal
	// capabilities that were declared to the server, a raw object; nil for none.
	capabilities []byte
	// solo: one call at a time. oneClient: all calls are of one client.
	// Otherwise they are of one person's programs, or, when shared, of anybody.
	solo, oneClient, shared bool
	// turn, if set, is held by the one call that runs and does not wait for
	// its caller: of a child that asks, and whose callers may be several
	// programs of one person.
	turn chan struct{}

	// opened is closed when session or err is set.
	opened  chan struct{}
	session *client.Session
	err     error
	// over is closed when the session is to end.
	over chan struct{}

	// Under the pool's lock.
	users   int
	dropped bool
	idle    *time.Timer

	mu      sync.Mutex
	level   string
	running []asker
	// hangs: it does not answer any more, and is not asked to end.
	hangs bool
}

// asker is a call that runs on an exclusive session.
type asker interface {
	// ask asks the caller. A *wire.Error is what it answered.
	ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)
	// notify tells the caller.
	notify(method string, params json.RawMessage)
	// waiting: its caller is gone to find an answer. giveUp ends it then.
	waiting() bool
	giveUp()
}

// enter says that a call runs on e, leave that it does no more.
func (e *exclusive) enter(a asker) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.running = append(e.running, a)
}

func (e *exclusive) leave(a asker) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.running = slices.DeleteFunc(e.running, func(b asker) bool { return a == b })
}

// asker is the call that what the server says belongs to, nil where that
// cannot be told. Of one client it is the newest; else the only one that does
// not wait for its caller, or the only one.
func (e *exclusive) asker() asker {
	e.mu.Lock()
	defer e.mu.Unlock()
	var active []asker
	for _, a := range e.running {
		if !a.waiting() {
			active = append(active, a)
		}
	}
	switch {
	case e.oneClient && len(active) > 0:
		return active[len(active)-1]
	case len(active) == 1:
		return active[0]
	case len(active) == 0 && len(e.running) == 1:
		return e.running[0]
	}
	return nil
}

// ask has the client answer the server.
func (e *exclusive) ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	a := e.asker()
	if a == nil || !allows(e.capabilities, method) {
		return nil, &wire.Error{Code: mcp.CodeMethodNotFound, Message: "method not found"}
	}
	return a.ask(ctx, method, passable(params))
}

func (e *exclusive) notify(method string, params json.RawMessage) {
	if a := e.asker(); a != nil && !a.waiting() {
		a.notify(method, params)
	}
}

// passable is what of a question's params goes on: not what belongs to the hop
// that they came over.
func passable(params json.RawMessage) json.RawMessage {
	object, err := wire.DecodeObject(params)
	if err != nil {
		return nil
	}
	out := make(wire.Object, 0, len(object))
	for _, field := range object {
		switch field.Key {
		case "task":
			continue // It is answered at once or not at all.
		case "_meta":
			meta, err := wire.DecodeObject(field.Raw)
			if err != nil {
				continue
			}
			field.Raw = encode(slices.DeleteFunc(meta, func(f wire.Field) bool { return f.Key == "progressToken" }))
		}
		out = append(out, field)
	}
	return encode(out)
}

// setLevel tells the server what the client of e wants logged. That it does not
// want to hear that is no reason to fail a call.
func (e *exclusive) setLevel(ctx context.Context, level string) {
	if level == "" || mcp.IsModern(e.session.Version()) || !e.session.Abilities().Logging {
		return
	}
	e.mu.Lock()
	known := e.level == level
	e.level = level
	e.mu.Unlock()
	if !known && e.session.SetLevel(ctx, level) != nil {
		e.mu.Lock()
		e.level = ""
		e.mu.Unlock()
	}
}

// rootsChanged tells the server that the client's roots are others. One that is
// not spoken to yet will ask for them when it wants them.
func (e *exclusive) rootsChanged() {
	select {
	case <-e.opened:
	default:
		return
	}
	if e.err == nil {
		ctx, cancel := context.WithTimeout(e.pool.s.m.life, e.pool.s.m.timing.Handshake)
		defer cancel()
		_ = e.session.RootsChanged(ctx) // It asks for them again when it likes.
	}
}

// connect opens the session of e, in the era that the shared one found.
func (e *exclusive) connect(ctx context.Context, modern bool) error {
	s := e.pool.s
	ctx, cancel := context.WithTimeout(ctx, s.patience())
	defer cancel()
	options, err := s.dialling(e.caller)
	if err != nil {
		return err
	}
	options.Protocol = serverconfig.ProtocolLegacy
	if modern {
		options.Protocol = serverconfig.ProtocolModern
	}
	if !e.shared {
		options.Asking = &client.Asking{Capabilities: e.capabilities, Ask: e.ask, Notify: e.notify}
	}
	e.session, err = client.Connect(ctx, options)
	return err
}

// streamWait is how long a call waits for the stream on which a server may ask
// what belongs to no answer.
const streamWait = time.Second

// listen hears what the server says outside of answers, until ctx ends. It
// returns when that stands, or is not offered.
func (e *exclusive) listen(ctx context.Context, work *sync.WaitGroup) {
	standing := make(chan struct{})
	var once sync.Once
	stands := func() { once.Do(func() { close(standing) }) }
	work.Go(func() {
		defer stands()
		s := e.pool.s
		for ctx.Err() == nil {
			if offered, _ := e.session.Listen(ctx, stands); !offered {
				return
			}
			s.pause(ctx, s.m.timing.Backoff)
		}
	})
	timer := time.NewTimer(streamWait)
	defer timer.Stop()
	select {
	case <-standing:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// takeTurn waits until no other call runs on a child whose questions could not
// be told apart.
func (e *exclusive) takeTurn(ctx context.Context) (release func(), err error) {
	if e.turn == nil {
		return func() {}, nil
	}
	select {
	case e.turn <- struct{}{}:
		return func() { <-e.turn }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// ended looks at a child whose call took too long: one that does not answer at
// all serves its client no further.
func (e *exclusive) ended(ctx context.Context, err error) {
	if e.solo || err == nil || !errors.Is(context.Cause(ctx), call.ErrTimeout) {
		return
	}
	m := e.pool.s.m
	m.spawn(func() {
		ctx, cancel := context.WithTimeout(m.life, m.timing.Handshake)
		defer cancel()
		if e.session.Check(ctx) == nil || m.life.Err() != nil {
			return
		}
		e.mu.Lock()
		e.hangs = true
		e.mu.Unlock()
		e.pool.s.log.Warn("The child of a client does not answer and is ended")
		e.pool.lose(e)
	})
}

// close ends the session: at once where that is all that helps.
func (e *exclusive) close() {
	e.mu.Lock()
	hangs := e.hangs
	e.mu.Unlock()
	if hangs {
		e.session.Abort()
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	e.session.Close(ctx)
}

// giveUp ends what waits for callers.
func (e *exclusive) giveUp() {
	e.mu.Lock()
	all := slices.Clone(e.running)
	e.mu.Unlock()
	for _, a := range all {
		a.giveUp()
	}
}

// busy is the failure of a call that finds no room.
func (p *pool) busy() error {
	return call.Fail(call.ConcurrencyLimit, "the upstream %s has no room for one more client, try again later", p.s.config.Name)
}
