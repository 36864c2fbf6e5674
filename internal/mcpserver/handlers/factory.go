// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package handlers makes the handlers of tools, resources and prompts from
// their declarations. Making one does no I/O, so that the same code can say
// in advance whether a declaration is sound.
package handlers

import (
	"context"
	"errors"
	"net/http"

	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/mcpserver/credentials"
	"github.com/espalier-dev/espalier/internal/mcpserver/outbound"
	"github.com/espalier-dev/espalier/internal/schema"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// Factory makes handlers that share connections and credentials.
type Factory struct {
	credentials *credentials.Store
	clients     *clients
	tokens      *outbound.Keeper
	userAgent   string
	// Tokens, when set, is told how each request for a token ended.
	Tokens func(grant, outcome string)
	// Upstreams makes handlers that pass calls on; nil while there are none.
	Upstreams Upstreams
}

// Upstreams makes handlers that pass on what is asked for. It does no I/O.
type Upstreams interface {
	Tool(target *serverconfig.UpstreamTool, input *schema.Schema) call.Handler
	Resource(target *serverconfig.UpstreamResource) call.Handler
	// Prompt gives one that is a call.Completer as well, as does Resource.
	Prompt(target *serverconfig.UpstreamPrompt) call.Handler
}

var errNoUpstreams = errors.New("there are no upstreams here")

// NewFactory gives a factory. userAgent is sent to backends.
func NewFactory(store *credentials.Store, userAgent string) *Factory {
	f := &Factory{credentials: store, clients: newClients(store), userAgent: userAgent}
	f.tokens = outbound.New(outbound.Options{
		Credentials: store, Client: f.Client,
		Observe: func(grant, outcome string) {
			if f.Tokens != nil {
				f.Tokens(grant, outcome)
			}
		},
	})
	return f
}

// Authorizer gives what authenticates a connection; nil when it has no auth.
func (f *Factory) Authorizer(c *serverconfig.Connection) *outbound.Authorizer { return f.tokens.For(c) }

// Client gives the shared HTTP client for TLS settings; nil is the system's.
// Its redirects carry no credential to another origin.
func (f *Factory) Client(settings *serverconfig.TLS) (*http.Client, error) {
	return f.clients.get(settings)
}

// Close ends requests for tokens and drops idle connections.
func (f *Factory) Close() {
	f.tokens.Close()
	f.clients.close()
}

// Make implements registry.HandlerFactory.
func (f *Factory) Make(tool *serverconfig.Tool, input *schema.Schema) (call.Handler, error) {
	switch {
	case tool.HTTP != nil && tool.Expression != nil, tool.Upstream != nil && (tool.HTTP != nil || tool.Expression != nil):
		return nil, errors.New("a tool has at most one handler")
	case tool.Upstream != nil:
		if f.Upstreams == nil {
			return nil, errNoUpstreams
		}
		return f.Upstreams.Tool(tool.Upstream, input), nil
	case tool.HTTP != nil:
		return f.newHTTP(tool, input)
	case tool.Expression != nil:
		return newExpression(tool.Name, tool.Expression)
	}
	return call.Func(noExecutor), nil
}

// Check says whether the handler that a tool declares can be made.
func Check(tool *serverconfig.Tool, input *schema.Schema) error {
	_, err := NewFactory(credentials.New(""), "").Make(tool, input)
	return err
}

func noExecutor(context.Context, *call.Call) (*call.Result, error) {
	return nil, call.Fail(call.NoExecutor, "no executor configured")
}

// Files gives the credential files that a tool's handler reads, in no order.
func Files(tool *serverconfig.Tool) []string {
	h := tool.HTTP
	if h == nil {
		return nil
	}
	out := h.Connection.Files()
	for _, list := range [][]serverconfig.Value{h.Path, h.Query} {
		for _, v := range list {
			if v.File != "" {
				out = append(out, v.File)
			}
		}
	}
	return out
}
