// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"runtime/debug"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/mcpserver/registry"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
	"github.com/espalier-dev/espalier/internal/tracing"
)

// Outcomes in metrics and logs, beside the reasons of failures.
const (
	outcomeOK      = "ok"
	outcomeError   = "error"         // the tool's own isError
	outcomeInput   = "inputRequired" // the tool asks for more
	outcomeUnknown = "UnknownTool"
)

// costCategory is the key of the metadata by which calls are counted.
const costCategory = "costCategory"

func (e *Engine) callTool(ctx context.Context, r *Request) Reply {
	name, ok := r.Message.Params.Text("name")
	if !ok {
		return r.fail(OK, &wire.Error{Code: mcp.CodeInvalidParams, Message: "name must be a string"})
	}
	tool := r.Tool(ctx, name)
	if tool == nil {
		return e.unknownTool(r, name)
	}
	args, invalid := r.Arguments()
	if invalid != nil {
		return r.fail(OK, invalid)
	}
	raw := r.RawArguments()
	if raw == nil {
		raw = []byte("{}")
	}
	c := &call.Call{Kind: call.Tool, Args: args, RawArgs: raw}
	back := e.passOn(r, c)
	result, failure := e.runTool(ctx, r, tool, c)
	if failure != nil && failure.Reason == call.NotFound { // Withdrawn since the snapshot was taken.
		return back.finish(e.unknownTool(r, name))
	}
	if failure != nil && failure.RPC != nil {
		return back.finish(r.declared(failure.RPC))
	}
	return back.finish(Reply{Body: e.appendCallResult(r, result, failure)})
}

func (e *Engine) runTool(ctx context.Context, r *Request, tool *registry.Tool, c *call.Call) (*call.Result, *call.Error) {
	run := tool.Handler.Call
	if tool.Retrieve {
		run = r.retrieve
	}
	return e.run(ctx, r, &tool.Entry, c, func(ctx context.Context, c *call.Call) (*call.Result, error) { return runValidated(ctx, tool, c, run) })
}

// runEntry runs a call of an entry whose handler's answer stands as it is.
func (e *Engine) runEntry(ctx context.Context, r *Request, entry *registry.Entry, c *call.Call) (*call.Result, *call.Error) {
	return e.run(ctx, r, entry, c, entry.Handler.Call)
}

// run runs a call: limits, middleware, then inner. The failure is NotFound
// when the entry was withdrawn since the snapshot was taken.
func (e *Engine) run(ctx context.Context, r *Request, entry *registry.Entry, c *call.Call, inner call.Func) (*call.Result, *call.Error) {
	// The timer is on the cancelling context itself: a second one for the
	// deadline would double what a call allocates.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	running := entry.Enter(cancel)
	if running == nil {
		return nil, call.Fail(call.NotFound, "the entry was withdrawn")
	}
	defer running.Leave()
	if seconds := r.Snapshot.Config.Limits.CallTimeoutSeconds; seconds > 0 {
		timer := time.AfterFunc(time.Duration(seconds)*time.Second, func() { cancel(call.ErrTimeout) })
		defer timer.Stop()
	}
	c.Tool, c.Metadata, c.Entry, c.Caller = entry.Name, entry.Metadata, entry.Vars, r.caller()
	c.MaxBytes = r.Snapshot.Config.Limits.MaxMessageBytes
	if c.RawArgs == nil {
		c.RawArgs = []byte("{}")
	}
	started := time.Now()
	if e.tracer != nil {
		inner = handling(inner)
	}
	result, err := e.invoke(ctx, r, c, inner)
	failure := e.classify(ctx, c, result, err)
	if failure == nil {
		failure = checkInput(r, result)
	}
	r.seen.called(c, e.note(ctx, r, c, result, failure, time.Since(started)))
	return result, failure
}

// declared answers with the error of the protocol that middleware or a handler
// chose.
func (r *Request) declared(err *call.RPCError) Reply {
	status := OK
	if err.Code == mcp.CodeMissingRequiredClientCapability {
		status = BadRequest
	}
	return r.fail(status, &wire.Error{Code: err.Code, Message: err.Message, Data: err.Data})
}

func (e *Engine) unknownTool(r *Request, name string) Reply {
	e.metrics.Call("", "", outcomeUnknown, 0)
	r.seen.unknown()
	return r.fail(OK, &wire.Error{Code: mcp.CodeInvalidParams, Message: "unknown tool: " + clip(name)})
}

// invoke runs the call through the middleware. A panic is a failed call.
func (e *Engine) invoke(ctx context.Context, r *Request, c *call.Call, inner call.Func) (result *call.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			e.log.ErrorContext(ctx, "Call panicked", c.Kind.String(), c.Tool, "requestId", r.id(), "stack", string(debug.Stack()))
			result, err = nil, call.Fail(call.Internal, "the %s failed", c.Kind)
		}
	}()
	return call.Chain(inner, e.middleware...)(ctx, c)
}

// runValidated validates, calls the handler and checks what it gave.
func runValidated(ctx context.Context, tool *registry.Tool, c *call.Call, run call.Func) (*call.Result, error) {
	if err := tool.Input.Validate(c.Args); err != nil {
		return nil, call.Fail(call.InvalidArguments, "invalid arguments: %s", err.Error())
	}
	tool.Input.Coerce(c.Args)
	result, err := run(ctx, c)
	if err != nil {
		return nil, err
	}
	if tool.Output != nil && !result.IsError && result.Input == nil {
		if result.Structured == nil {
			return nil, call.Fail(call.InvalidResult, "the tool declares an outputSchema but gave no structured content")
		}
		value, err := wire.Decode(result.Structured)
		if err == nil {
			err = tool.Output.Validate(value)
		}
		if err != nil {
			return nil, call.Fail(call.InvalidResult, "the result does not keep to the tool's outputSchema: %s", err.Error())
		}
	}
	return result, nil
}

