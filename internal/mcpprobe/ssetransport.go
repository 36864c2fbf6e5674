// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpprobe

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/internal/sse"
)

// openSSE opens the stream of HTTP with SSE. It lives as long as ctx does.
func (e *exchange) openSSE(ctx context.Context) *failure {
	began := time.Now()
	defer func() { e.took(StepStream, began) }()
	c := &call{step: StepStream}
	streamCtx, cancel := context.WithCancel(ctx)
	header := e.header.Clone()
	header.Set("Accept", typeSSE)
	header.Del("Content-Type")
	resp, f := e.send(streamCtx, c.step, http.MethodGet, nil, header, &c.at) //nolint:bodyclose // The link closes it.
	if f != nil {
		cancel()
		return f
	}
	j := &judge{exchange: e, call: c, resp: resp, cancel: cancel}
	events, f := j.events(streamCtx)
	var posts *url.URL
	if f == nil {
		posts, f = j.endpoint(streamCtx, events)
	}
	if f != nil {
		cancel()
		resp.Body.Close()
		return f
	}
	e.setURL(posts)
	l := e.newLink(resp)
	l.write = l.post
	l.close = func() {
		cancel()
		resp.Body.Close()
		<-l.done
	}
	go l.read(func() ([]byte, *failure) {
		for {
			ev, f := j.event(streamCtx, events)
			if f != nil || ev.Kind == "" || ev.Kind == "message" {
				return ev.Data, f
			}
		}
	})
	e.link = l
	return nil
}

// events checks the answer to the GET.
func (j *judge) events(ctx context.Context) (*sse.Reader, *failure) {
	if j.resp.StatusCode/100 != 2 {
		return nil, j.refusal(ctx)
	}
	if mediaTypeOf(j.resp.Header) != typeSSE {
		return nil, j.fail(NotMCP, FlawMediaType, j.text(ctx))
	}
	body, err := openBody(ctx, j.resp, j.bounds.TotalBytes, j.total)
	if err != nil {
		return nil, j.broken(ctx, err)
	}
	events := sse.NewReader(body)
	events.Max = j.bounds.BodyBytes
	return events, nil
}

// event gives the next one.
func (j *judge) event(ctx context.Context, events *sse.Reader) (sse.Event, *failure) {
	ev, err := events.Next()
	switch {
	case err == nil:
		return ev, nil
	case errors.Is(err, io.EOF):
		return ev, j.fail(StreamEnded, "", "")
	case errors.Is(err, sse.ErrTooLarge):
		f := j.fail(ResponseTooLarge, "", "")
		f.limit = j.bounds.BodyBytes
		return ev, f
	}
	return ev, j.broken(ctx, err)
}

// endpoint reads where messages are posted to: it must be of the same origin,
// or credentials would be carried away.
func (j *judge) endpoint(ctx context.Context, events *sse.Reader) (*url.URL, *failure) {
	ev, f := j.event(ctx, events)
	if f != nil {
		return nil, f
	}
	from := j.currentURL()
	to, err := from.Parse(strings.TrimSpace(string(ev.Data)))
	if ev.Kind != "endpoint" || err != nil {
		return nil, j.fail(NotMCP, FlawMissingFields, "")
	}
	if to.Scheme != from.Scheme || to.User != nil || !strings.EqualFold(to.Hostname(), from.Hostname()) || portOf(to) != portOf(from) {
		return nil, j.fail(Redirected, "", "")
	}
	to.Fragment = ""
	return to, nil
}

// post sends one message. Any 2xx takes it, whatever the body is.
func (l *link) post(ctx context.Context, c *call, body []byte) *failure {
	postCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	resp, f := l.send(postCtx, c.step, http.MethodPost, body, l.headers(c), &c.at)
	if f != nil {
		return f
	}
	defer closeBody(resp, cancel)
	if resp.StatusCode/100 == 2 {
		return nil
	}
	j := &judge{exchange: l.exchange, call: c, resp: resp, cancel: cancel}
	return j.refusal(postCtx)
}
