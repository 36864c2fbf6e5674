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
	"github.com/espalier-dev/espalier/internal/mcpserver/upstream/client"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
)

const (
	// maxRounds is how often a modern server may ask before it answers, and
	// maxQuestions how much at once.
	maxRounds    = 10
	maxQuestions = 16
)

// rounds asks a modern server for a legacy caller: what it wants to know is
// asked the caller while its call runs.
func (s *source) rounds(ctx context.Context, c *call.Call, x *exchange, aside client.Aside, to session) ([]byte, error) {
	for range maxRounds {
		raw, err := x.send(ctx, to, aside)
		if err != nil {
			return nil, err
		}
		asked := questions(raw)
		if asked == nil {
			return raw, nil
		}
		if aside.Responses, err = s.askAll(ctx, c, asked.Get("inputRequests")); err != nil {
			return nil, err
		}
		aside.State = asked.Get("requestState")
	}
	return nil, call.Fail(call.UpstreamError, "the upstream %s asked more than %d times", s.config.Name, maxRounds)
}

// askAll asks a legacy caller all questions at once and gives the raw
// inputResponses; nil when there is no question.
func (s *source) askAll(ctx context.Context, c *call.Call, raw []byte) ([]byte, error) {
	if raw == nil {
		return nil, nil
	}
	requests, err := wire.DecodeObject(raw)
	if err != nil || len(requests) > maxQuestions {
		return nil, call.Fail(call.InvalidResult, "the upstream %s asks in a way that cannot be passed on", s.config.Name)
	}
	if len(requests) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answers, failures := make([]json.RawMessage, len(requests)), make([]error, len(requests))
	var asking sync.WaitGroup
	for i, request := range requests {
		asking.Go(func() {
			if answers[i], failures[i] = s.askOne(ctx, c, request.Raw); failures[i] != nil {
				cancel() // The others would be asked for nothing.
			}
		})
	}
	asking.Wait()
	var out []byte
	var failure error
	for i, request := range requests {
		// One that says why, where there is one: others ended for its sake.
		var known *call.Error
		if err := failures[i]; err != nil && (failure == nil || errors.As(err, &known)) {
			failure = err
		}
		out = addMember(out, request.Key, answers[i])
	}
	if failure != nil {
		return nil, failure
	}
	return braced(out), nil
}

// askOne asks a legacy caller one question.
func (s *source) askOne(ctx context.Context, c *call.Call, raw []byte) (json.RawMessage, error) {
	request, err := wire.DecodeObject(raw)
	method, _ := request.Text("method")
	if err != nil || !mcp.AsksClient(method) {
		return nil, call.Fail(call.InvalidResult, "the upstream %s asks in a way that cannot be passed on", s.config.Name)
	}
	answer, err := c.Client.Ask(ctx, method, passable(request.Get("params")))
	var refused *call.RPCAnswer
	switch {
	case errors.As(err, &refused):
		return nil, call.Fail(call.CannotAsk, "the client answered a question of the upstream %s with error %d", s.config.Name, refused.Code)
	case errors.Is(err, call.ErrCannotAsk), err != nil && ctx.Err() == nil:
		return nil, s.cannotAsk()
	}
	return answer, err
}
