// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
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
