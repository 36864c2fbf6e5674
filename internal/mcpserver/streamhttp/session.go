// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package streamhttp

import (
	"context"
	"net/http"
	"sync/atomic"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/engine"
	"github.com/espalier-dev/espalier/internal/mcpserver/httpgate"
	"github.com/espalier-dev/espalier/internal/mcpserver/principal"
	"github.com/espalier-dev/espalier/internal/mcpserver/session"
	"github.com/espalier-dev/espalier/internal/mcpserver/transport"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

const headerLastEvent = "Last-Event-Id"

func unknownSession() (int, *wire.Error) {
	return http.StatusNotFound, &wire.Error{Code: mcp.CodeInvalidRequest, Message: "unknown session: initialize again"}
}

// exchange is one request of a legacy client, and its session if it names one.
type exchange struct {
	session *session.Session
	channel *session.Channel
	opened  atomic.Bool
}

// find gives the session that a legacy request names; nil when it names none.
// Who names one that is not theirs starts over, as every revision says.
func find(r *http.Request, h transport.Handler, caller *principal.Principal) (*session.Session, int, *wire.Error) {
	id := r.Header.Get(mcp.HeaderSessionID)
	if id == "" {
		return nil, 0, nil
	}
	s := h.Sessions().Get(id, caller)
	if s == nil {
		status, err := unknownSession()
		return nil, status, err
	}
	return s, 0, nil
}

// elsewhere passes a request on to the replica that has the session which it
// names. False: this one has to answer it. body is what was read of it.
func (t *Transport) elsewhere(w http.ResponseWriter, r *http.Request, body []byte) bool {
	owner := session.Owner(r.Header.Get(mcp.HeaderSessionID))
	if !t.peers.Elsewhere(r.Context(), owner) {
		return false
	}
	_, unknown := unknownSession()
	httpgate.PassOn(w, r, t.peers, owner, body, unknown, t.log)
	return true
}

// bind gives a legacy request its session: the one that it names, or, for
// initialize, a new one. The exchange is nil where there is none.
func bind(w http.ResponseWriter, r *http.Request, h transport.Handler, request *engine.Request) (*exchange, int, *wire.Error) {
	if request.Era != engine.Legacy {
		return nil, 0, nil
	}
	if request.Message.Method == mcp.MethodInitialize {
		request.NewSession = func() (*session.Session, error) {
			return h.Sessions().Open(request.Caller, string(serverconfig.TransportStreamableHTTP))
		}
		return nil, 0, nil
	}
	s, status, err := find(r, h, request.Caller)
	if s == nil {
		return nil, status, err
	}
	x := &exchange{session: s}
	request.Session, request.Calls = s, &s.Calls
	request.Open = func() (engine.Stream, error) { return x.open(w) }
	return x, 0, nil
}

// open makes the answer a stream that can be taken up again.
func (x *exchange) open(w http.ResponseWriter) (engine.Stream, error) {
	connection, err := openStream(w)
	if err != nil {
		return nil, err
	}
	x.channel = x.session.Channel(connection)
	x.opened.Store(true)
	x.channel.Prime()
	return x.channel, nil
}

// answer takes a response of the client. One that comes too late is no error.
func (x *exchange) answer(m *wire.Message) {
	if x != nil && x.session != nil {
		x.session.Answer(m)
	}
}

// handle answers a request. One of a session outlives its connection once the
// answer is a stream: the client may take that up again.
func (x *exchange) handle(r *http.Request, h transport.Handler, request *engine.Request) engine.Reply {
	if x == nil || request.Message.ID == nil {
		return h.Handle(r.Context(), request)
	}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(r.Context()))
	stop := context.AfterFunc(r.Context(), func() {
		if x.opened.Load() {
			select {
			case <-x.session.Done():
			case <-ctx.Done():
			}
		}
		cancel(context.Cause(r.Context()))
	})
	defer func() {
		stop()
		cancel(nil)
		if x.channel != nil {
			x.channel.Finish()
		}
	}()
	return h.Handle(ctx, request)
}

// get serves a stream of a session.
func (t *Transport) get(w http.ResponseWriter, r *http.Request, h transport.Handler, caller *principal.Principal) {
	if r.Header.Get(mcp.HeaderSessionID) == "" {
		notAllowed(w)
		return
	}
	if t.standsElsewhere(w, r, h) {
		return
	}
	s, status, err := find(r, h, caller)
	switch {
	case err != nil:
		refuse(w, status, err)
		return
	case !accepts(r.Header["Accept"], mediaStream):
		refuse(w, http.StatusNotAcceptable, &wire.Error{Code: mcp.CodeInvalidRequest, Message: "send Accept: text/event-stream"})
		return
	}
	reply := h.Stand(r.Context(), s, caller, r.Header.Get(headerLastEvent), func() (engine.Stream, error) { return openStream(w) })
	if !reply.Streamed {
		writeReply(w, reply)
	}
}

// standsElsewhere serves a stream of a session that another replica has. It
// counts as open here as well.
func (t *Transport) standsElsewhere(w http.ResponseWriter, r *http.Request, h transport.Handler) bool {
	if !t.peers.Elsewhere(r.Context(), session.Owner(r.Header.Get(mcp.HeaderSessionID))) {
		return false
	}
	done, refusal := h.Reserve()
	if done == nil {
		writeReply(w, refusal)
		return true
	}
	defer done()
	return t.elsewhere(w, r, nil)
}

// end ends a session at its client's wish.
func (t *Transport) end(w http.ResponseWriter, r *http.Request, h transport.Handler, caller *principal.Principal) {
	if t.elsewhere(w, r, nil) {
		return
	}
	s, status, err := find(r, h, caller)
	switch {
	case err != nil:
		refuse(w, status, err)
	case s == nil:
		notAllowed(w)
	default:
		h.Sessions().Remove(s)
		w.WriteHeader(http.StatusNoContent)
	}
}

// notAllowed answers methods that belong to a session when none is named.
func notAllowed(w http.ResponseWriter) {
	w.Header().Set("Allow", "POST, OPTIONS")
	refuse(w, http.StatusMethodNotAllowed, &wire.Error{Code: mcp.CodeInvalidRequest, Message: "send messages by POST; GET and DELETE need a session"})
}
