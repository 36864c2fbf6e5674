// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpprobe

import (
	"context"
	"net/http"
	"net/url"
	"sync"
)

// Options of a Client.
type Options struct {
	Policy Policy
	// Bounds; DefaultBounds when zero.
	Bounds Bounds
	// Version of Espalier, told to servers as that of the client.
	Version string
	// Proxy for targets without DialAddress, http.ProxyFromEnvironment for
	// what leaves the cluster; nil for none. The policy is then asked with
	// the proxy's address.
	Proxy func(*http.Request) (*url.URL, error)
}

// Client probes. Between probes it holds nothing but tokens of authorization
// servers, until they expire. It is safe for concurrent use.
type Client struct {
	opts Options
	// heavy are the slots for probes that read large answers.
	heavy chan struct{}
	// ending counts the sessions that are being ended behind finished probes.
	ending sync.WaitGroup
	tokens tokens
}

// New makes a Client.
func New(opts Options) *Client {
	if opts.Bounds == (Bounds{}) {
		opts.Bounds = DefaultBounds()
	}
	if opts.Version == "" {
		opts.Version = "0.0.0"
	}
	return &Client{opts: opts, heavy: make(chan struct{}, opts.Bounds.Heavy)}
}

// Close waits for the sessions that are still being ended, for twice
// Bounds.EndTime at most. Call it when no probe runs any more.
func (c *Client) Close() { c.ending.Wait() }

// Probe makes one bounded exchange with t. It never fails: what went wrong is
// the report's Outcome. When ctx is cancelled the outcome is Canceled, and a
// session that was opened is ended all the same.
func (c *Client) Probe(ctx context.Context, t Target) Report {
	return c.probe(ctx, t)
}
