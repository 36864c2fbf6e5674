// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"crypto/rand"
	"errors"
	"testing"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/mcpserver/upstream/client"
)

// TestRefusedAnswers: an upstream that refuses answers or a state does so to
// the caller's program; one that refuses arguments tells the model.
func TestRefusedAnswers(t *testing.T) {
	refused := &client.RPCError{Code: mcp.CodeInvalidParams, Status: 400, Message: "not a state of mine"}
	for name, tc := range map[string]struct {
		c    *call.Call
		code int
	}{
		"a state":   {&call.Call{Client: &caller{t: t, modern: true}, State: []byte(`"s"`)}, mcp.CodeInvalidParams},
		"answers":   {&call.Call{Client: &caller{t: t, modern: true}, Responses: []byte(`{}`)}, mcp.CodeInvalidParams},
		"arguments": {&call.Call{Client: &caller{t: t, modern: true}}, 0},
		"legacy":    {&call.Call{Client: &caller{t: t}, State: []byte(`"s"`)}, 0},
	} {
		result, failure := translated(tc.c, "u", refused)
		if result != nil || (failure != nil) != (tc.code != 0) {
			t.Fatalf("%s: %+v, %+v", name, result, failure)
		}
		if failure != nil && (failure.RPC.Code != tc.code || failure.RPC.Message != refused.Message) {
			t.Errorf("%s: %+v", name, failure.RPC)
		}
	}
}

// TestForgedStates: a state that a caller made up or changed is refused, and
// the call is not made; one that was ours once has expired.
func TestForgedStates(t *testing.T) {
	_, u := asking(t, false)
	m := managing(t, hasty, u)
	ours := string(call.ParkedState("me", rand.Text()))
	for state, code := range map[string]int{
		ours:                             0,
		ours[:len(ours)-1] + `-MORE"`:    mcp.CodeInvalidParams,
		string(call.ParkedState("", "")): mcp.CodeInvalidParams,
		`"something"`:                    mcp.CodeInvalidParams,
	} {
		c := toolCall("Kim", &caller{t: t, modern: true, declares: declaresAll})
		c.State, c.Responses = []byte(state), []byte(`{"q1":{"action":"accept"}}`)
		result, err := ask(m).Call(t.Context(), c)
		var failure *call.Error
		if !errors.As(err, &failure) || failure.Reason != call.QuestionExpired || (failure.RPC != nil) != (code != 0) || code != 0 && failure.RPC.Code != code {
			t.Errorf("%s: %+v, %v", state, result, err)
		}
	}
}
