// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpprobe_test

import (
	"bytes"
	"context"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/mcpprobe/fakemcp"
)

// TestByHand: a probe through a tunnel dials nothing itself, shows the
// definitions, and tells the session, to who probes by hand alone.
func TestByHand(t *testing.T) {
	web := httptest.NewServer(fakemcp.New())
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
	})
	client := mcpprobe.New(mcpprobe.Options{})
	defer client.Close()
	dialled := make(chan string, 16)
	var tools []string
	report := client.Probe(t.Context(), mcpprobe.Target{
		URL: "http://127.0.0.9:8080/mcp", Timeout: time.Minute,
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			dialled <- address
			return new(net.Dialer).DialContext(ctx, network, web.Listener.Addr().String())
		},
		Tool: func(definition []byte) { tools = append(tools, string(bytes.Clone(definition))) },
	})
	if report.Outcome != mcpprobe.Proved || report.Diagnostics.SessionID != "s-1" {
		t.Errorf("got %s, session %q: %s", report.Outcome, report.Diagnostics.SessionID, report.Diagnostics.Cause)
	}
	if address := <-dialled; address != "127.0.0.9:8080" {
		t.Errorf("dialled %q", address)
	}
	if len(tools) != 1 || !strings.Contains(tools[0], `"alpha"`) {
		t.Errorf("saw %q", tools)
	}
	facts := report.Facts()
	report.Diagnostics.SessionID = "other"
	if report.Facts() != facts {
		t.Error("a session is a fact")
	}
}
