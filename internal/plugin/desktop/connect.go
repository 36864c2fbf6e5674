// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package desktop connects clients on the user's machine to servers in the
// cluster: "kubectl mcp connect", which such a client starts, and "kubectl mcp
// config", which writes down how it does.
package desktop

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/plugin/bridge"
	"github.com/espalier-dev/espalier/internal/plugin/complete"
	"github.com/espalier-dev/espalier/internal/plugin/env"
	"github.com/espalier-dev/espalier/internal/plugin/reach"
	"github.com/espalier-dev/espalier/internal/version"
)

const (
	// defaultWait is shorter than the minute that clients give a handshake.
	defaultWait = 25 * time.Second
	// maxMessage is the largest that a server may be set to take, in bytes.
	maxMessage = 100 << 20
	// keptConnections to the server: each costs a tunnel to make.
	keptConnections = 16
)

// connection is one run of "kubectl mcp connect".
type connection struct {
	*env.Env
	reach.Flags
	server  string
	wait    time.Duration
	verbose bool

	mu sync.Mutex
	// next is an endpoint that no session has yet, current the one whose
	// headers are sent.
	next, current *reach.Endpoint
}

// NewConnect makes "kubectl mcp connect".
func NewConnect(e *env.Env) *cobra.Command {
	c := &connection{Env: e}
	command := &cobra.Command{
		Use:   "connect SERVER|URL",
		Short: "Be an MCP server over stdio for a client on this machine",
		Long: `Be an MCP server over stdio that stands for one in the cluster.

A client on this machine (Claude Desktop, VS Code, Cursor, ...) starts it as its
server. It carries each message through the API server to a replica that is
ready, and back, unchanged; no ingress is needed, and the user's own rights
decide ("create" and "get" on pods/portforward). When pods are replaced the
session is opened again, and the client does not notice. Standard output holds
the protocol and nothing else, standard error says what happens.

"kubectl mcp config SERVER" prints a client's configuration that runs it.`,
		Example: `  # Let the MCP inspector speak to a server in the cluster
  npx @modelcontextprotocol/inspector kubectl mcp connect weather

  # A server that wants a credential
  kubectl mcp connect weather --token-file ~/.config/weather-token`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: complete.First(complete.Servers(e)),
		RunE: func(command *cobra.Command, args []string) error {
			c.server = args[0]
			return c.run(command.Context())
		},
	}
	c.AddTo(command.Flags())
	command.Flags().DurationVar(&c.wait, "wait", defaultWait, "How long a request may wait for a replica that is ready.")
	command.Flags().BoolVar(&c.verbose, "verbose", false, "Say on standard error how each request went. Contents are never told.")
	return command
}

func (c *connection) run(ctx context.Context) error {
	if c.wait <= 0 {
		return errors.New("--wait must be longer than nothing")
	}
	// What can never work is told at once.
	first, err := c.find(ctx)
	if err != nil {
		return err
	}
	c.next, c.current = first, first
	level := slog.LevelInfo
	if c.verbose {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewTextHandler(c.ErrOut, &slog.HandlerOptions{Level: level}))
	log.Info("Messages are carried from now on", "server", first.Name())
	return bridge.Run(ctx, bridge.Options{
		In: c.In, Out: c.Out, Open: c.open, Header: c.header, Credential: first.Credential, Log: log,
		UserAgent: "kubectl-mcp/" + version.Version, Wait: c.wait, MaxBytes: maxMessage,
	})
}

// find gives the server as a whole, with what the user gave set on it.
func (c *connection) find(ctx context.Context) (*reach.Endpoint, error) {
	p, err := c.endpoint(ctx)
	if err != nil {
		return nil, err
	}
	return p, c.Apply(notStdin{}, p)
}

func (c *connection) endpoint(ctx context.Context) (*reach.Endpoint, error) {
	if reach.IsURL(c.server) {
		return reach.ByURL(c.server, mcpprobe.TransportAuto)
	}
	objects, err := c.Client()
	if err != nil {
		return nil, err
	}
	server, err := c.Server(ctx, objects, c.server)
	if err != nil {
		return nil, err
	}
	return reach.Any(ctx, c.Env, server)
}

// open gives the way for a session: the server may have changed since the last.
func (c *connection) open(ctx context.Context) (*bridge.Way, error) {
	c.mu.Lock()
	p := c.next
	c.next = nil
	c.mu.Unlock()
	if p == nil {
		var err error
		if p, err = c.find(ctx); err != nil {
			return nil, err
		}
	}
	c.mu.Lock()
	c.current = p
	c.mu.Unlock()
	client := p.HTTP()
	if pool, ok := client.Transport.(*http.Transport); ok {
		pool.MaxIdleConnsPerHost = keptConnections
	}
	return &bridge.Way{
		URL: p.URL, HTTP: client,
		Transport: bridge.Transport(cmp.Or(p.Transport, mcpprobe.TransportStreamableHTTP)),
	}, nil
}

// header reads the credential anew: a token in a file may have been replaced.
func (c *connection) header() (http.Header, error) {
	c.mu.Lock()
	p := *c.current
	c.mu.Unlock()
	if err := c.Apply(notStdin{}, &p); err != nil {
		return nil, err
	}
	return p.Header, nil
}

// notStdin stands for standard input, which is the client's.
type notStdin struct{}

// Read implements io.Reader.
func (notStdin) Read([]byte) (int, error) {
	return 0, errors.New("standard input belongs to the client here: name a file")
}
