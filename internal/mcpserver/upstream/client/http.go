// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/sse"
)

const (
	typeJSON = "application/json"
	typeSSE  = "text/event-stream"
	// maxRedirects within the origin.
	maxRedirects = 3
	// maxSession is the longest session id, in bytes.
	maxSession = 1024
	// behind is how long a message that nobody awaits may take, and
	// maxBehind how many of them run at once.
	behind    = 5 * time.Second
	maxBehind = 16
	// maxRefusal is how much is read of an answer that only refuses.
	maxRefusal = 64 << 10
)

// httpCarrier speaks streamable HTTP.
type httpCarrier struct {
	options *Options
	client  *http.Client
	// hear takes what the server says without being asked, asks what it asks.
	hear func(incoming)
	asks *asks

	// life ends with the session.
	life context.Context //nolint:containedctx // what runs behind outlives the call that began it
	stop context.CancelFunc
	work sync.WaitGroup
	slot chan struct{}

	mu       sync.Mutex
	revision revision
	session  string
	// posts is where messages go.
	posts string
}

func newHTTP(options *Options, hear func(incoming), asks *asks) *httpCarrier {
	c := &httpCarrier{options: options, hear: hear, asks: asks, slot: make(chan struct{}, maxBehind), posts: options.URL}
	c.life, c.stop = context.WithCancel(context.Background())
	own := *options.HTTP
	own.CheckRedirect = SameOriginOnly
	// Connections of its own: one that leads to a peer that went bad must not
	// outlive the session and fail the next one, too.
	if pool, ok := own.Transport.(*http.Transport); ok {
		own.Transport = pool.Clone()
	}
	c.client = &own
	return c
}

// SameOriginOnly is a policy of redirects. It follows what keeps method and
// origin: any other redirect would carry a credential away or turn the request
// into a GET.
func SameOriginOnly(request *http.Request, via []*http.Request) error {
	first := via[0]
	if len(via) > maxRedirects || request.Method != first.Method || request.URL.Scheme != first.URL.Scheme ||
		!strings.EqualFold(request.URL.Host, first.URL.Host) || request.URL.User != nil {
		return http.ErrUseLastResponse
	}
	return nil
}

func (c *httpCarrier) agree(r revision) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.revision = r
}

func (c *httpCarrier) state() (revision, string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.revision, c.session
}

// send makes one HTTP request. The caller closes the body.
func (c *httpCarrier) send(ctx context.Context, method string, body []byte, m *message) (*http.Response, error) {
	target := c.options.URL
	if method == http.MethodPost {
		c.mu.Lock()
		target = c.posts
		c.mu.Unlock()
	}
	request, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(body))
	if err != nil {
		return nil, &Error{Reason: Failed, Cause: err}
	}
	r, session := c.state()
	request.Header = c.options.Header.Clone()
	if request.Header == nil {
		request.Header = http.Header{}
	}
	request.Header.Set("User-Agent", "espalier/"+c.options.Version)
	request.Header.Set("Accept", typeJSON+", "+typeSSE)
	switch method {
	case http.MethodPost:
		request.Header.Set("Content-Type", typeJSON)
	case http.MethodGet:
		request.Header.Set("Accept", typeSSE)
	}
	m.headers(r, request.Header)
	if session != "" {
		request.Header.Set(mcp.HeaderSessionID, session)
	}
	response, err := c.client.Do(request)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		var wrapped *url.Error // It holds the whole URL, query included.
		if errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		return nil, networkError(err)
	}
	return response, nil
}

// request implements carrier.
func (c *httpCarrier) request(ctx context.Context, m *message) (result []byte, err error) {
	r, _ := c.state()
	ctx, cancel := c.during(ctx)
	defer cancel()
	defer func() {
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
			c.cancelled(r, m)
		}
	}()
	response, err := c.send(ctx, http.MethodPost, m.encode(r, c.options.Version), m)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode/100 != 2 {
		return nil, c.refusal(response, m)
	}
	if m.method == mcp.MethodInitialize {
		c.open(response.Header)
	}
	switch MediaType(response.Header) {
	case typeJSON:
		return c.fromJSON(response, m)
	case typeSSE:
		return c.fromStream(ctx, response, m)
	}
	return nil, &Error{Reason: NotMCP, Status: response.StatusCode}
}

// during gives a context that ends with the session too: closing it aborts what
// is pending.
func (c *httpCarrier) during(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	release := context.AfterFunc(c.life, func() { cancel(&Error{Reason: ConnectionLost}) })
	return ctx, func() {
		release()
		cancel(nil)
	}
}

// cancelled tells a legacy server that nobody waits for the answer any more;
// to a modern one the closed connection says so.
func (c *httpCarrier) cancelled(r revision, m *message) {
	if r.modern || r.version == "" || m.method == mcp.MethodInitialize {
		return
	}
	note := cancelNote(m.id)
	c.behind(func(ctx context.Context) { _ = c.notify(ctx, note) })
}

