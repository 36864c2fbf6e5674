// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"time"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/mcpserver/registry"
	"github.com/espalier-dev/espalier/internal/mcpserver/session"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
)

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
		return r.fail(TooManyRequests, tooManyStreams())
	}
	defer done()
	subscription, ok := e.registry.Subscribe()
	if !ok {
		return r.fail(Unavailable, Draining())
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
	// What is known now is what the client may read from here on.
	follow := newFollowing()
	defer follow.close()
	watched := filter.watch(ctx, r.at(e.registry.Snapshot()), follow)
	if stream.Send(filter.acknowledgement(tag, watched)) != nil {
		return
	}
	// A stream does not outlive what opened it.
	var expired <-chan time.Time
	if at := r.caller().Expires; !at.IsZero() {
		timer := time.NewTimer(time.Until(at))
		defer timer.Stop()
		expired = timer.C
	}
	ticker := time.NewTicker(session.KeepAlive)
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
			err = e.tell(ctx, r, stream, tag, filter, watched, follow, subscription.Take())
		case <-ticker.C:
			err = stream.KeepAlive()
		}
		if err != nil {
			return
		}
	}
}

// tell sends what the client wants to hear of changes.
func (e *Engine) tell(ctx context.Context, r *Request, stream Stream, tag []byte, filter filter, watched []watch, follow *following, changes registry.Changes) error {
	for _, n := range []struct {
		due    bool
		method string
	}{
		{changes.Tools && filter.tools, mcp.NotificationToolsChanged},
		{changes.Resources && filter.resources, mcp.NotificationResources},
		{changes.Prompts && filter.prompts, mcp.NotificationPrompts},
	} {
		if n.due {
			if err := stream.Send(notification(n.method, tag, "")); err != nil {
				return err
			}
		}
	}
	if !changes.Content || len(watched) == 0 {
		return nil
	}
	now := r.at(e.registry.Snapshot())
	for i := range watched {
		follow.set(ctx, now, watched[i].uri)
		if !watched[i].moved(ctx, now) {
			continue
		}
		if err := stream.Send(notification(mcp.NotificationUpdated, tag, watched[i].uri)); err != nil {
			return err
		}
	}
	return nil
}

// notification with the subscription's tag; uri is left out when empty.
func notification(method string, tag []byte, uri string) []byte {
	out := append([]byte(`{"jsonrpc":"2.0","method":"`), method...)
	out = append(out, `","params":{"_meta":`...)
	out = append(out, tag...)
	out = append(out, '}')
	if uri != "" {
		out = wire.AppendField(out, "uri", wire.AppendString(nil, uri))
	}
	return append(out, "}}"...)
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
