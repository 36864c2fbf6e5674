// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package httpgate is what stands before every transport that speaks HTTP:
// first the Origin rule, then authentication. A transport calls Origin, then
// Preflight, and then Authenticate; nothing of a request is read before.
package httpgate

import (
	"net/http"
	"strings"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/auth"
	"github.com/espalier-dev/espalier/internal/mcpserver/metrics"
	"github.com/espalier-dev/espalier/internal/mcpserver/principal"
	"github.com/espalier-dev/espalier/internal/mcpserver/registry"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
)

// Gate is safe for concurrent use.
type Gate struct {
	metrics *metrics.Metrics
}

// New gives a gate that counts what it refuses.
func New(m *metrics.Metrics) *Gate { return &Gate{metrics: m} }

// Origin holds the Origin header, when there is one, against those that the
// catalog allows, exactly, and writes the CORS headers; methods are those of
// the path. It never compares with Host, which a rebound name makes equal.
// False: the request was answered.
func (g *Gate) Origin(w http.ResponseWriter, r *http.Request, snapshot *registry.Snapshot, methods string) bool {
	origins, present := r.Header["Origin"]
	if !present {
		return true
	}
	if len(origins) != 1 || snapshot == nil || !snapshot.OriginAllowed(origins[0]) {
		g.metrics.Refused("Origin")
		Refuse(w, http.StatusForbidden, &wire.Error{
			Code: mcp.CodeForbidden, Message: "this Origin is not allowed: name it in spec.cors.allowedOrigins or spec.publicURL", Data: wire.Data("OriginNotAllowed"),
		})
		return false
	}
	allowOrigin(w.Header(), r, origins[0], methods)
	return true
}

// Preflight answers OPTIONS, before authentication: a browser sends no
// credential with it. False: it is another method.
func Preflight(w http.ResponseWriter, r *http.Request, methods string) bool {
	if r.Method != http.MethodOptions {
		return false
	}
	w.Header().Set("Allow", methods)
	w.WriteHeader(http.StatusNoContent)
	return true
}

// Authenticate says who makes the request; nil: it was answered.
func (g *Gate) Authenticate(w http.ResponseWriter, r *http.Request, snapshot *registry.Snapshot) *principal.Principal {
	caller, refusal := snapshot.Authenticate(r)
	if refusal == nil {
		return caller
	}
	g.metrics.Refused(refusal.Reason)
	if refusal.Challenge != "" {
		w.Header().Set("WWW-Authenticate", refusal.Challenge)
	}
	if refusal.Status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "5")
	}
	Refuse(w, refusal.Status, answer(refusal))
	return nil
}

func answer(r *auth.Refusal) *wire.Error {
	return &wire.Error{Code: codes[r.Status], Message: r.Message, Data: wire.Data(r.Reason)}
}

// Caller says whose credential a request bears, for transports whose
// connections outlive the answer to it.
func Caller(r *http.Request, snapshot *registry.Snapshot) (*principal.Principal, *wire.Error) {
	caller, refusal := snapshot.Authenticate(r)
	if refusal != nil {
		return nil, answer(refusal)
	}
	return caller, nil
}

var codes = map[int]int{
	http.StatusUnauthorized: mcp.CodeUnauthorized, http.StatusForbidden: mcp.CodeForbidden,
	http.StatusServiceUnavailable: mcp.CodeUnavailable,
}

// Metadata serves the protected-resource metadata of a snapshot. False: the
// path is none of its.
func (g *Gate) Metadata(w http.ResponseWriter, r *http.Request, snapshot *registry.Snapshot) bool {
	if !strings.HasPrefix(r.URL.Path, auth.WellKnown) || snapshot == nil {
		return false
	}
	name := snapshot.Config.Server.Title
	if name == "" {
		name = snapshot.Config.Server.Name
	}
	document := snapshot.Auth.Metadata(r.URL.Path, name, snapshot.Paths())
	if document == nil {
		return false
	}
	if !g.Origin(w, r, snapshot, metadataMethods) {
		return true
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "public, max-age=60")
		_, _ = w.Write(document)
	case http.MethodOptions:
		w.Header().Set("Allow", metadataMethods)
		w.WriteHeader(http.StatusNoContent)
	default:
		w.Header().Set("Allow", metadataMethods)
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
	return true
}

const metadataMethods = "GET, HEAD, OPTIONS"

// Refuse answers a request that no message was read from. What is over in a
// while says when to come back, in a second where nobody said otherwise.
func Refuse(w http.ResponseWriter, status int, err *wire.Error) {
	if passes(status) && w.Header().Get("Retry-After") == "" {
		w.Header().Set("Retry-After", "1")
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(wire.AppendError(nil, nil, err))
}

// passes reports whether a refusal of this status is over in a while: a drain,
// a catalog that has not come yet, a limit. Who is told when to come back need
// not guess.
func passes(status int) bool {
	return status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests
}
