// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
)

// maxAsks is how many answers of one client may be awaited at once.
const maxAsks = 64

// errAnswer is what a client's answer is when it is none.
var errAnswer = errors.New("the client's answer cannot be read")

// asks are the requests to the client that wait for an answer.
type asks struct {
	last    int64
	waiting map[int64]chan answer
}

type answer struct {
	result json.RawMessage
	err    error
}

// Ask sends the client a request and waits for its result, for ctx, or for the
// end of the session. An error in place of a result is a *call.RPCAnswer. send
// puts a message on the stream of the request that it belongs to; with nil it
// goes on the standing stream, and call.ErrCannotAsk says that there is none.
func (s *Session) Ask(ctx context.Context, method string, params json.RawMessage, send func(message []byte) error) (json.RawMessage, error) {
	if send == nil {
		send = s.Push
	}
	id, waiting, err := s.expect()
	if err != nil {
		return nil, err
	}
	defer s.forget(id)
	out := strconv.AppendInt([]byte(`{"jsonrpc":"2.0","id":`), id, 10)
	out = wire.AppendField(out, "method", wire.AppendString(nil, method))
	if params != nil {
		out = wire.AppendField(out, "params", params)
	}
	if send(append(out, '}')) != nil {
		return nil, call.ErrCannotAsk
	}
	select {
	case a := <-waiting:
		return a.result, a.err
	case <-ctx.Done():
		out := strconv.AppendInt([]byte(`{"jsonrpc":"2.0","method":"`+mcp.NotificationCancelled+`","params":{"requestId":`), id, 10)
		_ = send(append(out, "}}"...)) // A client that is gone waits for nothing.
		return nil, context.Cause(ctx)
	case <-s.done:
		return nil, call.ErrCannotAsk
	}
}

func (s *Session) expect() (int64, <-chan answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over || len(s.asks.waiting) >= maxAsks {
		return 0, nil, call.ErrCannotAsk
	}
	if s.asks.waiting == nil {
		s.asks.waiting = map[int64]chan answer{}
	}
	s.asks.last++
	waiting := make(chan answer, 1)
	s.asks.waiting[s.asks.last] = waiting
	return s.asks.last, waiting, nil
}

func (s *Session) forget(id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.asks.waiting, id)
}

// Answer takes a response of the client. It copies what it keeps. False: it
// answers nothing that is waited for, as one that comes too late does.
func (s *Session) Answer(m *wire.Message) bool {
	id, err := strconv.ParseInt(string(m.ID), 10, 64)
	if text, quoted := wire.Text(m.ID); quoted { // Some clients make strings of ids.
		id, err = strconv.ParseInt(text, 10, 64)
	}
	if err != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	waiting := s.asks.waiting[id]
	if waiting == nil {
		return false
	}
	delete(s.asks.waiting, id)
	waiting <- read(m) // It has room for one.
	return true
}

func read(m *wire.Message) answer {
	if m.Error != nil {
		var e call.RPCAnswer
		object, err := wire.DecodeObject(m.Error)
		if err != nil {
			return answer{err: errAnswer}
		}
		e.Code, _ = strconv.Atoi(string(object.Get("code")))
		e.Message, _ = object.Text("message")
		e.Data = append(e.Data, object.Get("data")...)
		return answer{err: &e}
	}
	if !wire.IsObject(m.Result) {
		return answer{err: errAnswer}
	}
	return answer{result: append(json.RawMessage(nil), m.Result...)}
}
