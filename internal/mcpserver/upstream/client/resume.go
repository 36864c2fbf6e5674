// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/espalier-dev/espalier/internal/sse"
)

const (
	// maxResumes is how often in a row a stream is resumed that brings nothing.
	maxResumes = 5
	// resumePause is how long a stream is left alone that does not say for how
	// long, maxPause the longest that it may wish for.
	resumePause = time.Second
	maxPause    = 30 * time.Second

	headerLastEventID = "Last-Event-ID"
)

// fromStream reads a stream until the answer to m. A server may end one in
// good order before it has the answer and go on in another, which begins after
// the last event that has an id. One that breaks is not taken up again: what is
// lost fails at once.
func (c *httpCarrier) fromStream(ctx context.Context, response *http.Response, m *message) ([]byte, error) {
	events := sse.NewReader(response.Body)
	events.Max = c.options.MaxBytes
	for idle := 0; ; {
		last := events.LastID
		result, err := c.untilAnswer(events, response.StatusCode, m)
		var known *Error
		if err == nil || events.LastID == "" || !errors.As(err, &known) || known.Reason != ConnectionLost || !errors.Is(known.Cause, io.EOF) {
			return result, err
		}
		if idle++; events.LastID != last {
			idle = 0
		}
		if r, _ := c.state(); r.modern || idle >= maxResumes {
			return nil, err
		}
		next, resumed := c.resume(ctx, events)
		if resumed != nil {
			if ctx.Err() != nil {
				return nil, resumed
			}
			return nil, err
		}
		defer next.Body.Close()
		again := sse.NewReader(next.Body)
		again.Max, again.LastID, again.Retry = events.Max, events.LastID, events.Retry
		events, response = again, next
	}
}

// untilAnswer reads events until the answer to m.
func (c *httpCarrier) untilAnswer(events *sse.Reader, status int, m *message) ([]byte, error) {
	for {
		event, err := events.Next()
		switch {
		case errors.Is(err, sse.ErrTooLarge):
			return nil, &Error{Reason: TooLarge, Status: status}
		case err != nil:
			return nil, &Error{Reason: ConnectionLost, Status: status, Cause: err}
		case event.Kind != "" && event.Kind != "message":
			continue
		}
		for _, in := range parseAll(event.Data) {
			if in.answers(m.id) {
				return in.outcome(status)
			}
			c.takeFor(m, in)
		}
	}
}

// resume opens the stream that goes on after the last event of events, when
// that wants it.
func (c *httpCarrier) resume(ctx context.Context, events *sse.Reader) (*http.Response, error) {
	pause := events.Retry
	if pause == 0 {
		pause = resumePause
	}
	timer := time.NewTimer(min(pause, maxPause))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	response, err := c.send(ctx, http.MethodGet, nil, &message{lastEvent: events.LastID})
	if err != nil {
		return nil, err
	}
	if response.StatusCode/100 != 2 || MediaType(response.Header) != typeSSE {
		_ = response.Body.Close()
		return nil, &Error{Reason: ConnectionLost, Status: response.StatusCode}
	}
	return response, nil
}
