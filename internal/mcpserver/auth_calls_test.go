// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpserver_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/espalier-dev/espalier/internal/mcpserver"
	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// TestStreamEndsWithToken: a stream closes in good order when the token that
// opened it ends.
func TestStreamEndsWithToken(t *testing.T) {
	g := startGuarded(t, nil, tool("ping", nil))
	response, err := g.client.Do(as(g.modern("subscriptions/listen", `"notifications":{"toolsListChanged":true}`), g.token(map[string]any{"exp": time.Now().Add(4 * time.Second).Unix()})))
	must(t, err)
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Fatalf("status %d", response.StatusCode)
	}
	ended := make(chan string, 1)
	go func() {
		last := ""
		lines := bufio.NewScanner(response.Body)
		for lines.Scan() {
			if text := lines.Text(); strings.HasPrefix(text, "data:") {
				last = text
			}
		}
		ended <- last
	}()
	select {
	case last := <-ended:
		if !strings.Contains(last, `"result"`) {
			t.Errorf("the stream ended with %s", last)
		}
	case <-time.After(time.Minute):
		t.Error("the stream outlives its token")
	}
}

// TestBudgetOverHTTP: a used-up budget is the tool's error with a typed
// reason, each caller's own, and lists go on.
func TestBudgetOverHTTP(t *testing.T) {
	g := startGuarded(t, func(c *serverconfig.Config) {
		c.Limits.Rules = []serverconfig.LimitRule{{Tools: []string{"p*"}, Budget: &serverconfig.Budget{Calls: 2, WindowSeconds: 3600}}}
	}, tool("ping", nil), tool("other", nil))
	alice, bob := g.token(nil), g.token(map[string]any{"sub": "bob"})
	for i, want := range []string{"", "", "BudgetExceeded", "BudgetExceeded"} {
		got := g.do(as(g.callModern("ping", "{}"), alice))
		if got.status != http.StatusOK || got.reason() != want || want != "" && got.result()["isError"] != true {
			t.Errorf("call %d: %d, %s", i+1, got.status, got.body)
		}
	}
	for name, token := range map[string]string{"ping": bob, "other": alice} {
		if got := g.do(as(g.callModern(name, "{}"), token)); got.reason() != "" {
			t.Errorf("%s: %s", name, got.body)
		}
	}
	if len(g.names(alice)) != 2 {
		t.Error("the list is limited")
	}
}

