// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"errors"

	"github.com/espalier-dev/espalier/internal/mcp"
)

const (
	// maxID is the longest request id, in bytes.
	maxID = 256
	// maxMethod is the longest method name, in bytes.
	maxMethod = 256
	// MaxBatch is how many messages one batch may hold.
	MaxBatch = 100
)

// Message is one request or notification. It points into the bytes that it
// was read from and must not outlive them.
type Message struct {
	// ID is the raw id, nil for a notification.
	ID     []byte
	Method string
	// Params and Meta (params._meta) are nil when absent.
	Params Object
	Meta   Object
	// IsResponse marks an answer of the client to a request of the server;
	// Result or Error is what it says, raw.
	IsResponse    bool
	Result, Error []byte

	fields [8]Field
	params [6]Field
	meta   [6]Field
}

// DecodeMessage reads one message. The error, if any, is the answer to it.
func DecodeMessage(data []byte, m *Message) *Error {
	s := scanner{data: data}
	switch s.peek() {
	case '{':
	case '[':
		return &Error{Code: mcp.CodeInvalidRequest, Message: "batches belong to revision 2025-03-26: send one message per request"}
	default:
		return parseError(errSyntax)
	}
	envelope, err := s.fields(m.fields[:0], 0)
	if err == nil {
		err = s.end()
	}
	if err != nil {
		return parseError(err)
	}
	return m.fill(envelope)
}

func (m *Message) fill(envelope Object) *Error {
	invalid := func(text string) *Error { return &Error{Code: mcp.CodeInvalidRequest, Message: text} }
	if id := envelope.Get("id"); id != nil {
		if len(id) > maxID || id[0] != '"' && id[0] != '-' && (id[0] < '0' || id[0] > '9') {
			return invalid("id must be a string or a number of at most 256 bytes")
		}
		m.ID = id
	}
	if version, _ := envelope.Text("jsonrpc"); version != "2.0" {
		return invalid(`jsonrpc must be "2.0"`)
	}
	method, ok := envelope.Text("method")
	if !ok {
		m.Result, m.Error = envelope.Get("result"), envelope.Get("error")
		if m.Result != nil || m.Error != nil {
			m.IsResponse = true
			return nil
		}
		return invalid("method must be a string")
	}
	if len(method) > maxMethod {
		return invalid("method is too long")
	}
	m.Method = method
	return m.fillParams(envelope.Get("params"))
}

func (m *Message) fillParams(raw []byte) *Error {
	if raw == nil || string(raw) == "null" {
		return nil
	}
	if !IsObject(raw) {
		return &Error{Code: mcp.CodeInvalidParams, Message: "params must be an object"}
	}
	s := scanner{data: raw}
	var err error
	if m.Params, err = s.fields(m.params[:0], 1); err != nil {
		return parseError(err)
	}
	meta := m.Params.Get("_meta")
	if meta == nil || string(meta) == "null" {
		return nil
	}
	if !IsObject(meta) {
		return &Error{Code: mcp.CodeInvalidParams, Message: "params._meta must be an object"}
	}
	s = scanner{data: meta}
	if m.Meta, err = s.fields(m.meta[:0], 2); err != nil {
		return parseError(err)
	}
	return nil
}

func parseError(err error) *Error {
	return &Error{Code: mcp.CodeParseError, Message: "the message cannot be read: " + err.Error()}
}

// IsBatch reports whether data is a JSON array.
func IsBatch(data []byte) bool {
	data = bytes.TrimLeft(data, " \t\r\n")
	return len(data) > 0 && data[0] == '['
}

// DecodeBatch gives the raw messages of a batch.
func DecodeBatch(data []byte) ([][]byte, *Error) {
	s := scanner{data: data}
	if s.peek() != '[' {
		return nil, parseError(errSyntax)
	}
	var out [][]byte
	err := s.array(0, func() error {
		if len(out) == MaxBatch {
			return errors.New("the batch is too long")
		}
		raw, err := s.raw(1)
		out = append(out, raw)
		return err
	})
	if err == nil {
		err = s.end()
	}
	if err != nil {
		return nil, parseError(err)
	}
	if len(out) == 0 {
		return nil, &Error{Code: mcp.CodeInvalidRequest, Message: "the batch is empty"}
	}
	return out, nil
}
