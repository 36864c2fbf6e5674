// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/plugin/env"
)

// DefaultTimeout of a command that asks a server something.
const DefaultTimeout = time.Minute

// Selection is which endpoints of a server a command talks to, and for how
// long.
type Selection struct {
	Flags
	Pod     string
	AllPods bool
	Timeout time.Duration
}

// AddTo gives the flags to a command; --all-pods where all makes sense of it.
func (s *Selection) AddTo(flags *pflag.FlagSet, all bool) {
	s.Flags.AddTo(flags)
	flags.StringVar(&s.Pod, "pod", "", "Talk to this replica. Default is one that is ready.")
	if all {
		flags.BoolVar(&s.AllPods, "all-pods", false, "Talk to every replica, and show how they differ.")
	}
	flags.DurationVar(&s.Timeout, "timeout", DefaultTimeout, "How long it may take in all. Zero is no bound.")
}

// Within bounds ctx by --timeout.
func (s *Selection) Within(ctx context.Context) (context.Context, context.CancelFunc) {
	if s.Timeout <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, s.Timeout)
}

// IsURL reports whether an argument stands for a server outside, not for an
// MCPServer.
func IsURL(server string) bool { return strings.Contains(server, "://") }

// Endpoints gives what is selected of the MCPServer of that name in the chosen
// namespace, or of the server at that URL: one, but for AllPods.
func (s *Selection) Endpoints(ctx context.Context, e *env.Env, server string) ([]*Endpoint, error) {
	out, err := s.find(ctx, e, server)
	if err != nil {
		return nil, err
	}
	return out, s.Apply(e.In, out...)
}

func (s *Selection) find(ctx context.Context, e *env.Env, name string) ([]*Endpoint, error) {
	if s.Pod != "" && s.AllPods {
		return nil, errors.New("--pod and --all-pods say different things: leave one out")
	}
	if IsURL(name) {
		if s.Pod != "" || s.AllPods {
			return nil, errors.New("--pod and --all-pods want an MCPServer, not a URL")
		}
		p, err := ByURL(name, mcpprobe.TransportAuto)
		return []*Endpoint{p}, err
	}
	c, err := clusterOf(e)
	if err != nil {
		return nil, err
	}
	server, err := e.Server(ctx, c.client, name)
	if err != nil {
		return nil, err
	}
	if s.Pod == "" && !s.AllPods {
		p, err := c.whole(ctx, server)
		return []*Endpoint{p}, err
	}
	replicas, err := c.replicas(ctx, server)
	if err != nil || s.AllPods {
		return replicas, err
	}
	return chosen(replicas, name, s.Pod)
}

// chosen is the replica of that name, as the one endpoint.
func chosen(replicas []*Endpoint, server, pod string) ([]*Endpoint, error) {
	var names []string
	for _, p := range replicas {
		if p.Pod == pod {
			return []*Endpoint{p}, nil
		}
		if p.Pod != "" {
			names = append(names, p.Pod)
		}
	}
	if names == nil {
		return nil, fmt.Errorf("MCPServer %q is external and has no pods", server)
	}
	return nil, env.Hint(fmt.Errorf("MCPServer %q has no replica %q that can be talked to", server, pod), "There are: "+strings.Join(names, ", "))
}

// ByURL is the endpoint at a URL, which this machine dials by itself.
func ByURL(raw string, transport mcpprobe.Transport) (*Endpoint, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return nil, errors.New("the URL cannot be read") // The error has all of it.
	case u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "ws" && u.Scheme != "wss":
		return nil, fmt.Errorf("a URL of scheme %q is none of an MCP server: it is http, https, ws or wss", u.Scheme)
	case u.Hostname() == "":
		return nil, errors.New("the URL has no host")
	case u.User != nil:
		return nil, env.Hint(errors.New("a URL holds no user and password"), "Give them by --header 'Authorization: Basic ...'.")
	}
	if transport == mcpprobe.TransportAuto && strings.HasPrefix(u.Scheme, "ws") {
		transport = mcpprobe.TransportWebSocket
	}
	return Direct(raw, transport), nil
}
