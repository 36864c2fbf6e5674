// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"

	"github.com/espalier-dev/espalier/internal/mcp"
)

// maxLosses is how many times a request may cost a connection or a session: it
// may be what breaks them.
const maxLosses = 3

// carry takes a request to the server and its answer back. Whatever the answer
// is, the fault is nil then.
func (b *bridge) carry(ctx context.Context, m *message) *fault {
	if f := await(ctx, m.after); f != nil {
		return f
	}
	if m.modern != "" {
		return b.persist(ctx, m, func(patience context.Context) *fault {
			l, f := b.modern.get(patience, b)
			if f != nil {
				return f
			}
			f = l.exchange(ctx, patience, m, b.pass(nil))
			b.modern.failed(l, f)
			return f
		})
	}
	return b.persist(ctx, m, func(patience context.Context) *fault {
		s, f := b.legacy.get(patience, b)
		if f != nil {
			return f
		}
		f = s.link.exchange(ctx, patience, m, b.legacy.remembering(m, b.pass(s)))
		if f != nil && f.gone {
			b.lose(s)
		}
		return f
	})
}

// persist tries until there is an answer, or it would be wrong to try again,
// or nothing was reached for too long. patience, of an attempt, ends then.
func (b *bridge) persist(ctx context.Context, m *message, attempt func(patience context.Context) *fault) *fault {
	patience, cancel := context.WithTimeout(ctx, b.o.Wait)
	defer cancel()
	var before *fault
	losses := 0
	for try := 0; ; try++ {
		f := attempt(patience)
		if f == nil || ctx.Err() != nil {
			return f
		}
		if patience.Err() != nil && f.kind == unreached && before != nil {
			return before // It says more than that time is over.
		}
		before = f
		switch {
		case f.kind == refused, f.kind == unsure && !m.safe:
			return f
		case f.kind == unsure, f.gone:
			if losses++; losses > maxLosses {
				return f
			}
		}
		if f.gone && losses == 1 {
			continue
		}
		b.o.Log.Debug("A request is sent again", "method", m.Method, "because", f)
		if !pause(patience, backoff(try)) {
			return f
		}
	}
}

// await waits for what must come first.
func await(ctx context.Context, gates []<-chan struct{}) *fault {
	for _, gate := range gates {
		select {
		case <-gate:
		case <-ctx.Done():
			return lost(context.Cause(ctx))
		}
	}
	return nil
}

// pass gives a take that hands everything on to the client. s is the session
// that it comes from, nil in the modern era.
func (b *bridge) pass(s *session) take {
	return func(p packet) {
		if s != nil {
			for i := range p.parts {
				if p.parts[i].isRequest() {
					b.legacy.asked(p.parts[i].id, s)
				}
			}
		}
		b.write(p.raw)
	}
}

// sayAll sends notifications of the client one after another, in their order.
func (b *bridge) sayAll() {
	for m := range b.says {
		if await(b.life, m.after) != nil {
			continue
		}
		if f := b.say(m); f != nil && b.life.Err() == nil {
			b.o.Log.Warn("A notification of the client did not reach the server", "method", m.Method, "error", f)
		}
	}
}

// say sends a notification. What belongs to a session or a call is of no use
// to another one, all else is tried again in a new session.
func (b *bridge) say(m *message) *fault {
	ctx, cancel := context.WithTimeout(b.life, sayLimit)
	defer cancel()
	for tries := 0; ; tries++ {
		l, s, f := b.either(ctx, m)
		if f == nil {
			f = l.say(ctx, m)
		}
		if f == nil {
			return nil
		}
		if f.gone && s != nil {
			b.lose(s)
		}
		if tries == 1 || f.kind != unreached || m.Method == mcp.NotificationProgress {
			return f
		}
	}
}

// either gives the link for a message that does not say its era: where the
// client shook hands, it is the legacy one. s is nil in the modern era.
func (b *bridge) either(ctx context.Context, m *message) (l link, s *session, f *fault) {
	if m.modern == "" && b.legacy.hasBegun() {
		s, f = b.legacy.get(ctx, b)
		if f != nil {
			return nil, nil, f
		}
		return s.link, s, nil
	}
	l, f = b.modern.get(ctx, b)
	return l, nil, f
}

// respond sends the client's answer to a question of the server, if the
// session that asked still is.
func (b *bridge) respond(m *message) {
	s := b.legacy.asker(m.ID)
	if s == nil {
		b.o.Log.Debug("The client answered a question that nobody waits for")
		return
	}
	b.work.Go(func() {
		f := s.link.say(b.life, m)
		if f == nil {
			return
		}
		b.o.Log.Warn("The client's answer to a question of the server did not arrive", "error", f)
		if f.gone {
			b.lose(s)
		}
	})
}

// cancel gives up a request at the client's wish. The server hears of it in
// the client's words, or, in the modern era over HTTP, by the end of the
// request.
func (b *bridge) cancel(note *message) {
	id := note.Params.Get("requestId")
	r := b.running.get(id)
	if r == nil || r.message.Method == mcp.MethodInitialize {
		return // It is answered, or has to be.
	}
	if r.message.batch {
		r = &request{r.message, func(error) {}} // Others may wait for the rest.
	} else {
		r.message.unwanted.Store(true)
	}
	b.work.Go(func() {
		defer r.cancel(errCancelled)
		ctx, cancel := context.WithTimeout(b.life, sayLimit)
		defer cancel()
		if r.message.modern != "" {
			b.modern.abandon(ctx, note)
		} else if s := b.legacy.live(); s != nil {
			s.link.abandon(ctx, note)
		}
	})
}
