// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/upstream/client"
	"github.com/espalier-dev/espalier/internal/neterror"
)

const (
	typeJSON = "application/json"
	typeSSE  = "text/event-stream"
	// maxRefusal is how much is read of an answer that only refuses, in bytes.
	maxRefusal = 64 << 10
	// maxSession is the longest session id, in bytes.
	maxSession = 1024
)

// httpLink speaks streamable HTTP.
type httpLink struct {
	o      *Options
	url    string
	client *http.Client
	mirror *mirror

	mu sync.Mutex
	// session and version are what a legacy server said.
	session, version string
}

func newHTTP(o *Options, way *Way, mirror *mirror) *httpLink {
	own := *way.HTTP
	own.CheckRedirect = client.SameOriginOnly
	return &httpLink{o: o, url: way.URL, client: &own, mirror: mirror}
}

func (l *httpLink) agree(version string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.version = version
}

func (l *httpLink) state() (session, version string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.session, l.version
}

// exchange implements link.
func (l *httpLink) exchange(ctx, patience context.Context, m *message, to take) *fault {
	if m.modern != "" && m.Method == mcp.MethodToolsList {
		to = l.mirror.reading(to)
	}
	f := l.exchangeOnce(ctx, patience, m, to)
	if f == nil || m.modern == "" || m.Method != mcp.MethodToolsCall || codeOf(f.answer) != mcp.CodeHeaderMismatch {
		return f
	}
	// What is to be mirrored is not what it was, or was never read.
	if !l.relist(ctx, patience, m) {
		return f
	}
	return l.exchangeOnce(ctx, patience, m, to)
}

func (l *httpLink) exchangeOnce(ctx, patience context.Context, m *message, to take) *fault {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	response, f := l.post(ctx, patience, m)
	if f != nil {
		return f
	}
	defer response.Body.Close()
	if response.StatusCode/100 != 2 {
		return l.refusal(response, m)
	}
	if m.Method == mcp.MethodInitialize {
		l.opened(response.Header.Get(mcp.HeaderSessionID))
	}
	switch client.MediaType(response.Header) {
	case typeJSON:
		return l.whole(response, m, to)
	case typeSSE:
		return l.stream(ctx, response, m, to)
	}
	return notMCP(fmt.Sprintf("media type %q", client.MediaType(response.Header)))
}

// post sends a message.
func (l *httpLink) post(ctx, patience context.Context, m *message) (*http.Response, *fault) {
	header := http.Header{"Accept": {typeJSON + ", " + typeSSE}, "Content-Type": {typeJSON}}
	if m.modern != "" {
		header.Set(mcp.HeaderProtocolVersion, m.modern)
		header.Set(mcp.HeaderMethod, m.Method)
		if name, ok := m.Params.Text(mcp.MirroredName(m.Method)); ok {
			header.Set(mcp.HeaderName, client.HeaderText(name))
		}
		l.mirror.set(header, m)
	}
	return l.send(ctx, patience, http.MethodPost, m.raw, header, m.modern == "" && m.Method != mcp.MethodInitialize)
}

// send makes one HTTP request; the caller closes the body. ofSession adds what
// a legacy session wants. When patience ends before there is a connection, the
// server was not reached.
func (l *httpLink) send(ctx, patience context.Context, method string, body []byte, header http.Header, ofSession bool) (*http.Response, *fault) {
	var connected atomic.Bool
	given, impatient := context.WithCancel(ctx)
	stop := context.AfterFunc(patience, func() {
		if !connected.Load() {
			impatient()
		}
	})
	defer stop()
	traced := httptrace.WithClientTrace(given, &httptrace.ClientTrace{
		GetConn: func(string) { connected.Store(false) },
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	})
	request, err := http.NewRequestWithContext(traced, method, l.url, bytes.NewReader(body))
	if err != nil {
		impatient()
		return nil, &fault{kind: refused, code: mcp.CodeInternalError, reason: "InvalidURL", text: "the URL of the MCP server is none"}
	}
	own, f := l.o.ownHeaders()
	if f != nil {
		impatient()
		return nil, f
	}
	request.Header = own
	for name, values := range header {
		request.Header[name] = values
	}
	if ofSession {
		session, version := l.state()
		if session != "" {
			request.Header.Set(mcp.HeaderSessionID, session)
		}
		if version != "" {
			request.Header.Set(mcp.HeaderProtocolVersion, version)
		}
	}
	response, err := l.client.Do(request)
	if err == nil {
		// impatient is called when the body is closed, with its request.
		response.Body = &released{response.Body, impatient}
		return response, nil
	}
	impatient()
	var wrapped *url.Error // It repeats the URL.
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	if patience.Err() != nil && ctx.Err() == nil && !connected.Load() {
		err = errNoConnection
	}
	if !connected.Load() || neterror.Of(err) == neterror.Refused {
		return nil, noReplica(err)
	}
	return nil, lost(err)
}

