// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/mcpserver/auth"
	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/mcpserver/metrics"
	"github.com/espalier-dev/espalier/internal/mcpserver/principal"
	"github.com/espalier-dev/espalier/internal/mcpserver/registry"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
	"github.com/espalier-dev/espalier/internal/schema"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// TestForgetfulTransport: a transport that says nothing of the caller opens no
// server that wants to know.
func TestForgetfulTransport(t *testing.T) {
	reg := registry.New()
	e := New(reg, metrics.New("test"), slog.New(slog.DiscardHandler))
	noHandler := func(*serverconfig.Tool, *schema.Schema) (call.Handler, error) { return call.Func(nil), nil }
	config := &serverconfig.Config{Auth: &serverconfig.Auth{}}
	reg.Swap(t.Context(), registry.Build(config, "d", registry.Factories{Tool: noHandler}, nil))
	ask := func(method string, caller *principal.Principal) string {
		m := &wire.Message{ID: []byte("1"), Method: method}
		reply := e.Handle(t.Context(), &Request{Snapshot: reg.Snapshot(), Era: Legacy, Message: m, Caller: caller})
		return string(reply.Body)
	}
	for _, method := range []string{"initialize", "tools/list", "tools/call", "ping"} {
		if got := ask(method, nil); !strings.Contains(got, "AuthRequired") {
			t.Errorf("%s: %s", method, got)
		}
	}
	known := principal.New(principal.APIKey, "ci", nil, nil, time.Time{})
	if got := ask("tools/list", known); !strings.Contains(got, `"tools":[]`) {
		t.Errorf("a known caller: %s", got)
	}
	probe := principal.New(principal.Probe, "", nil, nil, time.Time{})
	for method, may := range map[string]bool{
		"tools/list": true, "prompts/list": true, "resources/list": true, "resources/templates/list": true, "server/discover": true,
		"initialize": true, "ping": true, "tools/call": false, "resources/read": false, "prompts/get": false,
		"completion/complete": false, "subscriptions/listen": false, "resources/subscribe": false, "logging/setLevel": false,
	} {
		if probeMay(method) != may {
			t.Errorf("the probe and %s: %v", method, !may)
		}
	}
	if got := ask("tools/call", probe); !strings.Contains(got, "ProbeMayList") {
		t.Errorf("the probe calls: %s", got)
	}
	// A snapshot whose authentication was never set up serves nobody.
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "/mcp", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, refusal := reg.Snapshot().Authenticate(r); refusal == nil || refusal.Reason != auth.ReasonNotReady {
		t.Errorf("without an authenticator: %v", refusal)
	}
}
