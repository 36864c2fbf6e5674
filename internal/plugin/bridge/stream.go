// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/upstream/client"
	"github.com/espalier-dev/espalier/internal/sse"
)

// headerLastEvent names the event after which a stream goes on.
const headerLastEvent = "Last-Event-Id"

// mark is how far a stream was read, and what it said of its next beginning.
type mark struct {
	last  string
	retry time.Duration
}

// events hands on the messages of a stream until enough says so, nil, or it
// ends. at is kept up to date.
func (l *httpLink) events(body io.Reader, at *mark, to func(packet) (enough bool)) error {
	reader := sse.NewReader(body)
	reader.Max, reader.LastID = l.o.MaxBytes, at.last
	return l.eventsOf(reader, at, to)
}

func (l *httpLink) eventsOf(reader *sse.Reader, at *mark, to func(packet) (enough bool)) error {
	for {
		event, err := reader.Next()
		at.last, at.retry = reader.LastID, reader.Retry
		if err != nil {
			return err
		}
		if event.Kind != "" && event.Kind != "message" {
			continue
		}
		p, ok := parse(event.Data)
		if !ok {
			l.o.Log.Warn("The server sent an event that is no message; it is left out")
			continue
		}
		if to(p) {
			return nil
		}
	}
}

// stream hands on an answer that comes as a stream. In the legacy era one that
// ends early is taken up where it ended, if the server numbers its events.
func (l *httpLink) stream(ctx context.Context, response *http.Response, m *message, to take) *fault {
	at := &mark{}
	body := response.Body
	for try := 0; ; try++ {
		err := l.events(body, at, func(p packet) bool {
			one, all := m.settle(p)
			to(p)
			if !one {
				try = 0
			}
			return all
		})
		_ = body.Close()
		switch {
		case err == nil:
			return nil
		case errors.Is(err, sse.ErrTooLarge):
			return tooLarge(l.o.MaxBytes)
		case m.modern != "" || at.last == "" || m.Method == mcp.MethodInitialize:
			return lost(err)
		}
		l.o.Log.Debug("A stream ended before its answer; it is taken up again", "method", m.Method)
		next, f := l.resume(ctx, at, try) //nolint:bodyclose // It is closed when it was read, above.
		if f != nil {
			return f
		}
		body = next.Body
	}
}

// resume takes up a stream of a call. The call was taken by the server, so
// whatever fails leaves it unsure.
func (l *httpLink) resume(ctx context.Context, at *mark, try int) (*http.Response, *fault) {
	patience, cancel := context.WithTimeout(ctx, l.o.Wait)
	defer cancel()
	for ; ; try++ {
		if !pause(patience, max(at.retry, backoff(try))) {
			return nil, lost(context.Cause(patience))
		}
		response, f := l.open(ctx, patience, at.last)
		switch {
		case f == nil && response == nil:
			return nil, lost(errors.New("the server does not take a stream up again"))
		case f == nil:
			return response, nil
		case f.gone:
			f = lost(f)
			f.gone = true
			return nil, f
		case f.kind == refused:
			return nil, lost(f)
		}
	}
}

// open opens a stream by GET; both results are nil where the server has none.
func (l *httpLink) open(ctx, patience context.Context, last string) (*http.Response, *fault) {
	header := http.Header{"Accept": {typeSSE}}
	if last != "" && len(last) <= maxSession {
		header.Set(headerLastEvent, last)
	}
	response, f := l.send(ctx, patience, http.MethodGet, nil, header, true)
	if f != nil {
		return nil, f
	}
	if response.StatusCode/100 == 2 && client.MediaType(response.Header) == typeSSE {
		return response, nil
	}
	defer response.Body.Close()
	switch status := response.StatusCode; {
	case status == http.StatusNotFound || status == http.StatusBadRequest:
		if f := l.refusal(response, &message{}); f.gone || f.kind != refused {
			return nil, f
		}
	case status >= http.StatusInternalServerError || status == http.StatusTooManyRequests || status == http.StatusUnauthorized:
		f := statusFault(status, "", l.o.Credential)
		f.kind = unsure
		return nil, f
	}
	return nil, nil
}

// stand implements link by a GET stream, which is opened again whenever it
// ends.
func (l *httpLink) stand(ctx context.Context, to take) *fault {
	at := &mark{}
	for try := 0; ctx.Err() == nil; try++ {
		if try > 0 && !pause(ctx, max(at.retry, backoff(try-1))) {
			break
		}
		response, f := l.open(ctx, ctx, at.last)
		switch {
		case f != nil && f.gone:
			return f
		case f != nil && over(ctx):
			return nil
		case f != nil:
			l.o.Log.Debug("The server's own stream cannot be opened now", "error", f)
			continue
		case response == nil:
			return nil
		}
		try = 0
		err := l.events(response.Body, at, func(p packet) bool {
			to(p)
			return false
		})
		_ = response.Body.Close()
		if errors.Is(err, sse.ErrTooLarge) {
			l.o.Log.Warn("The server sent a message that is too large; it is left out", "limit", l.o.MaxBytes)
			at.last = ""
		}
	}
	return nil
}

// backoff before a further try, from 0 on.
func backoff(try int) time.Duration {
	return min(200*time.Millisecond<<min(try, 10), 5*time.Second)
}

// pause waits; false when ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
