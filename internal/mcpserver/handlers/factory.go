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
	"github.com/espalier-dev/espalier/internal/schema"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// Factory makes handlers that share connections and credentials.
type Factory struct {
	credentials *credentials.Store
	clients     *clients
	userAgent   string
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
	return &Factory{credentials: store, clients: newClients(store), userAgent: userAgent}
}

// Client gives the shared HTTP client for TLS settings; nil is the system's.
// Its redirects carry no credential to another origin.
func (f *Factory) Client(settings *serverconfig.TLS) (*http.Client, error) {
	return f.clients.get(settings)
}

// Close drops idle connections.
func (f *Factory) Close() { f.clients.close() }

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
	var out []string
	add := func(path string) {
		if path != "" {
			out = append(out, path)
		}
	}
	for _, list := range [][]serverconfig.Value{h.Headers, h.Path, h.Query} {
		for _, v := range list {
			add(v.File)
		}
	}
	if t := h.TLS; t != nil {
		add(t.CAFile)
		add(t.CertFile)
		add(t.KeyFile)
	}
	return out
}
