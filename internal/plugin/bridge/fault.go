// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
)

// kind of a fault says what may be done about it.
type kind int

const (
	// unreached: the server certainly did not get the message.
	unreached kind = iota
	// unsure: it may have got it, and no answer came.
	unsure
	// refused: it got it and will not answer otherwise when asked again.
	refused
)

// fault is why a message has no answer from the server.
type fault struct {
	kind kind
	// gone: the session is no longer known there.
	gone bool
	// answer is the error of JSON-RPC to give, raw; nil for one made of the
	// rest.
	answer []byte
	// code, reason and text of the error that is made.
	code   int
	reason string
	text   string
	// cause is for people: what failed on the way.
	cause error
}

func (f *fault) Error() string {
	if f.cause != nil {
		return f.text + ": " + f.cause.Error()
	}
	return f.text
}

// line is the answer to the request with this id.
func (f *fault) line(id []byte) []byte {
	if f.answer != nil {
		out := append([]byte(`{"jsonrpc":"2.0","id":`), id...)
		return append(wire.AppendField(out, "error", f.answer), '}')
	}
	return wire.AppendError(nil, id, &wire.Error{Code: f.code, Message: f.Error(), Data: wire.Data(f.reason)})
}

// unauthorized is the reason of what a credential would change.
const unauthorized = "Unauthorized"

// noReplica: nothing answers at the other end.
func noReplica(cause error) *fault {
	return &fault{kind: unreached, code: mcp.CodeUnavailable, reason: "Unavailable", text: "no replica of the MCP server could be reached", cause: cause}
}

// lost: the connection ended without an answer.
func lost(cause error) *fault {
	return &fault{
		kind: unsure, code: mcp.CodeInternalError, reason: "ConnectionLost", cause: cause,
		text: "the connection to the MCP server ended before its answer; whether the request was carried out is not known, so it was not sent again",
	}
}

// sessionGone: the session is not known, and the message not taken.
func sessionGone() *fault {
	return &fault{kind: unreached, gone: true, code: mcp.CodeUnavailable, reason: "SessionLost", text: "the MCP server does not keep the session"}
}

func notMCP(what string) *fault {
	return &fault{kind: refused, code: mcp.CodeInternalError, reason: "NotMCP", text: "the answer is no message of the Model Context Protocol (" + what + "): is the path right?"}
}

func tooLarge(limit int64) *fault {
	return &fault{kind: refused, code: mcp.CodeTooLarge, reason: "TooLarge", text: "the message is larger than " + strconv.FormatInt(limit, 10) + " bytes"}
}

// statusFault is for an answer that only its HTTP status tells of.
func statusFault(status int, method string, credential bool) *fault {
	f := &fault{
		kind: refused, code: mcp.CodeInternalError, reason: "UnexpectedStatus",
		text: fmt.Sprintf("the MCP server answered with HTTP status %d (%s) and no message", status, http.StatusText(status)),
	}
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		f.code, f.reason = mcp.CodeUnauthorized, unauthorized
		f.text = fmt.Sprintf("the MCP server wants a credential (HTTP status %d): give \"kubectl mcp connect\" one by --token-file or --header", status)
		if credential {
			f.text = fmt.Sprintf("the MCP server refused the credential that \"kubectl mcp connect\" was given (HTTP status %d)", status)
		}
	case status == http.StatusBadGateway || status == http.StatusServiceUnavailable || status == http.StatusGatewayTimeout:
		f.kind = unsure
	case status/100 == 3:
		f.text = fmt.Sprintf("the MCP server redirects to another place (HTTP status %d)", status)
	case method == mcp.MethodDiscover:
		// A server of the legacy era alone. The client goes on by initialize.
		f.code, f.reason = mcp.CodeMethodNotFound, "MethodNotFound"
	}
	return f
}

// codeOf a raw error of JSON-RPC, 0 for none.
func codeOf(failure []byte) int {
	object, err := wire.DecodeObject(failure)
	if err != nil {
		return 0
	}
	code, err := strconv.Atoi(strings.TrimSpace(string(object.Get("code"))))
	if err != nil {
		return 0
	}
	return code
}
