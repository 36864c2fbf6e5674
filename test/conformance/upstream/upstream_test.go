// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const soon = 20 * time.Second

// heard is what a client was told between its calls.
type heard struct {
	progress, logs atomic.Int32
	tools, prompts chan struct{}
}

// connect opens a client that answers questions, in one revision.
func connect(t *testing.T, era Era, version string) (*mcp.ClientSession, *heard) {
	t.Helper()
	server, err := New(era)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(server)
	t.Cleanup(web.Close)
	t.Cleanup(server.Close)
	h := &heard{tools: make(chan struct{}, 10), prompts: make(chan struct{}, 10)}
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		CreateMessageHandler: func(context.Context, *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			return &mcp.CreateMessageResult{Role: "assistant", Model: "m", Content: &mcp.TextContent{Text: "Paris"}}, nil
		},
		ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: answer(r.Params.RequestedSchema)}, nil
		},
		ProgressNotificationHandler: func(context.Context, *mcp.ProgressNotificationClientRequest) { h.progress.Add(1) },
		LoggingMessageHandler:       func(context.Context, *mcp.LoggingMessageRequest) { h.logs.Add(1) },
		ToolListChangedHandler:      func(context.Context, *mcp.ToolListChangedRequest) { h.tools <- struct{}{} },
		PromptListChangedHandler:    func(context.Context, *mcp.PromptListChangedRequest) { h.prompts <- struct{}{} },
	})
	client.AddRoots(&mcp.Root{URI: "file:///a"})
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: web.URL}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session, h
}

// answer fills a form in with what each field's schema allows.
func answer(schema any) map[string]any {
	raw, _ := json.Marshal(schema)
	var form struct {
		Properties map[string]struct {
			Type  string
			Enum  []string
			OneOf []struct{ Const string }
			Items struct {
				Enum  []string
				AnyOf []struct{ Const string }
			}
		}
	}
	_ = json.Unmarshal(raw, &form)
	out := map[string]any{}
	for name, field := range form.Properties {
		switch {
		case len(field.Enum) > 0:
			out[name] = field.Enum[0]
		case len(field.OneOf) > 0:
			out[name] = field.OneOf[0].Const
		case len(field.Items.Enum) > 0:
			out[name] = []string{field.Items.Enum[0]}
		case len(field.Items.AnyOf) > 0:
			out[name] = []string{field.Items.AnyOf[0].Const}
		case field.Type == "boolean":
			out[name] = true
		case field.Type == "string":
			out[name] = "my " + name
		default:
			out[name] = 7
		}
	}
	return out
}