var errNoConnection = errors.New("no connection came about in time")

// released is a body whose context ends with it.
type released struct {
	io.ReadCloser
	release func()
}

// Close is io.Closer's.
func (r *released) Close() error {
	err := r.ReadCloser.Close()
	r.release()
	return err
}

func (l *httpLink) opened(session string) {
	if len(session) > maxSession || strings.IndexFunc(session, func(r rune) bool { return r < 0x21 || r > 0x7e }) >= 0 {
		session = ""
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.session = session
}

// whole hands on an answer that is one body.
func (l *httpLink) whole(response *http.Response, m *message, to take) *fault {
	raw, f := readAll(response.Body, l.o.MaxBytes)
	if f != nil {
		return f
	}
	p, ok := parse(raw)
	if !ok {
		return notMCP("the body of media type JSON")
	}
	if in := p.parts[0]; !m.batch && in.failure != nil && in.anonymous() {
		return &fault{kind: refused, answer: in.failure}
	}
	_, all := m.settle(p)
	to(p)
	if !all {
		return notMCP("no answer to the request is in it")
	}
	return nil
}

func readAll(body io.Reader, limit int64) ([]byte, *fault) {
	raw, err := io.ReadAll(io.LimitReader(body, limit+1))
	switch {
	case err != nil:
		return nil, lost(err)
	case int64(len(raw)) > limit:
		return nil, tooLarge(limit)
	}
	return raw, nil
}

// refusal reads an answer without success. A message in it that answers the
// request is the server's answer, whatever the status.
func (l *httpLink) refusal(response *http.Response, m *message) *fault {
	status := response.StatusCode
	session, _ := l.state()
	ofSession := m.modern == "" && m.Method != mcp.MethodInitialize && session != ""
	if ofSession && status == http.StatusNotFound {
		return sessionGone()
	}
	f := statusFault(status, m.Method, l.o.Credential)
	in := l.failureIn(response, m)
	if in == nil {
		return f
	}
	switch {
	case in.code() == mcp.CodeUnavailable:
		// Our own servers: no catalog yet, or draining. It did not run.
		f.kind = unreached
	case ofSession && status == http.StatusBadRequest && in.anonymous() && in.code() == oldSessionCode:
		return sessionGone()
	case f.kind != unsure:
		f.kind = refused
	}
	f.answer = in.failure
	return f
}

// failureIn reads the error of JSON-RPC in an answer without success, nil for
// none, or another's.
func (l *httpLink) failureIn(response *http.Response, m *message) *incoming {
	raw, _ := readAll(response.Body, maxRefusal)
	p, ok := parse(raw)
	if !ok || p.parts[0].failure == nil {
		return nil
	}
	in := &p.parts[0]
	if !in.anonymous() && !m.batch && m.isRequest() && !sameID(in.id, m.ID) {
		return nil
	}
	return in
}

// oldSessionCode is what servers made after the examples of the TypeScript
// SDK say, with HTTP status 400 and no id, to a session that they do not know.
const oldSessionCode = -32000

// say implements link.
func (l *httpLink) say(ctx context.Context, m *message) *fault {
	ctx, cancel := context.WithTimeout(ctx, sayLimit)
	defer cancel()
	response, f := l.post(ctx, ctx, m)
	if f != nil {
		return f
	}
	defer response.Body.Close()
	if response.StatusCode/100 != 2 {
		return l.refusal(response, m)
	}
	return nil
}

// abandon implements link: in the modern era the closed stream says it.
func (l *httpLink) abandon(ctx context.Context, note *message) {
	if _, version := l.state(); version != "" {
		_ = l.say(ctx, note) // Who does not hear it answers for nothing.
	}
}

// close implements link.
func (l *httpLink) close(ctx context.Context) {
	if session, _ := l.state(); session != "" {
		if response, f := l.send(ctx, ctx, http.MethodDelete, nil, nil, true); f == nil {
			_ = response.Body.Close()
		}
	}
	l.drop()
}

// drop implements link.
func (l *httpLink) drop() { l.client.CloseIdleConnections() }
