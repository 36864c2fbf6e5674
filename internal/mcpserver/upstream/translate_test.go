// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpprobe/fakemcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// scripted is a server whose tool "ask" answers as it is told.
func scripted(t *testing.T, modern bool) (*fakemcp.Server, *Manager) {
	t.Helper()
	f := fakemcp.New()
	f.Settings.Modern, f.Settings.Legacy = modern, !modern
	f.Settings.Capabilities = map[string]any{"tools": map[string]any{}, "logging": map[string]any{}}
	f.Settings.Tools = []json.RawMessage{fakemcp.Tool("ask")}
	web := httptest.NewServer(f)
	t.Cleanup(web.Close)
	t.Cleanup(f.Release)
	protocol := serverconfig.ProtocolLegacy
	if modern {
		protocol = serverconfig.ProtocolModern
	}
	return f, managing(t, hasty, serverconfig.Upstream{Name: "u", Protocol: protocol, Connection: serverconfig.Connection{URL: web.URL}})
}

// TestModernPassesAsItStands: between two modern sides nothing is changed.
func TestModernPassesAsItStands(t *testing.T) {
	f, m := scripted(t, true)
	const requests = `{"b":{"method":"elicitation/create","params":{"z":1.50,"a":"\u00e9"}},"a":{"method":"roots/list"}}`
	const state = `"opaque \u0041 <state>"`
	f.On("tools/call", func(c *fakemcp.Call) {
		if strings.Contains(string(c.Params), "inputResponses") {
			c.Text(http.StatusOK, "application/json", c.Response(json.RawMessage(`{"resultType":"complete","content":[]}`)))
			return
		}
		c.Text(http.StatusOK, "application/json", `{"jsonrpc":"2.0","id":`+string(c.ID)+`,"result":{"resultType":"input_required","inputRequests":`+requests+
			`,"requestState":`+state+`,"_meta":{"mine":1}}}`)
	})
	who := &caller{t: t, modern: true, declares: `{"elicitation":{ "form":{} },"roots":{}}`, level: "notice"}
	c := toolCall("Kim", who)
	result, err := ask(m).Call(t.Context(), c)
	if err != nil || result.Input == nil || string(result.Input.Requests) != requests || string(result.Input.State) != state || string(result.Meta) != `{"mine":1}` {
		t.Fatalf("%+v, %v", result, err)
	}
	c.Responses, c.State = []byte(`{"a":{"roots":[]}, "b":{"action":"decline"}}`), result.Input.State
	if result, err = ask(m).Call(t.Context(), c); err != nil || result.Input != nil {
		t.Fatalf("%+v, %v", result, err)
	}
	var calls []string
	for _, r := range f.Requests() {
		if r.Method == "tools/call" {
			calls = append(calls, string(r.Body))
		}
	}
	for _, body := range calls {
		if !strings.Contains(body, `"io.modelcontextprotocol/clientCapabilities":{"elicitation":{ "form":{} },"roots":{}}`) ||
			!strings.Contains(body, `"io.modelcontextprotocol/logLevel":"notice"`) {
			t.Errorf("sent %s", body)
		}
	}
	if len(calls) != 2 || !strings.Contains(calls[1], `"inputResponses":`+string(c.Responses)+`,"requestState":`+state) || strings.Contains(calls[0], "requestState") {
		t.Errorf("sent %q", calls)
	}
}

