// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"

	"github.com/espalier-dev/espalier/internal/mcpserver/principal"
	"github.com/espalier-dev/espalier/internal/mcpserver/upstream/client"
)

// session is what an upstream is spoken to with. It is safe for concurrent
// use. An MCP server is spoken to with a client.Session; whatever else gives
// lists and answers calls may stand in its place. Its errors are those of
// package client: an *Error of the way to it, an *RPCError that it answered.
type session interface {
	// Version of the protocol that is spoken; empty where it is another one.
	Version() string
	Abilities() client.Abilities
	// Lists gives all that is listed now.
	Lists(ctx context.Context) (*client.Lists, error)
	// Changed holds a value after a list changed.
	Changed() <-chan struct{}
	// Call calls a tool and gives the raw result of tools/call.
	Call(ctx context.Context, c *client.Call) ([]byte, error)
	// Request gives the raw result of another method, or an *RPCError with
	// mcp.CodeMethodNotFound.
	Request(ctx context.Context, r *client.Request) ([]byte, error)
	// Check asks for a sign of life.
	Check(ctx context.Context) error
	// Listen hears what is told, for Changed, until ctx ends or the stream
	// does; standing is called when the stream stands. offered is false where
	// there is none, for good.
	Listen(ctx context.Context, standing func()) (offered bool, err error)
	// Done is closed when the session is over, and Lost says why; nil where
	// that shows at the next request only.
	Done() <-chan struct{}
	Lost() error
	// Close ends the session and awaits what it still does.
	Close(ctx context.Context)
}

var _ session = (*client.Session)(nil)

// open opens a session with what the upstream is.
func (s *source) open(ctx context.Context) (session, error) {
	if s.config.OpenAPI != nil {
		return openDocument(ctx, s)
	}
	options, err := s.dialling(nil)
	if err != nil {
		return nil, err
	}
	options.Updated = func(uri string) { s.m.updated(s.config.Name, uri) }
	opened, err := client.Connect(ctx, options)
	if err != nil {
		return nil, err // Not a nil *client.Session in an interface.
	}
	return opened, nil
}

// dialling are the options of a session with what the upstream is; caller, if
// there is one, is whose session it is.
func (s *source) dialling(caller *principal.Principal) (client.Options, error) {
	options := client.Options{
		URL: s.config.URL, Protocol: s.config.Protocol, Version: s.m.options.Version, MaxBytes: s.m.maxBytes.Load(),
	}
	if s.config.Stdio != nil {
		s.process(&options)
	} else if err := s.dial(&options, caller); err != nil {
		return options, &client.Error{Reason: client.CredentialMissing, Cause: err}
	}
	return options, nil
}
