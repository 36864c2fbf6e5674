// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"

	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/prober"
)

// TestTransports: a server that Espalier stands in front of is probed over the
// transport of its URL, and status says all that its spec names; of others
// status says what was found to work, and holds that.
func TestTransports(t *testing.T) {
	r := &MCPServerReconciler{Tokens: func(string) func() (string, error) { return nil }}
	for spec, want := range map[string]struct {
		transport mcpprobe.Transport
		url       string
		status    string
	}{
		`{}`: {mcpprobe.TransportStreamableHTTP, "http://web-mcp.ns.svc:8080/mcp", "StreamableHTTP"},
		`transports: [{type: WebSocket}, {type: SSE}, {type: StreamableHTTP, path: /x}]`: {mcpprobe.TransportStreamableHTTP, "http://web-mcp.ns.svc:8080/x", "StreamableHTTP,SSE,WebSocket"},
		`transports: [{type: WebSocket}, {type: SSE}]`:                                   {mcpprobe.TransportSSE, "http://web-mcp.ns.svc:8080/sse", "SSE,WebSocket"},
		`transports: [{type: WebSocket}]`:                                                {mcpprobe.TransportWebSocket, "ws://web-mcp.ns.svc:8080/ws", "WebSocket"},
		`{type: Stdio, stdio: {image: i, command: [c]}, transports: [{type: SSE}]}`:      {mcpprobe.TransportSSE, "http://web-mcp.ns.svc:8080/sse", "SSE"},
		containerSpec: {mcpprobe.TransportAuto, "http://web-mcp.ns.svc:8080/mcp", ""},
	} {
		w := newWorld(t, spec)
		w.deploy()
		w.pod("a")
		target := r.targets(w.scope())[0]
		if target.Probe.Transport != want.transport || target.Probe.URL != want.url {
			t.Errorf("%s: probed at %s as %q", spec, target.Probe.URL, target.Probe.Transport)
		}
		if got := w.pass().Transports; got != want.status {
			t.Errorf("%s: status says %q, want %q", spec, got, want.status)
		}
	}
}

func TestTransportOfOthers(t *testing.T) {
	w := newWorld(t, externalSpec)
	found := w.report()
	found.Transport = mcpprobe.TransportSSE
	w.target(targetExternal, "web", prober.Proved, found)
	if got := w.pass().Transports; got != "SSE" {
		t.Errorf("found %q", got)
	}
	w.restart()
	if got := w.pass().Transports; got != "SSE" {
		t.Errorf("an operator that knows nothing yet says %q", got)
	}
	w.target(targetExternal, "web", prober.Failing, &mcpprobe.Report{Outcome: mcpprobe.Timeout, Step: mcpprobe.StepInitialize})
	if got := w.pass().Transports; got != "SSE" {
		t.Errorf("a server that fails has %q", got)
	}
	found = w.report()
	found.Transport = mcpprobe.TransportStreamableHTTP
	w.target(targetExternal, "web", prober.Proved, found)
	if got := w.pass().Transports; got != "StreamableHTTP" {
		t.Errorf("an upgraded server has %q", got)
	}
}
