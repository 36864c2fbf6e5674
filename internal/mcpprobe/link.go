// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpprobe

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
)

// Transport is how an endpoint is spoken to. The words are those of the API.
type Transport string

const (
	// TransportAuto is streamable HTTP, and HTTP with SSE where that is refused
	// as servers do that do not know it.
	TransportAuto Transport = ""
	// TransportStreamableHTTP and nothing else.
	TransportStreamableHTTP Transport = "StreamableHTTP"
	// TransportSSE is HTTP with SSE, of revision 2024-11-05.
	TransportSSE Transport = "SSE"
	// TransportWebSocket is one message per text frame.
	TransportWebSocket Transport = "WebSocket"
)

// link is a connection that brings all that the server says: the stream of
// HTTP with SSE, or a WebSocket.
type link struct {
	*exchange
	// opened is the answer that opened it.
	opened *http.Response
	// write sends one message; it is called by several goroutines.
	write func(ctx context.Context, c *call, body []byte) *failure
	// close ends the connection.
	close func()

	mu      sync.Mutex
	waiting map[int64]chan message
	// end is why nothing comes any more; flaw is what came beside answers.
	end  *failure
	flaw Flaw
	done chan struct{}
}

func (e *exchange) newLink(opened *http.Response) *link {
	return &link{exchange: e, opened: opened, waiting: map[int64]chan message{}, done: make(chan struct{})}
}

// read takes messages until there are no more. next gives their bytes.
func (l *link) read(next func() ([]byte, *failure)) {
	defer close(l.done)
	for {
		data, f := next()
		if f != nil {
			l.mu.Lock()
			l.end = f
			l.mu.Unlock()
			return
		}
		messages, flaw := parseMessages(data)
		if flaw != "" && flaw != FlawEmpty {
			l.odd(flaw)
		}
		for _, m := range messages {
			l.take(m)
		}
	}
}

func (l *link) odd(flaw Flaw) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flaw = flaw
}

func (l *link) take(m message) {
	switch {
	case m.isRequest():
		l.reply(m)
	case m.isNotification():
		l.heard(m)
	case !l.deliver(m):
		l.odd(FlawWrongID)
	}
}

// deliver hands an answer to who waits for it.
func (l *link) deliver(m message) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := false
	for id, waiting := range l.waiting {
		if m.answers(id) {
			waiting <- m // It has room for one.
			delete(l.waiting, id)
			found = true
		}
	}
	return found
}

// reply answers a request of the server. A modern server asks nothing, but
// which era it is may not be known yet.
func (l *link) reply(m message) {
	r, ok := replyTo(m)
	if !ok || int(l.replies.Add(1)) > l.bounds.Replies {
		return
	}
	body, err := json.Marshal(r)
	if err != nil {
		return
	}
	l.background.Go(func() {
		ctx, cancel := context.WithTimeout(l.life, l.bounds.EndTime)
		defer cancel()
		l.write(ctx, &call{step: StepInitialize}, body)
	})
}

// do makes a call on the link.
func (l *link) do(ctx context.Context, c *call) (answer, *failure) {
	id := int64(0)
	if !c.notify {
		id = l.ids.Add(1)
	}
	body, err := json.Marshal(request{JSONRPC: "2.0", ID: id, Method: c.method, Params: l.params(c)})
	if err != nil {
		return answer{}, &failure{outcome: InvalidTarget, step: c.step}
	}
	c.at.Store(int32(phaseConnected))
	waiting := make(chan message, 1)
	if !c.notify {
		l.mu.Lock()
		l.waiting[id] = waiting
		l.mu.Unlock()
		defer func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			delete(l.waiting, id)
		}()
	}
	if f := l.write(ctx, c, body); f != nil || c.notify {
		return answer{}, f
	}
	j := &judge{exchange: l.exchange, call: c, id: id, resp: l.opened, cancel: func() {}}
	select {
	case m := <-waiting:
		result, f := j.fromResponse(m)
		return answer{result: result}, f
	case <-ctx.Done():
		return answer{}, l.late(ctx, c.step)
	case <-l.done:
	}
	select {
	case m := <-waiting: // It came just before the end.
		result, f := j.fromResponse(m)
		return answer{result: result}, f
	default:
	}
	return answer{}, l.over(j)
}

// late is the failure when the time is over.
func (l *link) late(ctx context.Context, step Step) *failure {
	f := &failure{outcome: Timeout, step: step}
	if ctx.Err() == context.Canceled {
		f.outcome = Canceled
	}
	return f
}

// over is the failure when the connection ended before the answer.
func (l *link) over(j *judge) *failure {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.end.outcome == StreamEnded && l.flaw != "" {
		return j.fail(NotMCP, l.flaw, "")
	}
	f := *l.end
	f.step, f.status = j.call.step, j.resp.StatusCode
	return &f
}
