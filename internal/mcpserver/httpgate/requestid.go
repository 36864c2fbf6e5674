// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package httpgate

import (
	"net/http"

	"github.com/espalier-dev/espalier/internal/mcpserver/engine"
)

// HeaderRequestID names one request in logs: of its client, of what stands
// between, and of this server.
const HeaderRequestID = "X-Request-Id"

// maxRequestID is the longest id that is taken over, in bytes.
const maxRequestID = 128

// Identify gives a request its id and writes it into the answer: the id that
// it came with, if that can stand in a log as it is, or a new one. Who passes
// the request on passes the id on with it.
func Identify(w http.ResponseWriter, r *http.Request) {
	values := r.Header[HeaderRequestID]
	if len(values) != 1 || !loggable(values[0]) {
		values = []string{engine.NewRequestID()}
		r.Header[HeaderRequestID] = values
	}
	w.Header()[HeaderRequestID] = values
}

// RequestID is the id that Identify gave; empty before.
func RequestID(r *http.Request) string {
	if values := r.Header[HeaderRequestID]; len(values) == 1 {
		return values[0]
	}
	return ""
}

// loggable reports whether an id is of the letters that ids are made of.
func loggable(id string) bool {
	if id == "" || len(id) > maxRequestID {
		return false
	}
	for _, c := range []byte(id) {
		switch {
		case c >= '0' && c <= '9', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z':
		case c == '-', c == '_', c == '.', c == ':', c == '/', c == '+', c == '=':
		default:
			return false
		}
	}
	return true
}