// behind runs f after the call that began it; when too much runs so already
// it is left out.
func (c *httpCarrier) behind(f func(ctx context.Context)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.life.Err() != nil {
		return
	}
	select {
	case c.slot <- struct{}{}:
	default:
		return
	}
	c.work.Go(func() {
		defer func() { <-c.slot }()
		ctx, cancel := context.WithTimeout(c.life, behind)
		defer cancel()
		f(ctx)
	})
}

func (c *httpCarrier) open(header http.Header) {
	id := header.Get(mcp.HeaderSessionID)
	if len(id) > maxSession || strings.IndexFunc(id, func(r rune) bool { return r < 0x21 || r > 0x7e }) >= 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.session = id
}

// read reads a body up to limit.
func (c *httpCarrier) read(response *http.Response, limit int64) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(response.Body, limit+1))
	if err != nil {
		return nil, networkError(err)
	}
	if int64(len(raw)) > limit {
		return nil, &Error{Reason: TooLarge, Status: response.StatusCode}
	}
	return raw, nil
}

func (c *httpCarrier) fromJSON(response *http.Response, m *message) ([]byte, error) {
	raw, err := c.read(response, c.options.MaxBytes)
	if err != nil {
		return nil, err
	}
	var result []byte
	err = &Error{Reason: NotMCP, Status: response.StatusCode}
	for _, in := range parseAll(raw) {
		if in.answers(m.id) {
			result, err = in.outcome(response.StatusCode)
			continue
		}
		c.takeFor(m, in)
	}
	return result, err
}

// takeFor deals with what came with the answer to m.
func (c *httpCarrier) takeFor(m *message, in incoming) {
	if !in.isNotification() || m.hear == nil || !m.hear(in) {
		c.take(in)
	}
}

// take deals with what is no answer to us.
func (c *httpCarrier) take(in incoming) {
	switch {
	case in.isRequest():
		if r, _ := c.state(); r.modern {
			return // A modern server asks nothing.
		}
		c.asks.take(in, func(body []byte) {
			ctx, cancel := context.WithTimeout(c.life, behind)
			defer cancel()
			if response, err := c.send(ctx, http.MethodPost, body, &message{}); err == nil {
				_ = response.Body.Close()
			}
		})
	case in.isNotification():
		c.hear(in)
	}
}

// refusal puts an answer without success into an error.
func (c *httpCarrier) refusal(response *http.Response, m *message) error {
	status := response.StatusCode
	_, session := c.state()
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		if c.options.Credential {
			return &Error{Reason: AuthRejected, Status: status}
		}
		return &Error{Reason: AuthRequired, Status: status}
	case status == http.StatusNotFound && session != "":
		return &Error{Reason: SessionLost, Status: status}
	case status/100 == 3:
		return &Error{Reason: Redirected, Status: status}
	}
	if raw, err := c.read(response, maxRefusal); err == nil {
		for _, in := range parseAll(raw) {
			if in.failure != nil && (in.answers(m.id) || in.id == nil || string(in.id) == "null") {
				return rpcError(in.failure, status)
			}
		}
	}
	return &Error{Reason: UnexpectedStatus, Status: status}
}

// notify implements carrier.
func (c *httpCarrier) notify(ctx context.Context, m *message) error {
	r, _ := c.state()
	response, err := c.send(ctx, http.MethodPost, m.encode(r, c.options.Version), m)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode/100 != 2 {
		return c.refusal(response, m)
	}
	return nil
}

// stream implements carrier by a GET. Any refusal means that none is offered.
func (c *httpCarrier) stream(ctx context.Context, standing func()) error {
	response, err := c.send(ctx, http.MethodGet, nil, &message{})
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode/100 != 2 || MediaType(response.Header) != typeSSE {
		return errNotOffered
	}
	standing()
	events := sse.NewReader(response.Body)
	events.Max = c.options.MaxBytes
	for {
		event, err := events.Next()
		if err != nil {
			return networkError(err)
		}
		if event.Kind != "" && event.Kind != "message" {
			continue
		}
		for _, in := range parseAll(event.Data) {
			c.take(in)
		}
	}
}

// abort implements carrier.
func (c *httpCarrier) abort() {
	c.mu.Lock()
	c.stop() // Nothing begins to run behind from now on.
	c.mu.Unlock()
	c.work.Wait()
}

// close implements carrier.
func (c *httpCarrier) close(ctx context.Context) {
	if _, session := c.state(); session != "" {
		ctx, cancel := context.WithTimeout(ctx, behind)
		if response, err := c.send(ctx, http.MethodDelete, nil, &message{}); err == nil {
			_ = response.Body.Close()
		}
		cancel()
	}
	c.abort()
	c.client.CloseIdleConnections()
}

// MediaType of an answer, without its parameters; a broken parameter does not spoil it.
func MediaType(header http.Header) string {
	bare, _, _ := strings.Cut(header.Get("Content-Type"), ";")
	kind, _, err := mime.ParseMediaType(bare)
	if err != nil {
		return ""
	}
	return kind
}