// classify gives the failure to show, nil when the tool's own answer stands.
func (e *Engine) classify(ctx context.Context, c *call.Call, result *call.Result, err error) *call.Error {
	if err == nil {
		if size := resultSize(result); size > c.MaxBytes {
			return call.Fail(call.ResultTooLarge, "the result is larger than %d bytes", c.MaxBytes)
		}
		return nil
	}
	cause := context.Cause(ctx)
	var failure *call.Error
	var declared *call.RPCError
	switch {
	case errors.Is(cause, call.ErrWithdrawn):
		return call.Fail(call.Withdrawn, "the %s was withdrawn while it ran", c.Kind)
	case errors.Is(cause, call.ErrTimeout):
		return call.Fail(call.CallTimeout, "the call took longer than this server allows")
	case cause != nil:
		return call.Fail(call.Cancelled, "the call was cancelled")
	case errors.As(err, &failure):
		return failure
	case errors.As(err, &declared) && declared.Allowed():
		return &call.Error{Reason: call.DeclaredError, Message: declared.Message, RPC: declared}
	}
	return call.Fail(call.Internal, "the %s failed", c.Kind).Because(err)
}

func resultSize(result *call.Result) int64 {
	size := len(result.Content) + len(result.Structured) + len(result.Extra)
	if result.Input != nil {
		size += len(result.Input.Requests) + len(result.Input.State)
	}
	return int64(size)
}

// note counts and logs a call, and gives its outcome in a word. Arguments,
// results and credentials never reach the log.
func (e *Engine) note(ctx context.Context, r *Request, c *call.Call, result *call.Result, failure *call.Error, took time.Duration) (outcome string) {
	outcome = outcomeOK
	switch {
	case failure != nil:
		outcome = string(failure.Reason)
	case result.IsError:
		outcome = outcomeError
	case result.Input != nil:
		outcome = outcomeInput
	}
	if c.Kind == call.Tool {
		e.metrics.Call(c.Tool, c.Metadata[costCategory], outcome, took)
	} else {
		e.metrics.Entry(c.Kind.String(), c.Tool, outcome)
	}
	level := slog.LevelDebug
	if failure != nil && (failure.Cause != nil || failure.Reason == call.Internal) {
		level = slog.LevelWarn
	}
	if !e.log.Enabled(ctx, level) {
		return outcome
	}
	attrs := []slog.Attr{slog.String(c.Kind.String(), c.Tool), slog.String("outcome", outcome), slog.String("took", took.String()), slog.String("requestId", r.id())}
	if tracing.On(ctx) {
		attrs = append(attrs, slog.String("traceId", trace.SpanContextFromContext(ctx).TraceID().String()))
	}
	if failure != nil && failure.Cause != nil {
		attrs = append(attrs, slog.String("cause", failure.Cause.Error()))
	}
	e.log.LogAttrs(ctx, level, "Call finished", attrs...)
	return outcome
}

// appendCallResult writes the answer of tools/call.
func (e *Engine) appendCallResult(r *Request, result *call.Result, failure *call.Error) []byte {
	if failure == nil && result.Input != nil {
		return appendInput(r, result)
	}
	out := wire.AppendResultHead(r.Out, r.Message.ID)
	out = append(out, '{')
	if r.Era == Modern {
		out = append(out, `"resultType":"complete",`...)
	}
	switch {
	case failure != nil:
		out = append(out, `"content":[{"type":"text","text":`...)
		out = wire.AppendString(out, failure.Message)
		out = append(out, `}],"isError":true`...)
	default:
		out = append(out, `"content":`...)
		if result.Content == nil {
			out = append(out, "[]"...)
		} else {
			out = append(out, result.Content...)
		}
		// Older revisions know only objects there; the text block stays.
		if result.Structured != nil && (r.Era == Modern || wire.IsObject(result.Structured)) {
			out = append(out, `,"structuredContent":`...)
			out = append(out, result.Structured...)
		}
		if result.IsError {
			out = append(out, `,"isError":true`...)
		}
	}
	var own json.RawMessage
	if failure == nil {
		own = result.Meta
		out = appendExtra(out, result)
	}
	out = appendCallMeta(out, r, failure, own)
	return append(out, "}}"...)
}

// appendExtra writes what an upstream has added to a result.
func appendExtra(out []byte, result *call.Result) []byte {
	if len(result.Extra) == 0 {
		return out
	}
	return append(append(out, ','), result.Extra...)
}

// appendCallMeta writes _meta, if there is anything to say in it.
func appendCallMeta(out []byte, r *Request, failure *call.Error, own json.RawMessage) []byte {
	const head = `,"_meta":{`
	start := len(out)
	out = append(out, head...)
	member := func(key string) {
		if len(out) > start+len(head) {
			out = append(out, ',')
		}
		out = append(wire.AppendString(out, key), ':')
	}
	if r.Era == Modern {
		member(mcp.MetaServerInfo)
		out = append(out, r.Snapshot.ServerInfo...)
	}
	if failure != nil {
		member(mcp.MetaReason)
		out = wire.AppendString(out, string(failure.Reason))
	}
	if own != nil {
		object, _ := wire.DecodeObject(own) // What cannot be read is left out.
		for _, field := range object {
			if !reservedMeta(field.Key) {
				member(field.Key)
				out = append(out, field.Raw...)
			}
		}
	}
	if len(out) == start+len(head) {
		return out[:start]
	}
	return append(out, '}')
}
