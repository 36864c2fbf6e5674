// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"log/slog"
	"strings"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/access"
	"github.com/espalier-dev/espalier/internal/mcpserver/auth"
	"github.com/espalier-dev/espalier/internal/mcpserver/principal"
	"github.com/espalier-dev/espalier/internal/mcpserver/registry"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
)

// caller who makes the request.
func (r *Request) caller() *principal.Principal {
	if r.Caller == nil {
		return principal.Nobody()
	}
	return r.Caller
}

// Visible reports whether the caller may see an entry. What is not visible
// does not exist for the caller, on no path.
func (r *Request) Visible(ctx context.Context, e access.Entry) bool {
	if r.Snapshot.Access.None() {
		return true
	}
	if r.view == nil {
		r.view = r.Snapshot.Access.View(r.caller())
	}
	return r.view.Allows(ctx, e)
}

// choice gives the test of what the caller may see, nil for all.
func choice[E registry.Listed](ctx context.Context, r *Request, entryOf func(E) access.Entry) func(E) bool {
	if r.Snapshot.Access.None() && !r.Snapshot.Chooses() {
		return nil
	}
	return func(e E) bool { return r.served(ctx, registry.WhenOf(e)) && r.Visible(ctx, entryOf(e)) }
}

// served reports whether the upstream of an entry serves the caller. Each
// expression is asked once for a request.
func (r *Request) served(ctx context.Context, w *registry.When) bool {
	if w == nil {
		return true
	}
	if serves, known := r.chosen[w]; known {
		return serves
	}
	serves, first, err := w.Serves(ctx, r.caller())
	if err != nil && r.Snapshot.OnWhenFailure != nil {
		r.Snapshot.OnWhenFailure(w, first, err)
	}
	if r.chosen == nil {
		r.chosen = map[*registry.When]bool{}
	}
	r.chosen[w] = serves
	return serves
}

// Tool gives a tool that the caller may see, nil when there is none of that
// name.
func (r *Request) Tool(ctx context.Context, name string) *registry.Tool {
	return r.Snapshot.Tool(name, choice(ctx, r, (*registry.Tool).AccessEntry))
}

// prompt gives a prompt that the caller may see, nil when there is none of
// that name.
func (r *Request) prompt(ctx context.Context, name string) *registry.Prompt {
	return r.Snapshot.Prompt(name, choice(ctx, r, (*registry.Prompt).AccessEntry))
}

// template gives a template of resources that the caller may see, nil when
// there is none of that text.
func (r *Request) template(ctx context.Context, text string) *registry.Resource {
	return r.Snapshot.Template(text, choice(ctx, r, (*registry.Resource).AccessEntry))
}

// resource gives what the caller reads at uri: the resource of that URI, else
// the first template that makes it, with the values of its variables, else an
// upstream that may know it; nil when there is nothing that they may see.
func (r *Request) resource(ctx context.Context, uri string) (*registry.Resource, map[string]string) {
	return r.Snapshot.Resource(uri, r.readable(ctx, uri))
}

func (r *Request) readable(ctx context.Context, uri string) func(*registry.Resource) bool {
	return choice(ctx, r, func(found *registry.Resource) access.Entry { return found.ReadEntry(uri) })
}

// sources gives what is asked for uri, one after the other, when resource
// serves it: of a listed or declared one nothing else.
func (r *Request) sources(ctx context.Context, resource *registry.Resource, uri string) []*registry.Resource {
	if !resource.Foreign || resource.Name == uri {
		return []*registry.Resource{resource}
	}
	return r.Snapshot.Readers(uri, r.readable(ctx, uri))
}

// at is the same caller before another snapshot.
func (r *Request) at(snapshot *registry.Snapshot) *Request {
	return &Request{Snapshot: snapshot, Caller: r.Caller}
}

// admit refuses who may not send this message at all: an unknown caller where
// the catalog wants known ones (a transport that forgot to ask must not open
// the server), and the operator's probe outside of handshakes and lists.
func (e *Engine) admit(r *Request) (Reply, bool) {
	switch {
	case r.Caller == nil && r.Snapshot.Config.Auth != nil:
		e.metrics.Refused(auth.ReasonAuthRequired)
		r.seen.refused(auth.ReasonAuthRequired)
		return r.fail(Unauthorized, &wire.Error{
			Code: mcp.CodeUnauthorized, Message: "this server wants a credential", Data: wire.Data(auth.ReasonAuthRequired),
		}), false
	case r.caller().Kind == principal.Probe && !probeMay(r.Message.Method):
		e.metrics.Refused(reasonProbe)
		r.seen.refused(reasonProbe)
		return r.fail(Forbidden, &wire.Error{
			Code: mcp.CodeForbidden, Message: "the operator's probe may read lists only", Data: wire.Data(reasonProbe),
		}), false
	}
	return Reply{}, true
}

const reasonProbe = "ProbeMayList"

// probeMay: the probe looks at what there is and touches nothing.
func probeMay(method string) bool {
	switch method {
	case mcp.MethodDiscover, mcp.MethodInitialize, mcp.MethodPing:
		return true
	}
	return strings.HasSuffix(method, "/list")
}

// ruleFailed counts an access rule that could not be evaluated, and logs the
// first time of each rule of a catalog.
func (e *Engine) ruleFailed(f access.Failure) {
	e.metrics.RuleFailed(ruleAccess)
	level := slog.LevelDebug
	if f.First {
		level = slog.LevelWarn
	}
	e.log.Log(context.Background(), level, "Access rule cannot be evaluated and hides what it matches",
		"rule", f.Rule, "kind", string(f.Entry.Kind), "entry", f.Entry.Name, "error", f.Err.Error())
}

// OnWhenFailure counts an upstream's choice of callers that could not be
// evaluated, and logs the first time of each of a catalog.
func (e *Engine) OnWhenFailure(w *registry.When, first bool, err error) {
	e.metrics.RuleFailed(ruleUpstreams)
	level := slog.LevelDebug
	if first {
		level = slog.LevelWarn
	}
	e.log.Log(context.Background(), level, "An upstream's when cannot be evaluated and serves nobody", "when", w.Text(), "error", err.Error())
}

// Sorts of rules, in metrics.
const (
	ruleUpstreams = "upstreams"
	ruleAccess    = "access"
	ruleLimits    = "limits"
)
