// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"errors"
	"net/http"
	"runtime/debug"

	"github.com/espalier-dev/espalier/internal/mcpserver/audit"
	"github.com/espalier-dev/espalier/internal/mcpserver/httpgate"
	"github.com/espalier-dev/espalier/internal/mcpserver/transport"
	"github.com/espalier-dev/espalier/internal/tracing"
)

// audited has lines that cannot be written counted, and the first in a row
// logged.
func (s *Server) audited(log *audit.Log) *audit.Log {
	if log != nil {
		log.Failed = func(err error, first bool) {
			s.metrics.AuditFailures.Inc()
			if first {
				s.log.Error("Audit log cannot be written, calls go on without", "error", err.Error())
			}
		}
	}
	return log
}

// route hands a request to the transport whose path it names.
func (s *Server) route(w http.ResponseWriter, r *http.Request) {
	httpgate.Identify(w, r)
	defer s.survive(w, r)
	if s.options.Tracer != nil && r.Method == http.MethodPost { // A stream outlives the span that opened it.
		r = r.WithContext(tracing.FromHeader(r.Context(), r.Header))
	}
	snapshot := s.registry.Snapshot()
	for _, t := range s.transports {
		h, ok := t.(transport.HTTP)
		// Without a catalog no path is known; any transport says so.
		if ok && (snapshot == nil || snapshot.Path(h.Type()) == r.URL.Path) {
			h.ServeHTTP(w, r)
			return
		}
	}
	if !s.gate.Metadata(w, r, snapshot) {
		http.NotFound(w, r)
	}
}

// survive makes a panic an answer and a line in the log that is seen; net/http
// would write its own to the log of protocol errors.
func (s *Server) survive(w http.ResponseWriter, r *http.Request) {
	p := recover()
	if p == nil {
		return
	}
	if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(p)
	}
	s.log.ErrorContext(r.Context(), "Request panicked", "requestId", httpgate.RequestID(r), "stack", string(debug.Stack()))
	w.WriteHeader(http.StatusInternalServerError)
}
