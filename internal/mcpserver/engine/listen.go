// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"time"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/mcpserver/registry"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
)

// keepAlive is how often a silent stream shows that it lives.
const keepAlive = 15 * time.Second

// listen holds a stream open and tells of changes. It has no call timeout and
// counts among the streams, not among the calls.
func (e *Engine) listen(ctx context.Context, r *Request) Reply {
	filter, invalid := listenFilter(r.Message)
	if invalid != nil {
		return r.fail(OK, invalid)
	}
	done, ok := e.limits.stream()
	if !ok {
		e.metrics.Refused(string(call.StreamLimit))
		return r.fail(TooManyRequests, &wire.Error{
			Code: mcp.CodeTooManyRequests, Message: "too many open streams on this replica", Data: wire.Data(string(call.StreamLimit)),
		})
	}
	defer done()
	subscription, ok := e.registry.Subscribe()
	if !ok {
		return r.fail(Unavailable, &wire.Error{Code: mcp.CodeUnavailable, Message: "the server is shutting down", Data: wire.Data("Draining")})
	}
	defer e.registry.Unsubscribe(subscription)
	if r.Open == nil {
		return r.fail(OK, &wire.Error{Code: mcp.CodeInvalidRequest, Message: "this transport has no streams"})
	}
	stream, err := r.Open()
	if err != nil {
		return Reply{Streamed: true} // The client is gone.
	}
	e.serve(ctx, r, filter, subscription, stream)
	return Reply{Streamed: true}
}

// serve runs the stream until the client leaves, its credential ends or the
// server drains.
func (e *Engine) serve(ctx context.Context, r *Request, filter filter, subscription *registry.Subscription, stream Stream) {
	tag := append([]byte(`{"`+mcp.MetaSubscriptionID+`":`), r.Message.ID...)
	if stream.Send(filter.acknowledgement(tag)) != nil {
		return
	}
	changed := append([]byte(`{"jsonrpc":"2.0","method":"`+mcp.NotificationToolsChanged+`","params":{"_meta":`), tag...)
	changed = append(changed, "}}}"...)
	// A stream does not outlive what opened it.
	var expired <-chan time.Time
	if at := r.caller().Expires; !at.IsZero() {
		timer := time.NewTimer(time.Until(at))
		defer timer.Stop()
		expired = timer.C
	}
	ticker := time.NewTicker(keepAlive)
	defer ticker.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case <-expired:
			_ = stream.Send(e.listenResult(r, tag))
			return
		case <-subscription.Closed:
			_ = stream.Send(e.listenResult(r, tag))
			return
		case <-subscription.Changed:
			if filter.tools {
				err = stream.Send(changed)
			}
		case <-ticker.C:
			err = stream.KeepAlive()
		}
		if err != nil {
			return
		}
	}
}

// listenResult ends a stream in good order.
func (e *Engine) listenResult(r *Request, tag []byte) []byte {
	out := wire.AppendResultHead(nil, r.Message.ID)
	out = append(out, `{"resultType":"complete","_meta":`...)
	out = append(out, tag...)
	out = append(out, `,"`+mcp.MetaServerInfo+`":`...)
	out = append(out, r.Snapshot.ServerInfo...)
	return append(out, "}}}"...)
}

// filter is what a client wants to hear of and this server tells.
type filter struct {
	tools bool
}

func listenFilter(m *wire.Message) (filter, *wire.Error) {
	raw := m.Params.Get("notifications")
	wanted, err := wire.DecodeObject(raw)
	if err != nil {
		return filter{}, &wire.Error{Code: mcp.CodeInvalidParams, Message: "notifications must be an object"}
	}
	return filter{tools: string(wanted.Get("toolsListChanged")) == "true"}, nil
}

func (f filter) acknowledgement(tag []byte) []byte {
	out := []byte(`{"jsonrpc":"2.0","method":"` + mcp.NotificationAcknowledged + `","params":{"_meta":`)
	out = append(out, tag...)
	out = append(out, `},"notifications":{`...)
	if f.tools {
		out = append(out, `"toolsListChanged":true`...)
	}
	return append(out, "}}}"...)
}
