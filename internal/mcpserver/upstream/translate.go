// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"encoding/json"
	"errors"
	"strconv"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/mcpserver/upstream/client"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
)

// translated puts what an upstream answered in place of a result into the
// caller's era: an answer that asks for more, or a failure that the caller's
// program understands. Both are nil for any other error.
func translated(c *call.Call, upstream string, err error) (*call.Result, *call.Error) {
	var asked *askedError
	if errors.As(err, &asked) {
		return asked.result, nil
	}
	var rpc *client.RPCError
	if !errors.As(err, &rpc) || c.Client == nil {
		return nil, nil
	}
	modern := c.Client.Modern()
	switch {
	case rpc.Code == mcp.CodeMissingRequiredClientCapability && modern:
		return nil, asItStands(rpc)
	case rpc.Code == mcp.CodeMissingRequiredClientCapability:
		return nil, call.Fail(call.CannotAsk, "the upstream %s has a question that this client cannot be asked", upstream)
	case rpc.Code == mcp.CodeInvalidParams && modern && (c.Responses != nil || c.State != nil):
		// What is refused are answers, or the state that came with them: the
		// program's affair, and nothing that a model could mend.
		return nil, asItStands(rpc)
	case rpc.Code == mcp.CodeURLElicitationRequired && !modern:
		return nil, asItStands(rpc)
	case rpc.Code == mcp.CodeURLElicitationRequired:
		return visits(c, rpc)
	}
	return nil, nil
}

// asItStands passes an error of the protocol on.
func asItStands(rpc *client.RPCError) *call.Error {
	failure := call.Fail(call.UpstreamError, "%s", wordsOf(rpc))
	failure.RPC = &call.RPCError{Code: rpc.Code, Message: failure.Message, Data: rpc.Data}
	return failure
}

// visits makes a question of an error with which a legacy server sends a person
// to URLs before the call can be made again: the retry is a call like any
// other, so there is no state.
func visits(c *call.Call, rpc *client.RPCError) (*call.Result, *call.Error) {
	if !takesURLs(c.Client.Capabilities()) {
		failure := call.Fail(call.CannotAsk, "this needs a client that can open a URL")
		failure.RPC = &call.RPCError{
			Code: mcp.CodeMissingRequiredClientCapability, Message: failure.Message,
			Data: json.RawMessage(`{"requiredCapabilities":{"elicitation":{"url":{}}}}`),
		}
		return nil, failure
	}
	data, err := wire.DecodeObject(rpc.Data)
	var elicitations []json.RawMessage
	if err != nil || json.Unmarshal(data.Get("elicitations"), &elicitations) != nil || len(elicitations) == 0 || len(elicitations) > maxQuestions {
		return nil, call.Fail(call.UpstreamError, "%s", wordsOf(rpc))
	}
	var requests []byte
	for i, params := range elicitations {
		object, err := wire.DecodeObject(params)
		if err != nil {
			return nil, call.Fail(call.UpstreamError, "%s", wordsOf(rpc))
		}
		request := wire.AppendField([]byte(`{"method":"`+mcp.MethodElicit+`"`), "params", encode(set(object, "mode", []byte(`"url"`))))
		requests = addMember(requests, "u"+strconv.Itoa(i+1), append(request, '}'))
	}
	return &call.Result{Input: &call.Input{Requests: braced(requests)}}, nil
}