// TestErrorsInTheCallersEra: errors of the protocol that mean something to the
// caller's program reach it in its own era, others are the tool's answer.
func TestErrorsInTheCallersEra(t *testing.T) {
	const visit = `{"elicitations":[{"mode":"url","elicitationId":"e","url":"https://auth.test/","message":"sign in"}]}`
	for name, test := range map[string]struct {
		server, client bool // modern
		declares       string
		code           int
		data           string
		reason         call.Reason
		answer         int
		input          string
	}{
		"capability to modern": {true, true, `{}`, mcp.CodeMissingRequiredClientCapability, `{"requiredCapabilities":{"sampling":{}}}`, call.UpstreamError, mcp.CodeMissingRequiredClientCapability, ""},
		"capability to legacy": {true, false, `{}`, mcp.CodeMissingRequiredClientCapability, `{}`, call.CannotAsk, 0, ""},
		"URL to legacy":        {false, false, `{}`, mcp.CodeURLElicitationRequired, visit, call.UpstreamError, mcp.CodeURLElicitationRequired, ""},
		"URL to modern": {false, true, `{"elicitation":{"url":{}}}`, mcp.CodeURLElicitationRequired, visit, "", 0,
			`{"u1":{"method":"elicitation/create","params":{"mode":"url","elicitationId":"e","url":"https://auth.test/","message":"sign in"}}}`},
		"URL to modern without": {false, true, `{"elicitation":{"form":{}}}`, mcp.CodeURLElicitationRequired, visit, call.CannotAsk, mcp.CodeMissingRequiredClientCapability, ""},
		"URL without any":       {false, true, `{"elicitation":{"url":{}}}`, mcp.CodeURLElicitationRequired, `{}`, call.UpstreamError, 0, ""},
		"any other":             {true, true, `{}`, -32000, `{"a":1}`, call.UpstreamError, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f, m := scripted(t, test.server)
			f.On("tools/call", func(c *fakemcp.Call) { c.Error(http.StatusOK, test.code, "words", json.RawMessage(test.data)) })
			who := &caller{t: t, modern: test.client, declares: test.declares}
			result, err := ask(m).Call(t.Context(), toolCall("Kim", who))
			if test.input != "" {
				if err != nil || result.Input == nil || string(result.Input.Requests) != test.input || result.Input.State != nil {
					t.Fatalf("%+v, %v", result, err)
				}
				return
			}
			var failure *call.Error
			if !errors.As(err, &failure) || failure.Reason != test.reason || (failure.RPC != nil) != (test.answer != 0) {
				t.Fatalf("%+v, %v", result, err)
			}
			if failure.RPC != nil && failure.RPC.Code != test.answer {
				t.Errorf("%+v", failure.RPC)
			}
			if failure.RPC != nil && test.answer == test.code && string(failure.RPC.Data) != test.data {
				t.Errorf("data %s", failure.RPC.Data)
			}
		})
	}
}

// TestRoundsEnd: a server that never has enough is given up; a client that
// answers with an error, or cannot be asked, ends the call.
func TestRoundsEnd(t *testing.T) {
	f, m := scripted(t, true)
	var requests string
	f.On("tools/call", func(c *fakemcp.Call) {
		c.Result(map[string]any{"resultType": "input_required", "requestState": "s", "inputRequests": json.RawMessage(requests)})
	})
	const form = `{"a":{"method":"elicitation/create","params":{"message":"more?"}},"b":{"method":"sampling/createMessage","params":{"_meta":{"progressToken":1}}}}`
	for name, test := range map[string]struct {
		requests string
		answer   func(context.Context, string, json.RawMessage) (json.RawMessage, error)
		reason   call.Reason
		asked    int
	}{
		"never enough": {form, func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
			return json.RawMessage("{}"), nil
		}, call.UpstreamError, 20},
		"refused": {form, func(_ context.Context, method string, _ json.RawMessage) (json.RawMessage, error) {
			if method == mcp.MethodElicit {
				return nil, &call.RPCAnswer{Code: -1, Message: "no"}
			}
			return json.RawMessage("{}"), nil
		}, call.CannotAsk, 2},
		"cannot be asked": {form, nil, call.CannotAsk, 0},
		"odd method":      {`{"a":{"method":"tools/call"}}`, answering, call.InvalidResult, 0},
		"no questions":    {`[]`, answering, call.InvalidResult, 0},
	} {
		t.Run(name, func(t *testing.T) {
			requests = test.requests
			var mu sync.Mutex
			asked := 0
			who := &caller{t: t, declares: declaresAll, session: "s"}
			if test.answer != nil {
				who.answer = func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
					mu.Lock()
					defer mu.Unlock()
					asked++
					if strings.Contains(string(params), "progressToken") {
						t.Errorf("asked with %s", params)
					}
					return test.answer(ctx, method, params)
				}
			}
			_, err := ask(m).Call(t.Context(), toolCall("Kim", who))
			var failure *call.Error
			if !errors.As(err, &failure) || failure.Reason != test.reason || asked != test.asked {
				t.Errorf("asked %d times, %v", asked, err)
			}
		})
	}
}
