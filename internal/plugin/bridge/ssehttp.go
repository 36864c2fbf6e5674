// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/sse"
)

// sseLink speaks HTTP with SSE, the transport of revision 2024-11-05: one long
// stream brings all that the server says, and its first event says where
// messages are posted to.
type sseLink struct {
	*duplexLink
	posts *httpLink
}

// agree implements link.
func (l *sseLink) agree(version string) { l.posts.agree(version) }

// openSSE opens the stream, which outlives ctx, and awaits its first event.
func openSSE(ctx context.Context, o *Options, way *Way, others take) (link, *fault) {
	gets := newHTTP(o, way, newMirror())
	life, cut := context.WithCancel(context.WithoutCancel(ctx))
	release := context.AfterFunc(ctx, cut)
	response, f := gets.send(life, ctx, http.MethodGet, nil, http.Header{"Accept": {typeSSE}}, false) //nolint:bodyclose // Who reads it closes it.
	if f != nil {
		release()
		cut()
		return nil, f
	}
	events := sse.NewReader(response.Body)
	events.Max = o.MaxBytes
	target, f := "", statusFault(response.StatusCode, "", o.Credential)
	if response.StatusCode/100 == 2 {
		target, f = endpoint(way.URL, events)
	}
	if !release() && f == nil {
		f = noReplica(errNoConnection)
	}
	if f != nil {
		cut()
		_ = response.Body.Close()
		return nil, f
	}
	posts := newHTTP(o, &Way{URL: target, HTTP: way.HTTP}, newMirror())
	l := &sseLink{posts: posts, duplexLink: &duplexLink{
		others: others, ended: make(chan struct{}), waiting: map[string]*waiting{}, cut: cut, send: posts.say,
	}}
	go func() {
		defer close(l.ended)
		defer cut()
		defer response.Body.Close()
		_ = gets.eventsOf(events, &mark{}, func(p packet) bool {
			l.take(p)
			return false
		})
	}()
	return l, nil
}

// endpoint reads where messages go: to the same origin, or nowhere.
func endpoint(at string, events *sse.Reader) (string, *fault) {
	event, err := events.Next()
	if err != nil {
		return "", lost(err)
	}
	base, err := url.Parse(at)
	if err != nil || event.Kind != "endpoint" {
		return "", notMCP("a stream that does not begin with an endpoint")
	}
	target, err := base.Parse(strings.TrimSpace(string(event.Data)))
	if err != nil || target.Scheme != base.Scheme || !strings.EqualFold(target.Host, base.Host) || target.User != nil {
		return "", &fault{kind: refused, code: mcp.CodeInternalError, reason: "Redirected", text: "the MCP server names an endpoint at another place"}
	}
	return target.String(), nil
}
