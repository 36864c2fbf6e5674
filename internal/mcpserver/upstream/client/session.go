// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"encoding/json"
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
	// Updated, if set, is told the URI of each resource of which the server
	// says that it changed. It must not block.
	Updated func(uri string)

	// Process to start and speak to over stdin and stdout, in place of URL.
	Process *process.Options
	// LegacyChild: it ended when it was asked to discover before.
	LegacyChild bool

	// Asking is what the one client of this session may be asked. Without it
	// the session is shared: it declares no capability, and a server that asks
	// hears that there is no such method.
	Asking *Asking
}

// Asking lets a legacy server ask the one client that its session is for.
type Asking struct {
	// Capabilities is the raw object that is declared.
	Capabilities []byte
	// Ask answers a request of the server with a raw object. A *wire.Error is
	// the answer as it stands. It may take as long as a person does, and ends
	// with ctx.
	Ask func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)
	// Notify, if set, is given the log messages, and the ends of what was asked,
	// that came with no answer to a request. It must not block for long.
	Notify func(method string, params json.RawMessage)
}

// Session is an open session. It is safe for concurrent use.
type Session struct {
	carrier   carrier
	child     *process.Process
	options   *Options
	revision  revision
	abilities Abilities
	// introduction is set by the handshake.
	introduction Introduction
	ttl          *time.Duration
	private      bool

	asks     *asks
	ids      atomic.Int64
	progress sync.Map // id -> func(wire.Object)
	standing sync.Map // id of a listen stream -> func(), called when it is acknowledged
	changed  chan struct{}
}

// Connect opens a session: it finds out the era and shakes hands.
func Connect(ctx context.Context, options Options) (*Session, error) {
	s := &Session{options: &options, changed: make(chan struct{}, 1), asks: newAsks(options.Asking)}
	var err error
	if options.Process != nil {
		err = s.connectStdio(ctx)
	} else if isWebSocket(options.URL) {
		err = s.connectWebSocket(ctx)
	} else {
		s.carrier = newHTTP(&options, s.hear, s.asks)
		err = s.negotiate(ctx)
	}
	if err != nil && s.carrier != nil {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), behind)
		defer cancel()
		s.Close(closing)
	}
	if err != nil {
		return nil, s.ended(inPhase(err, PhaseHandshake))
	}
	return s, nil
}

func (s *Session) connectWebSocket(ctx context.Context) error {
	c, err := openWebSocket(ctx, s.options, s.hear, s.asks)
	if err != nil {
		return err
	}
	s.carrier = c
	return s.negotiate(ctx)
}

// ended adds how a child ended to an error that tells that it did.
func (s *Session) ended(err error) error {
	var known *Error
	if s.child != nil && errors.As(err, &known) && known.Reason == ChildExited {
		state := s.child.State()
		known.Child = &state
		_, known.StderrTruncated = s.child.Stderr()
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
func (s *Session) Lost() error { return s.ended(&Error{Reason: ChildExited, Phase: PhaseServing}) }

// Version of the protocol that was agreed on.
func (s *Session) Version() string { return s.revision.version }

// Abilities are what the server declares.
func (s *Session) Abilities() Abilities { return s.abilities }

// Introduction is what a server says of itself, in its own words.
type Introduction struct{ Name, Title, Version, Instructions string }

// Introduction gives what the server said of itself at the handshake.
func (s *Session) Introduction() Introduction { return s.introduction }

// Changed holds a value after the server told of a change of one of its lists.
func (s *Session) Changed() <-chan struct{} { return s.changed }

// Close ends the session in good order and awaits what it still does: a server
// is told, a child gets time to end. What is pending is aborted. When ctx ends
// the rest is as with Abort.
func (s *Session) Close(ctx context.Context) {
	s.asks.end()
	s.carrier.close(ctx)
	s.asks.work.Wait()
}

// Abort ends the session at once: no server is told, and a child is killed
// with its group.
func (s *Session) Abort() {
	s.asks.end()
	s.carrier.abort()
	s.asks.work.Wait()
}

// hear takes a notification.
func (s *Session) hear(in incoming) {
	method, _ := wire.Text(in.method)
	switch method {
	case mcp.NotificationToolsChanged, mcp.NotificationResources, mcp.NotificationPrompts:
		s.tell()
	case mcp.NotificationAcknowledged:
		s.acknowledged(in.params)
	case mcp.NotificationUpdated:
		if uri, ok := wire.Text(member(in.params, "uri")); ok && s.options.Updated != nil {
			s.options.Updated(uri)
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
	case mcp.NotificationCancelled:
		s.asks.cancel(member(in.params, "requestId"))
	case mcp.NotificationMessage, mcp.NotificationElicitationComplete:
		if a := s.options.Asking; a != nil && a.Notify != nil {
			a.Notify(method, in.params)
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
