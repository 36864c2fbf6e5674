// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpprobe

import (
	"reflect"

	"github.com/espalier-dev/espalier/internal/mcp"
)

// keeps reports whether the lists that an earlier probe read may stand for
// those of now: the caller offers them, and all that the server and its pod
// say of themselves is what it was then. Only the modern era gives lists a
// time for which they hold.
func (e *exchange) keeps(h *handshake, r *Report) bool {
	k := e.target.Kept
	return k != nil && k.Outcome == Proved && h.era == EraModern && (h.ttl == nil || *h.ttl > 0) &&
		!e.moved.Load() && reflect.DeepEqual(selfOf(k), selfOf(r))
}

// selfOf is the part of r that the server and its pod say of themselves.
func selfOf(r *Report) Report {
	return Report{
		Era: r.Era, Transport: r.Transport, ProtocolVersion: r.ProtocolVersion, Server: r.Server,
		Capabilities: r.Capabilities, ListChanged: r.ListChanged, CatalogDigest: r.CatalogDigest, Instructions: r.Instructions,
		PodOutcome: r.PodOutcome, Pod: r.Pod,
	}
}

// keep takes the lists over from k.
func (r *Report) keep(k *Report) {
	r.ListsKept = true
	r.Tools, r.Resources, r.Templates, r.Prompts = k.Tools, k.Resources, k.Templates, k.Prompts
	r.ResourceCount, r.PromptCount = k.ResourceCount, k.PromptCount
	r.Truncated, r.Warnings, r.WarningsOmitted = k.Truncated, k.Warnings, k.WarningsOmitted
	r.TTL = k.TTL
}

// heard takes in a notification of the server. Nobody subscribed to any, but
// streams bring them beside answers.
func (e *exchange) heard(m message) {
	switch m.method {
	case mcp.NotificationToolsChanged, mcp.NotificationResources, mcp.NotificationPrompts:
		e.moved.Store(true)
	}
}
