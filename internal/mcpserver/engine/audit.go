// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"time"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/audit"
	"github.com/espalier-dev/espalier/internal/mcpserver/call"
)

// Audit has a line written for each call. It is called before the first of
// them.
func (e *Engine) Audit(log *audit.Log) { e.audit = log }

// NewRequestID gives an id by which a request is found in logs. It is no
// secret.
func NewRequestID() string {
	var id [16]byte
	binary.LittleEndian.PutUint64(id[:], rand.Uint64())  //nolint:gosec // It is no secret.
	binary.LittleEndian.PutUint64(id[8:], rand.Uint64()) //nolint:gosec // It is no secret.
	return hex.EncodeToString(id[:])
}

// id of the request in logs. One whose transport gave it none gets it now.
func (r *Request) id() string {
	if r.ID == "" {
		r.ID = NewRequestID()
	}
	return r.ID
}

// outcomeRefused is that of a request which was refused before it was a call.
const outcomeRefused = "Refused"

// record writes the line of a call.
func (e *Engine) record(r *Request, began time.Time) {
	s, caller := r.seen, r.caller()
	line := &audit.Line{
		Audit: "call", Time: began.UTC(), RequestID: r.id(), Server: r.Snapshot.Config.Server.Name,
		Principal: audit.Principal{Kind: string(caller.Kind), Subject: caller.Subject},
		Method:    r.Message.Method, Outcome: s.outcome, Code: s.code, DurationSeconds: time.Since(began).Seconds(),
		CostCategory: s.metadata[costCategory], Upstream: s.upstream,
	}
	if s.span.IsValid() {
		line.TraceID = s.span.TraceID().String()
	}
	if s.outcome == "" {
		line.Outcome = outcomeOK
		if s.code != 0 {
			line.Outcome = outcomeRefused
		}
	}
	switch {
	case s.entry == "":
		line.Asked, _ = r.Message.Params.Text("name")
		line.Asked = clip(line.Asked)
	case s.kind == call.Tool:
		line.Tool = s.entry
	case s.kind == call.Prompt:
		line.Prompt = s.entry
	case s.kind == call.Resource:
		line.Resource = s.entry
	default: // Of a completion the entry is either.
		line.Prompt, line.Resource = completed(r, s.entry)
	}
	if e.audit.Params {
		line.SetParams(r.auditedParams())
	}
	e.audit.Write(line)
}

// completed tells whether the entry that is completed is a prompt or a
// resource.
func completed(r *Request, entry string) (prompt, resource string) {
	if r.Snapshot.HasPrompt(entry) {
		return entry, ""
	}
	return "", entry
}

// auditedParams are what a caller gave: the arguments, or what is read or
// completed.
func (r *Request) auditedParams() []byte {
	switch r.Message.Method {
	case mcp.MethodResourcesRead:
		return r.Message.Params.Get("uri")
	case mcp.MethodComplete:
		return r.Message.Params.Get("argument")
	}
	return r.RawArguments()
}
