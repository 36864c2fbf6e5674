// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/upstream/process"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// Options of a session.
type Options struct {
	// URL of the MCP endpoint, and the HTTP client to call it with.
	URL  string
	HTTP *http.Client
	// Header of each request. Credential says that one is among them.
	Header     http.Header
	Credential bool
	Protocol   serverconfig.Protocol
	// Version of Espalier, told to servers.
	Version string
	// MaxBytes of one message.
	MaxBytes int64

	// Process to start and speak to over stdin and stdout, in place of URL.
	Process *process.Options
	// LegacyChild: it ended when it was asked to discover before.
	LegacyChild bool
}

// Session is an open session. It is safe for concurrent use.
type Session struct {
	carrier  carrier
	child    *process.Process
	options  *Options
	revision revision
	// declares tools at all, and that it tells of changes of their list.
	tools, listChanged bool
	ttl                *time.Duration
	private            bool

	ids      atomic.Int64
	progress sync.Map // id -> func(wire.Object)
	// standing is called when a listen stream is acknowledged.
	standing atomic.Pointer[func()]
	changed  chan struct{}
}

// Connect opens a session: it finds out the era and shakes hands.
func Connect(ctx context.Context, options Options) (*Session, error) {
	s := &Session{options: &options, changed: make(chan struct{}, 1)}
	var err error
	if options.Process != nil {
		err = s.connectStdio(ctx)
	} else {
		s.carrier = newHTTP(&options, s.hear)
		err = s.negotiate(ctx)
	}
	if err != nil && s.carrier != nil {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), behind)
		defer cancel()
		s.carrier.close(closing)
	}
	if err != nil {
		return nil, s.ended(err)
	}
	return s, nil
}

// ended adds how a child ended to an error that tells that it did.
func (s *Session) ended(err error) error {
	var known *Error
	if s.child != nil && errors.As(err, &known) && known.Reason == ChildExited {
		state := s.child.State()
		known.Child = &state
		s.tellEnd(state)
	}
	return err
}

// lastWords is how much of a child's stderr the log has once more at its end,
// in bytes: among many lines the last may have been left out.
const lastWords = 2000

func (s *Session) tellEnd(state process.State) {
	stderr, truncated := s.child.Stderr()
	log := s.options.Process.Log
	if log == nil {
		return
	}
	log.Warn("Child ended", "exitCode", state.ExitCode, "signal", state.Signal, "stderrTruncated", truncated || len(stderr) > lastWords,
		"stderr", strings.ToValidUTF8(string(stderr[max(0, len(stderr)-lastWords):]), "?"))
}

// Done is closed when the session is over, as that of a child that ended is.
// It is nil where that shows at the next request only.
func (s *Session) Done() <-chan struct{} {
	if s.child == nil {
		return nil
	}
	return s.child.Done()
}

// Lost says why a session is over after Done.
func (s *Session) Lost() error { return s.ended(&Error{Reason: ChildExited}) }

// Version of the protocol that was agreed on.
func (s *Session) Version() string { return s.revision.version }

// ListChanged reports whether the server says that it tells of changes.
func (s *Session) ListChanged() bool { return s.listChanged }

// Changed holds a value after the server told of a change of its tools.
func (s *Session) Changed() <-chan struct{} { return s.changed }

// Close ends the session and awaits what it still does.
func (s *Session) Close(ctx context.Context) { s.carrier.close(ctx) }

// hear takes a notification.
func (s *Session) hear(in incoming) {
	method, _ := wire.Text(in.method)
	switch method {
	case mcp.NotificationToolsChanged:
		s.tell()
	case mcp.NotificationAcknowledged:
		if f := s.standing.Swap(nil); f != nil {
			(*f)()
		}
	case mcp.NotificationProgress:
		params, err := wire.DecodeObject(in.params)
		if err != nil {
			return
		}
		id, err := strconv.ParseInt(string(params.Get("progressToken")), 10, 64)
		if err != nil {
			return
		}
		if f, ok := s.progress.Load(id); ok {
			f.(func(wire.Object))(params) //nolint:forcetypeassert // Nothing else is stored.
		}
	}
}

func (s *Session) tell() {
	select {
	case s.changed <- struct{}{}:
	default: // It is due already.
	}
}

func (s *Session) next() int64 { return s.ids.Add(1) }

// Check asks for a sign of life: ping in the legacy era, discover in the
// modern one. A legacy server may well not know ping: that it says so is one.
func (s *Session) Check(ctx context.Context) error {
	m := &message{id: s.next(), method: mcp.MethodPing}
	if s.revision.modern {
		m.method = mcp.MethodDiscover
	}
	_, err := s.carrier.request(ctx, m)
	if !s.revision.modern && isRPC(err) {
		return nil
	}
	return err
}

// Listen hears what the server says by itself, for Changed, until ctx ends or
// the stream does; standing is called when the stream stands. offered is false
// where the server has none. Only one Listen may run at a time.
func (s *Session) Listen(ctx context.Context, standing func()) (offered bool, err error) {
	if !s.revision.modern {
		err = s.carrier.stream(ctx, standing)
		return err != errNotOffered, err //nolint:errorlint // It is never wrapped.
	}
	s.standing.Store(&standing)
	_, err = s.carrier.request(ctx, &message{
		id: s.next(), method: mcp.MethodSubscriptionsListen, params: []byte(`"notifications":{"toolsListChanged":true}`),
	})
	return !isRPC(err), err
}

// Call is one tools/call.
type Call struct {
	Tool string
	// Args is a raw object.
	Args []byte
	// Header mirrors arguments, see Mirror.
	Header http.Header
	// Meta are further members of _meta, without braces.
	Meta []byte
	// Progress, if set, is given the params of the server's progress. It may
	// be called by several goroutines, but by none after Call returned.
	Progress func(params wire.Object)
}

// Call calls a tool and gives the raw result.
func (s *Session) Call(ctx context.Context, c *Call) ([]byte, error) {
	m := &message{id: s.next(), method: mcp.MethodToolsCall, name: c.Tool, header: c.Header, meta: c.Meta}
	m.params = append([]byte(`"name":`), wire.AppendString(nil, c.Tool)...)
	m.params = append(m.params, `,"arguments":`...)
	m.params = append(m.params, c.Args...)
	if c.Progress != nil {
		if len(m.meta) > 0 {
			m.meta = append(m.meta[:len(m.meta):len(m.meta)], ',')
		}
		m.meta = strconv.AppendInt(append(m.meta, `"progressToken":`...), m.id, 10)
		gate := &gate{f: c.Progress}
		s.progress.Store(m.id, gate.pass)
		defer func() {
			s.progress.Delete(m.id)
			gate.shut()
		}()
	}
	return s.carrier.request(ctx, m)
}

// gate lets calls pass until it is shut.
type gate struct {
	mu     sync.Mutex
	closed bool
	f      func(wire.Object)
}

func (g *gate) pass(params wire.Object) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.f(params)
	}
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
}

func cancelNote(id int64) *message {
	return &message{
		method: mcp.NotificationCancelled,
		params: append(strconv.AppendInt([]byte(`"requestId":`), id, 10), `,"reason":"cancelled"`...),
	}
}
