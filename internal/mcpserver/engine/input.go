// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"strconv"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
)

// checkInput: a legacy client does not know an answer that asks for more.
func checkInput(r *Request, result *call.Result) *call.Error {
	if result == nil || result.Input == nil || r.Era == Modern {
		return nil
	}
	return call.Fail(call.InputRequired, "this needs input that your client cannot be asked for")
}

// answersFlaw says what is wrong with the form of what a modern client answers
// a question with; nil when nothing is. What the answers hold is the asker's
// affair.
func answersFlaw(params wire.Object) *wire.Error {
	invalid := func(message string) *wire.Error { return &wire.Error{Code: mcp.CodeInvalidParams, Message: message} }
	if raw := params.Get("requestState"); present(raw) && raw[0] != '"' {
		return invalid("requestState must be a string")
	}
	raw := params.Get("inputResponses")
	if !present(raw) {
		return nil
	}
	responses, err := wire.DecodeObject(raw)
	if err != nil {
		return invalid("inputResponses must be an object")
	}
	for _, response := range responses {
		if !wire.IsObject(response.Raw) {
			return invalid("inputResponses: the answer " + strconv.Quote(clip(response.Key)) + " must be an object")
		}
	}
	return nil
}

func present(raw []byte) bool { return len(raw) > 0 && string(raw) != "null" }

// appendInput writes an answer that asks a modern caller for more.
func appendInput(r *Request, result *call.Result) []byte {
	out := wire.AppendResultHead(r.Out, r.Message.ID)
	out = append(out, `{"resultType":"input_required"`...)
	if result.Input.Requests != nil {
		out = wire.AppendField(out, "inputRequests", result.Input.Requests)
	}
	if result.Input.State != nil {
		out = wire.AppendField(out, "requestState", result.Input.State)
	}
	out = appendCallMeta(out, r, nil, result.Meta)
	return append(out, "}}"...)
}
