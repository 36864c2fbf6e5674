// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpprobe

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/espalier-dev/espalier/internal/mcp"
)

// message is one JSON-RPC message of a peer. Its fields alias the body.
type message struct {
	id     []byte // nil when absent
	method string
	result []byte
	err    []byte
}

var utf8BOM = []byte("\xef\xbb\xbf")

// isRequest: the peer asks something; isNotification: it tells something.
func (m message) isRequest() bool { return m.method != "" && m.id != nil && !isNull(m.id) }

func (m message) isNotification() bool { return m.method != "" && !m.isRequest() }

// answers reports whether m is a response to request id. An error without an
// id answers too: it is how a server refuses what it could not read.
func (m message) answers(id int64) bool {
	if m.method != "" {
		return false
	}
	if m.id == nil || isNull(m.id) {
		return m.err != nil
	}
	if string(m.id) == strconv.FormatInt(id, 10) {
		return true
	}
	// Some languages have no integers: 1 comes back as 1.0.
	n, err := strconv.ParseFloat(string(m.id), 64)
	return err == nil && n == float64(id)
}

// parseMessages takes a body or the data of an event apart: one message, or a
// batch of them as revision 2025-03-26 allows.
func parseMessages(data []byte) ([]message, Flaw) {
	data = bytes.Trim(bytes.TrimPrefix(data, utf8BOM), jsonSpace)
	if len(data) == 0 {
		return nil, FlawEmpty
	}
	if !json.Valid(data) {
		return nil, FlawNotJSON
	}
	var messages []message
	flaw := Flaw("")
	add := func(value []byte) bool {
		m, ok := parseMessage(value)
		if !ok {
			flaw = FlawNotJSONRPC
			return true
		}
		messages = append(messages, m)
		return len(messages) < maxBatch
	}
	if !walkArray(data, add) {
		add(data)
	}
	if len(messages) == 0 && flaw == "" {
		flaw = FlawNotJSONRPC
	}
	return messages, flaw
}

// maxBatch bounds the messages that are looked at in one batch.
const maxBatch = 100

func parseMessage(value []byte) (m message, ok bool) {
	version := ""
	isObj := walkObject(value, func(key string, v []byte) bool {
		switch key {
		case "jsonrpc":
			version, _ = stringOf(v)
		case "id":
			m.id = v
		case "method":
			m.method, _ = stringOf(v)
		case "result":
			m.result = v
		case "error":
			if isObject(v) {
				m.err = v
			}
		}
		return true
	})
	return m, isObj && version == "2.0" && (m.method != "" || m.result != nil || m.err != nil)
}

// rpcError is the error of a response, as far as it is understood.
type rpcError struct {
	code    int
	message string
	// versions that the error names, well formed, in its data or its words.
	versions []string
}

func parseRPCError(value []byte) *rpcError {
	e := &rpcError{}
	if code, ok := member(value, "code"); ok {
		if n, err := strconv.ParseInt(string(code), 10, 32); err == nil {
			e.code = int(n)
		}
	}
	e.message, _ = stringMember(value, "message")
	data, _ := member(value, "data")
	e.versions = versionsIn(string(data) + " " + e.message)
	return e
}

// notFound reports whether the method is unknown to the server.
func (e *rpcError) notFound() bool { return e.code == mcp.CodeMethodNotFound }

// isModern reports whether the code is one that only the modern era knows.
func (e *rpcError) isModern() bool {
	switch e.code {
	case mcp.CodeHeaderMismatch, mcp.CodeMissingRequiredClientCapability, mcp.CodeUnsupportedProtocolVersion:
		return true
	}
	return false
}

// maxOffered bounds the versions kept of a peer's offer.
const maxOffered = 16

// versionsIn finds the well-formed versions in a text, sorted and distinct.
func versionsIn(text string) []string {
	var found []string
	text = cut(text, 4096)
	const length = len("2006-01-02")
	for i := 0; i+length <= len(text); i++ {
		if !mcp.WellFormedVersion(text[i : i+length]) {
			continue
		}
		before := i > 0 && isDigitOrDash(text[i-1])
		after := i+length < len(text) && isDigitOrDash(text[i+length])
		if !before && !after {
			found = append(found, text[i:i+length])
		}
		i += length - 1
	}
	return boundVersions(found)
}

func isDigitOrDash(c byte) bool { return c == '-' || c >= '0' && c <= '9' }

func boundVersions(versions []string) []string {
	slices.Sort(versions)
	versions = slices.Compact(versions)
	// The newest are the interesting ones.
	return versions[max(0, len(versions)-maxOffered):]
}

// request is a JSON-RPC request or, without ID, a notification.
type request struct {
	JSONRPC string         `json:"jsonrpc"`
	ID      int64          `json:"id,omitempty"`
	Method  string         `json:"method"`
	Params  map[string]any `json:"params,omitempty"`
}

// reply is the probe's answer to a request of the server.
type reply struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  *struct{}       `json:"result,omitempty"`
	Error   *replyError     `json:"error,omitempty"`
}

type replyError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// replyTo answers a ping and declines everything else: the probe declares no
// capabilities. It says false for an id that is none.
func replyTo(m message) (reply, bool) {
	id := string(m.id)
	_, err := strconv.ParseFloat(id, 64)
	if len(id) > 256 || (!strings.HasPrefix(id, `"`) && err != nil) {
		return reply{}, false
	}
	r := reply{JSONRPC: "2.0", ID: slices.Clone(m.id)}
	if m.method == mcp.MethodPing {
		r.Result = &struct{}{}
	} else {
		r.Error = &replyError{Code: mcp.CodeMethodNotFound, Message: "not offered by this client"}
	}
	return r, true
}
