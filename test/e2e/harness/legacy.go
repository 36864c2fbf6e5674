// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync/atomic"

	"github.com/espalier-dev/espalier/internal/mcp"
)

// Legacy is a client of a revision with sessions. Each of its requests may go
// to another replica.
type Legacy struct {
	// ID of the session.
	ID  string
	ids atomic.Int64
}

// Begin begins a session at p.
func (p *Peer) Begin(ctx context.Context) (*Legacy, error) {
	l := &Legacy{}
	resp, err := l.send(ctx, p, http.MethodPost, mcp.MethodInitialize, map[string]any{
		"protocolVersion": mcp.Version20251125, "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "espalier-e2e", "version": "0"},
	})
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if l.ID = resp.Header.Get(mcp.HeaderSessionID); l.ID == "" || resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("HTTP %d, session %q", resp.StatusCode, l.ID)
	}
	return l, nil
}

// Call calls a tool at p. Status is that of HTTP.
func (l *Legacy) Call(ctx context.Context, p *Peer, tool string, args map[string]any) (answer *Answer, status int, err error) {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	resp, err := l.send(ctx, p, http.MethodPost, mcp.MethodToolsCall, map[string]any{"name": tool, "arguments": args})
	if err != nil {
		return nil, 0, err
	}
	defer resp.Body.Close()
	answer = &Answer{}
	return answer, resp.StatusCode, decode(resp, answer)
}

// End ends the session at p and gives the status of HTTP.
func (l *Legacy) End(ctx context.Context, p *Peer) (int, error) {
	resp, err := l.send(ctx, p, http.MethodDelete, "", nil)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}

// Stand opens the session's stream at p. Methods of notifications come on the
// channel, which is closed when the stream ends.
func (l *Legacy) Stand(ctx context.Context, p *Peer) (<-chan string, error) {
	resp, err := l.send(ctx, p, http.MethodGet, "", nil)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close()
		return nil, fmt.Errorf("HTTP %d", resp.StatusCode)
	}
	told := make(chan string, 100)
	go func() {
		defer close(told)
		defer resp.Body.Close()
		_ = events(resp.Body, func(m *message) bool { told <- m.Method; return true })
	}()
	return told, nil
}

// send sends a request, or, without a method, what has no body.
func (l *Legacy) send(ctx context.Context, p *Peer, verb, method string, params map[string]any) (*http.Response, error) {
	var body bytes.Buffer
	if method != "" {
		err := json.NewEncoder(&body).Encode(map[string]any{"jsonrpc": "2.0", "id": l.ids.Add(1), "method": method, "params": params})
		if err != nil {
			return nil, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, verb, p.URL, &body)
	if err != nil {
		return nil, err
	}
	if p.Host != "" {
		req.Host = p.Host
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if l.ID != "" {
		req.Header.Set(mcp.HeaderSessionID, l.ID)
		req.Header.Set(mcp.HeaderProtocolVersion, mcp.Version20251125)
	}
	return p.client().Do(req)
}