// TestExtensions: what is declared is advertised in both eras; equal
// declarations are one, unequal ones hide the name, logged once per new state.
func TestExtensions(t *testing.T) {
	declare := func(name, settings string) serverconfig.Extension {
		return serverconfig.Extension{Name: name, Settings: json.RawMessage(settings)}
	}
	c := config(tool("ping", nil))
	c.Extensions = []serverconfig.Extension{declare("com.example/b", `{"version": "1", "n": 1}`), declare("com.example/a", `{}`), declare("com.example/c", `[]`)}
	f := start(t, c, func(o *mcpserver.Options) {
		o.Extensions = []serverconfig.Extension{declare("com.example/b", `{"n":1,"version":"1"}`), declare("com.example/a", `{"other":true}`)}
	})
	advertised := func() string {
		t.Helper()
		modern := f.do(f.modern("server/discover", "")).result()["capabilities"].(map[string]any)["extensions"]
		legacy := f.do(f.post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}`)).result()["capabilities"].(map[string]any)["extensions"]
		if diff := cmp.Diff(modern, legacy); diff != "" {
			t.Errorf("the eras differ:\n%s", diff)
		}
		return fmt.Sprint(modern)
	}
	if got := advertised(); got != "map[com.example/b:map[n:1 version:1]]" {
		t.Errorf("advertised: %s", got)
	}
	c.Server.Version = "2"
	f.reload(c)
	if n := f.logged("Extensions are hidden"); n != 1 {
		t.Errorf("logged %d times for one state", n)
	}
	c.Extensions = []serverconfig.Extension{declare("com.example/a", `{"other":true}`)}
	f.reload(c)
	if got := advertised(); got != "map[com.example/a:map[other:true] com.example/b:map[n:1 version:1]]" {
		t.Errorf("advertised: %s", got)
	}
}

// TestReloadOfAuth: rules change while callers are served: nobody slips
// through, and a catalog that asks more than this server knows changes
// nothing.
func TestReloadOfAuth(t *testing.T) {
	g := startGuarded(t, nil, tool("ping", nil))
	token := g.token(nil)
	if got := g.names(token); len(got) != 1 {
		t.Fatal(got)
	}
	g.reload(g.config(func(c *serverconfig.Config) { c.Auth.JWT.Audiences = []string{"new"} }, tool("ping", nil)))
	if got := g.do(as(g.modern("tools/list", ""), token)); got.status != http.StatusUnauthorized {
		t.Errorf("another audience: %d", got.status)
	}
	open := config(tool("ping", nil), tool("pong", nil))
	open.Requires = []string{"access.of.the.future"}
	g.write(open)
	g.until("the refusal", func() bool { return slices.Contains(g.server.Report().Missing, "access.of.the.future") })
	if got := g.do(g.modern("tools/list", "")); got.status != http.StatusUnauthorized {
		t.Errorf("a catalog that is not understood opened the server: %d", got.status)
	}
	if c := g.server.Report().Credentials; len(c) != 1 || c[0].Path != "secrets/clients" || !c[0].Present {
		t.Errorf("credentials: %+v", c)
	}
}

// bearerTripper shows a token with each request, as an SDK's client does.
type bearerTripper struct {
	base  http.RoundTripper
	token string
}

func (b bearerTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	return b.base.RoundTrip(as(r.Clone(r.Context()), b.token))
}

// TestSDKClientWithToken: an independent client with tokens, in either era.
func TestSDKClientWithToken(t *testing.T) {
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		t.Run(version, func(t *testing.T) {
			g := startGuarded(t, func(c *serverconfig.Config) {
				c.Access = &serverconfig.Access{Rules: []serverconfig.AccessRule{{Tools: []string{"admin_*"}, When: "'admin' in principal.scopes"}}}
			}, tool("admin_stop", nil), tool("ping", nil))
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			for scope, want := range map[string]string{"admin": "[admin_stop ping]", "user": "[ping]"} {
				client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
				web := &http.Client{Transport: bearerTripper{g.client.Transport, g.token(map[string]any{"scope": scope})}}
				session, err := client.Connect(ctx, &sdk.StreamableClientTransport{Endpoint: g.url(), HTTPClient: web, MaxRetries: -1}, &sdk.ClientSessionOptions{ProtocolVersion: version})
				must(t, err)
				var names []string
				for tool, err := range session.Tools(ctx, nil) {
					must(t, err)
					names = append(names, tool.Name)
				}
				if got := fmt.Sprint(names); got != want {
					t.Errorf("%s is listed %s", scope, got)
				}
				_, err = session.CallTool(ctx, &sdk.CallToolParams{Name: "admin_stop"})
				if (err == nil) != (scope == "admin") {
					t.Errorf("%s calls admin_stop: %v", scope, err)
				}
				_ = session.Close()
			}
		})
	}
}

// TestDeclaredErrors: middleware may answer by an error of the protocol, with a
// code that is its own; one that is the specification's becomes a failure.
func TestDeclaredErrors(t *testing.T) {
	for code, allowed := range map[int]bool{
		-32000: true, -32019: true, -31999: true, 7: true, -40000: true, -32768: false, -32602: false, -32020: false, -32099: false,
	} {
		f := start(t, config(tool("ping", nil)), func(o *mcpserver.Options) {
			o.Middleware = []call.Middleware{func(call.Func) call.Func {
				return func(context.Context, *call.Call) (*call.Result, error) {
					return nil, &call.RPCError{Code: code, Message: "closed today", Data: json.RawMessage(`{"reason":"Holiday"}`)}
				}
			}}
		})
		got := f.do(f.callModern("ping", "{}"))
		switch {
		case allowed && (got.errorCode() != code || dataReason(got) != "Holiday" || got.status != http.StatusOK):
			t.Errorf("%d: %d, %s", code, got.status, got.body)
		case !allowed && (got.reason() != "Internal" || strings.Contains(got.body, "closed today")):
			t.Errorf("%d: %s", code, got.body)
		}
	}
}

// TestMiddlewareKnowsTheCaller: the verified principal reaches middleware and
// handlers (G7).
func TestMiddlewareKnowsTheCaller(t *testing.T) {
	seen := make(chan string, 1)
	g := startGuardedWith(t, []call.Middleware{func(next call.Func) call.Func {
		return func(ctx context.Context, c *call.Call) (*call.Result, error) {
			seen <- string(c.Caller.Kind) + " " + c.Caller.Subject + " " + c.Tool
			return next(ctx, c)
		}
	}}, nil, tool("ping", nil))
	for token, want := range map[string]string{g.token(nil): "JWT alice ping", "key-of-ci": "APIKey ci ping"} {
		g.do(as(g.callModern("ping", "{}"), token))
		if got := <-seen; got != want {
			t.Error(got)
		}
	}
}
