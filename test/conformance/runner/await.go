// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// patience is how long a server may take to serve all fixtures.
	patience = 2 * time.Minute
	// inARow are complete lists over connections of their own, since there
	// may be replicas.
	inARow = 12
	again  = 500 * time.Millisecond
	once   = 10 * time.Second
)

// Entries that come last: each is of an upstream.
const (
	lastTool   = "test_input_required_result_multi_round"
	lastPrompt = "test_input_required_result_prompt"
)

// await waits until a server serves what its upstreams bring.
func await(ctx context.Context, t target) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for good := 0; good < inARow; {
		err := complete(ctx, t.url)
		if err == nil {
			good++
			continue
		}
		good = 0
		select {
		case <-time.After(again):
		case <-ctx.Done():
			return fmt.Errorf("%s does not serve all fixtures: %w", t.url, err)
		}
	}
	return nil
}

// complete looks once.
func complete(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, once)
	defer cancel()
	transport := &http.Transport{DisableKeepAlives: true}
	client := mcp.NewClient(&mcp.Implementation{Name: "runner", Version: "1"}, nil)
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{
		Endpoint: url, HTTPClient: &http.Client{Transport: transport}, MaxRetries: -1, DisableStandaloneSSE: true,
	}, nil)
	if err != nil {
		return err
	}
	defer session.Close()
	var names []string
	for tool, err := range session.Tools(ctx, nil) {
		if err != nil {
			return err
		}
		names = append(names, tool.Name)
	}
	for prompt, err := range session.Prompts(ctx, nil) {
		if err != nil {
			return err
		}
		names = append(names, prompt.Name)
	}
	for _, name := range []string{lastTool, lastPrompt} {
		if !slices.Contains(names, name) {
			return fmt.Errorf("it lists no %s", name)
		}
	}
	return nil
}
