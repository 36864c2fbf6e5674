// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/mcpserver/principal"
	"github.com/espalier-dev/espalier/internal/mcpserver/upstream/client"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
)

// passAlone passes a call on over a session to a legacy server that is for this
// call only, so that what the server asks can be told to be the call's.
func (s *source) passAlone(ctx context.Context, c *call.Call, x *exchange, w wishes) ([]byte, error) {
	key, _ := owner(c)
	var caller *principal.Principal
	if s.authorizer.Exchanges() {
		caller = c.Caller
	}
	for attempt := 0; ; attempt++ {
		e, err := s.pool.take(ctx, &exclusive{key: key, caller: caller, capabilities: w.legacy, solo: true}, false)
		if err != nil {
			return nil, err
		}
		raw, err := s.passExclusive(ctx, c, x, w, e)
		// One that lay idle may be forgotten; such a session has run nothing.
		if client.ReasonOf(err) == client.SessionLost && attempt < maxExclusive && ctx.Err() == nil {
			continue
		}
		return raw, err
	}
}

// passToChild passes a call on to the child of its client.
func (s *source) passToChild(ctx context.Context, c *call.Call, x *exchange, w wishes, modern bool) ([]byte, error) {
	key, verified := owner(c)
	e := &exclusive{key: key, capabilities: w.legacy, shared: !verified}
	e.oneClient = c.Client != nil && c.Client.Session() != ""
	if e.shared {
		// Whose a question is cannot be told among callers who may be anybody.
		e.key, e.capabilities = "anonymous", nil
	}
	if !modern && !e.shared && !e.oneClient && e.capabilities != nil {
		e.turn = make(chan struct{}, 1)
	}
	e, err := s.pool.take(ctx, e, modern)
	if err != nil {
		return nil, err
	}
	if modern {
		defer s.pool.release(e, true)
		leave := e.join(c, w)
		defer leave()
		raw, err := s.passModern(ctx, c, x, w, e.session)
		e.ended(ctx, err)
		return raw, err
	}
	return s.passExclusive(ctx, c, x, w, e)
}

// passExclusive passes a call on over e, and gives e back.
func (s *source) passExclusive(ctx context.Context, c *call.Call, x *exchange, w wishes, e *exclusive) ([]byte, error) {
	if c.Client != nil && c.Client.Modern() && e.capabilities != nil {
		return s.begin(ctx, c, x, w, e)
	}
	release, err := e.takeTurn(ctx)
	if err != nil {
		s.pool.release(e, true)
		return nil, err
	}
	defer release()
	e.setLevel(ctx, w.level)
	leave := e.join(c, w)
	raw, err := x.send(ctx, e.session, client.Aside{Progress: c.Progress, Notify: notifier(c, w)})
	leave()
	e.ended(ctx, err)
	s.pool.release(e, err == nil || rpcOnly(err))
	return raw, err
}

// rpcOnly: the server answered, if with an error.
func rpcOnly(err error) bool {
	var rpc *client.RPCError
	return errors.As(err, &rpc) && rpc.Status/100 <= 2
}

// join lets c be asked and told what the server of e says outside of answers,
// until leave is called. After that the caller is not used any more.
func (e *exclusive) join(c *call.Call, w wishes) (leave func()) {
	d := &direct{caller: c.Client, tell: notifier(c, w)}
	d.life, d.stop = context.WithCancel(context.Background())
	e.enter(d)
	return func() {
		e.leave(d)
		d.end()
	}
}

// direct is a call whose caller waits for its end, and is asked meanwhile.
type direct struct {
	caller call.Client
	tell   func(method string, params json.RawMessage)
	life   context.Context //nolint:containedctx // of the call, which a question does not outlive
	stop   context.CancelFunc

	mu    sync.Mutex
	ended bool
	work  sync.WaitGroup
}

func (d *direct) waiting() bool { return false }
func (d *direct) giveUp()       {}

// begin says that the caller is used, unless the call is over.
func (d *direct) begin() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.ended {
		d.work.Add(1)
	}
	return !d.ended
}

func (d *direct) end() {
	d.mu.Lock()
	d.ended = true
	d.mu.Unlock()
	d.stop()
	d.work.Wait()
}

// ask implements asker.
func (d *direct) ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	if d.caller == nil || d.caller.Modern() || !d.begin() {
		return nil, &wire.Error{Code: mcp.CodeMethodNotFound, Message: "method not found"}
	}
	defer d.work.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(d.life, cancel)()
	answer, err := d.caller.Ask(ctx, method, params)
	var refused *call.RPCAnswer
	if errors.As(err, &refused) {
		return nil, &wire.Error{Code: refused.Code, Message: clip(refused.Message), Data: refused.Data}
	}
	return answer, err
}

// notify implements asker.
func (d *direct) notify(method string, params json.RawMessage) {
	if d.tell == nil || !d.begin() {
		return
	}
	defer d.work.Done()
	d.tell(method, params)
}