func TestTools(t *testing.T) {
	cases := []struct {
		tool string
		args map[string]any
		want string
	}{
		{"test_sampling", map[string]any{"prompt": "p"}, "LLM response: Paris"},
		{"test_elicitation", map[string]any{"message": "m"}, `action=accept, content={"email":"my email","username":"my username"}`},
		{"test_elicitation_sep1034_defaults", nil, `"status":"active"`},
		{"test_elicitation_sep1330_enums", nil, `"titledMulti":["value1"]`},
		{"test_streaming_elicitation", nil, `"username":"my username"`},
		{"test_missing_capability", nil, "can sample"},
		{"test_input_required_result_elicitation", nil, "Hello, my name!"},
		{"test_input_required_result_sampling", nil, "Paris"},
		{"test_input_required_result_list_roots", nil, `["file:///a"]`},
		{"test_input_required_result_request_state", nil, "state-ok"},
		{"test_input_required_result_tampered_state", nil, "state-ok"},
		{"test_input_required_result_multiple_inputs", nil, `Paris my name ["file:///a"]`},
		{"test_input_required_result_multi_round", nil, "my name likes my color"},
		{"test_input_required_result_capabilities", nil, "Answered."},
		{"test_reconnection", nil, "done"},
	}
	for _, v := range []struct {
		era     Era
		version string
	}{{Auto, "2026-07-28"}, {Auto, "2025-11-25"}, {Modern, "2026-07-28"}, {Legacy, "2025-06-18"}} {
		t.Run(string(v.era)+" "+v.version, func(t *testing.T) {
			session, _ := connect(t, v.era, v.version)
			ctx, cancel := context.WithTimeout(t.Context(), soon)
			defer cancel()
			for _, tc := range cases {
				if tc.tool == "test_reconnection" && v.version < "2025-11-25" {
					continue // A stream that ends early is an error before that revision.
				}
				result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tc.tool, Arguments: tc.args})
				if err != nil || result.IsError || !strings.Contains(result.Content[0].(*mcp.TextContent).Text, tc.want) {
					t.Errorf("%s: %+v, %v", tc.tool, result, err)
				}
			}
			got, err := session.GetPrompt(ctx, &mcp.GetPromptParams{Name: "test_input_required_result_prompt"})
			if err != nil || got.Messages[0].Content.(*mcp.TextContent).Text != "Context: my context" {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

func TestTelling(t *testing.T) {
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		t.Run(version, func(t *testing.T) {
			session, h := connect(t, Auto, version)
			ctx, cancel := context.WithTimeout(t.Context(), soon)
			defer cancel()
			call := func(tool string, meta mcp.Meta) {
				t.Helper()
				if _, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Meta: meta}); err != nil {
					t.Fatal(tool, err)
				}
			}
			call("test_tool_with_progress", mcp.Meta{"progressToken": "p"})
			call("test_tool_with_logging", nil)
			if h.logs.Load() != 0 {
				t.Error("logs were sent to a client that did not ask for them")
			}
			level := mcp.Meta{"io.modelcontextprotocol/logLevel": "info"}
			if version < "2026" {
				level = nil
				if err := session.SetLoggingLevel(ctx, &mcp.SetLoggingLevelParams{Level: "info"}); err != nil {
					t.Fatal(err)
				}
			}
			call("test_tool_with_logging", level)
			// Notifications are handled beside the answer that they came before.
			for ctx.Err() == nil && (h.progress.Load() < 3 || h.logs.Load() < 3) {
				time.Sleep(time.Millisecond)
			}
			if h.progress.Load() != 3 || h.logs.Load() != 3 {
				t.Errorf("%d times progress, %d logs", h.progress.Load(), h.logs.Load())
			}
		})
	}
}

func TestChanges(t *testing.T) {
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		t.Run(version, func(t *testing.T) {
			session, h := connect(t, Auto, version)
			ctx, cancel := context.WithTimeout(t.Context(), soon)
			defer cancel()
			for range 2 {
				for tool, changed := range map[string]chan struct{}{"test_trigger_tool_change": h.tools, "test_trigger_prompt_change": h.prompts} {
					if _, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tool}); err != nil {
						t.Fatal(err)
					}
					select {
					case <-changed:
					case <-ctx.Done():
						t.Fatal("the change was not told")
					}
				}
			}
		})
	}
}

// TestRefusals: what a client cannot answer is not asked, and a changed state
// is none.
func TestRefusals(t *testing.T) {
	server, err := New(Auto)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(server)
	defer web.Close()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{}})
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: web.URL, MaxRetries: -1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	for _, tool := range []string{"test_missing_capability", "test_input_required_result_elicitation", "test_input_required_result_list_roots"} {
		var failure *jsonrpc.Error
		if _, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tool}); !errors.As(err, &failure) || failure.Code != mcp.CodeMissingRequiredClientCapabilities {
			t.Errorf("%s: %v", tool, err)
		}
	}
	_, err = session.CallTool(ctx, &mcp.CallToolParams{Name: "test_input_required_result_tampered_state", RequestState: newSigner().seal("confirm test_input_required_result_tampered_state")})
	var failure *jsonrpc.Error
	if !errors.As(err, &failure) || failure.Code != jsonrpc.CodeInvalidParams {
		t.Errorf("a state of another key: %v", err)
	}
}

// TestPinned: a server of one era refuses the other.
func TestPinned(t *testing.T) {
	for era, version := range map[Era]string{Legacy: "2026-07-28", Modern: "2025-11-25"} {
		server, err := New(era)
		if err != nil {
			t.Fatal(err)
		}
		web := httptest.NewServer(server)
		ctx, cancel := context.WithTimeout(t.Context(), soon)
		client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
		session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: web.URL, MaxRetries: -1}, &mcp.ClientSessionOptions{ProtocolVersion: version})
		if err == nil && session.InitializeResult().ProtocolVersion == version {
			t.Errorf("%s speaks %s", era, version)
		}
		if session != nil {
			_ = session.Close()
		}
		cancel()
		server.Close()
		web.Close()
	}
	if _, err := New("Future"); err == nil {
		t.Error("an era that does not exist")
	}
}
