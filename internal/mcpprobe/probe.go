// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpprobe

import (
	"context"
	"time"
)

func (c *Client) probe(ctx context.Context, t Target) Report {
	if t.Timeout <= 0 {
		t.Timeout = DefaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, t.Timeout)
	defer cancel()
	var r Report
	if t.ReportURL != "" {
		began := time.Now()
		// Before the lists: what they hold is then of the reported catalog or
		// of a newer one, never of an older.
		c.readReport(ctx, t, &r)
		r.Steps = append(r.Steps, StepTiming{Step: StepReport, Duration: time.Since(began)})
		r.Latency = time.Since(began)
	}
	if t.ReportOnly {
		r.Outcome, r.Step, r.HTTPStatus = r.PodOutcome, StepReport, r.PodStatus
		switch r.Outcome {
		case "":
			r.Outcome = InvalidTarget
		case Proved:
			r.Step = StepDone
		}
		return r
	}
	c.exchange(ctx, t, &r)
	return r
}

// exchange talks to the MCP URL. A token that an earlier probe asked for may
// have been revoked since: when it is refused, a new one is tried.
func (c *Client) exchange(ctx context.Context, t Target, r *Report) {
	began := time.Now()
	if token := c.once(ctx, t, r); r.Outcome == AuthRejected && token != "" {
		c.tokens.drop(t.OAuth, token)
		*r = Report{Pod: r.Pod, PodOutcome: r.PodOutcome, PodStatus: r.PodStatus, Steps: r.Steps}
		c.once(ctx, t, r)
	}
	r.Latency = time.Since(began)
}

// once makes one exchange. token is what was shown in it of an earlier probe.
func (c *Client) once(ctx context.Context, t Target, r *Report) (token string) {
	e, f := newExchange(ctx, c, t)
	if f != nil {
		f.into(r)
		return ""
	}
	defer e.close()
	if f := e.run(ctx, r); f != nil {
		if ctx.Err() == context.Canceled {
			f.outcome = Canceled
		}
		f.into(r)
	} else {
		r.Outcome, r.Step = Proved, StepDone
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	r.Steps = append(r.Steps, e.steps...)
	if n := len(e.sessions); n > 0 {
		r.Diagnostics.SessionID = words(e.sessions[n-1].id, e.secrets)
	}
	return e.keptToken
}

// run shakes hands and reads the lists.
func (e *exchange) run(ctx context.Context, r *Report) *failure {
	began := time.Now()
	h, f := e.connect(ctx)
	r.Handshake = time.Since(began)
	if f != nil {
		return f
	}
	r.Transport = h.transport
	r.Era, r.ProtocolVersion, r.Server = h.era, h.version, h.server
	r.Capabilities, r.CatalogDigest = h.capabilities, h.catalogDigest
	r.Instructions = h.instructions
	r.ListChanged, r.TTL = h.listChanged, h.ttl
	if e.keeps(h, r) {
		r.keep(e.target.Kept)
		return nil
	}
	if h.era == EraLegacy {
		if f := e.confirm(ctx, h); f != nil {
			return f
		}
	}
	f = e.lists(ctx, h, r)
	r.ListsMoved = e.moved.Load()
	return f
}

// lists reads the lists that are declared.
func (e *exchange) lists(ctx context.Context, h *handshake, r *Report) *failure {
	var warned warnings
	w := &lister{exchange: e, h: h, warnings: &warned, ttl: h.ttl}
	defer func() {
		r.Warnings, r.WarningsOmitted = warned.sorted()
		r.Truncated, r.TTL = w.truncated, w.ttl
	}()
	if f := e.tools(ctx, w, r); f != nil {
		return f
	}
	f := e.others(ctx, w, r)
	r.ResourceCount, r.PromptCount = r.Resources.Count(), r.Prompts.Count()
	return f
}

// tools reads the list of tools, when they are declared or nothing is.
func (e *exchange) tools(ctx context.Context, w *lister, r *Report) *failure {
	if !w.h.declares(toolsListing.capability) {
		r.Tools.State = ToolsNotDeclared
		return nil
	}
	set := newToolSet(w.warnings, e.secrets)
	f := w.list(ctx, toolsListing, func(entry []byte, page int) bool {
		if e.target.Tool != nil {
			e.target.Tool(entry)
		}
		return set.add(entry, page)
	})
	if f != nil && w.h.capabilities == nil && f.rpc != nil && f.rpc.notFound() {
		r.Tools.State = ToolsNotDeclared
		return nil
	}
	if f != nil {
		return f
	}
	r.Tools = ToolList{State: ToolsListed, Tools: set.sorted()}
	return nil
}

// confirm sends notifications/initialized. Any 2xx acknowledges it, whatever
// the body is.
func (e *exchange) confirm(ctx context.Context, h *handshake) *failure {
	_, f := e.do(ctx, &call{
		step: StepInitialized, method: string(StepInitialized), version: h.version, session: h.session, notify: true,
	})
	return f
}
