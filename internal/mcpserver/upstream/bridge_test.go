// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/mcpserver/credentials"
	"github.com/espalier-dev/espalier/internal/mcpserver/principal"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// caller is a client that is asked.
type caller struct {
	t             *testing.T
	modern        bool
	declares      string
	session       string
	level         string
	answer        func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)
	mu            sync.Mutex
	over          bool
	notifications []string
}

func (c *caller) Modern() bool                  { return c.modern }
func (c *caller) Capabilities() json.RawMessage { return json.RawMessage(c.declares) }
func (c *caller) Session() string               { return c.session }
func (c *caller) LogLevel() string              { return c.level }

func (c *caller) used() {
	if c.over {
		c.t.Error("the client is used after the handler returned")
	}
}

func (c *caller) Ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	c.mu.Lock()
	c.used()
	c.mu.Unlock()
	if c.modern || c.answer == nil {
		return nil, call.ErrCannotAsk
	}
	return c.answer(ctx, method, params)
}

func (c *caller) Notify(method string, params json.RawMessage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.used()
	c.notifications = append(c.notifications, method+" "+string(params))
}

func (c *caller) end() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	return c.notifications
}

// hasty is a timing for tests.
var hasty = Timing{
	Health: time.Hour, Handshake: 5 * time.Second, Keep: time.Minute, Settle: time.Minute, Refresh: time.Hour, Seldom: time.Hour,
	Backoff: 10 * time.Millisecond, MaxBackoff: 50 * time.Millisecond, Credential: time.Hour,
}

// managing runs a manager of upstreams until they all answered.
func managing(t *testing.T, timing Timing, upstreams ...serverconfig.Upstream) *Manager {
	t.Helper()
	changed := make(chan struct{}, 1)
	web := &http.Transport{}
	m := New(Options{
		Client:      func(*serverconfig.TLS) (*http.Client, error) { return &http.Client{Transport: web}, nil },
		Credentials: credentials.New(t.TempDir()), Version: "test", Log: slog.New(slog.DiscardHandler), Timing: timing, Self: func() string { return "me" },
		Changed: func() {
			select {
			case changed <- struct{}{}:
			default:
			}
		},
	})
	t.Cleanup(web.CloseIdleConnections)
	t.Cleanup(m.Close)
	m.Configure(&serverconfig.Config{Upstreams: upstreams})
	deadline := time.After(time.Minute)
	for len(m.Listings()) < len(upstreams) {
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("not all answer: %+v", m.Report(nil))
		}
	}
	return m
}

const declaresAll = `{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{"listChanged":true},"experimental":{"x":{}}}`

// asking is a server of somebody else's making whose tool and prompt "ask"
// want to know a name, tell of progress, and log.
func asking(t *testing.T, modern bool) (*sdk.Server, serverconfig.Upstream) {
	t.Helper()
	server := sdk.NewServer(&sdk.Implementation{Name: "sdk", Version: "1"}, &sdk.ServerOptions{
		Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}, Prompts: &sdk.PromptCapabilities{}, Logging: &sdk.LoggingCapabilities{}},
	})
	server.AddTool(&sdk.Tool{Name: "ask", InputSchema: map[string]any{"type": "object"}}, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		var args struct{ Who string }
		if err := json.Unmarshal(r.Params.Arguments, &args); err != nil {
			return nil, err
		}
		tell(ctx, r.Session, r.Params.GetProgressToken(), args.Who)
		text, requests, err := askName(ctx, r.Session, modern, args.Who, r.Params.InputResponses)
		if err != nil {
			return nil, err
		}
		if requests != nil {
			return &sdk.CallToolResult{InputRequests: requests, RequestState: "state of " + args.Who}, nil
		}
		if modern && r.Params.RequestState != "state of "+args.Who {
			text = "a foreign state"
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}, nil
	})
	server.AddPrompt(&sdk.Prompt{Name: "ask", Arguments: []*sdk.PromptArgument{{Name: "who"}}}, func(ctx context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		text, requests, err := askName(ctx, r.Session, modern, r.Params.Arguments["who"], r.Params.InputResponses)
		if err != nil {
			return nil, err
		}
		if requests != nil {
			return &sdk.GetPromptResult{InputRequests: requests, RequestState: "s"}, nil
		}
		return &sdk.GetPromptResult{Messages: []*sdk.PromptMessage{{Role: "user", Content: &sdk.TextContent{Text: text}}}}, nil
	})
	options := &sdk.StreamableHTTPOptions{}
	protocol := serverconfig.ProtocolLegacy
	if modern {
		options = &sdk.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true}
		protocol = serverconfig.ProtocolModern
	}
	web := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, options))
	t.Cleanup(func() {
		for s := range server.Sessions() {
			_ = s.Close()
		}
		web.CloseClientConnections()
		web.Close()
	})
	return server, serverconfig.Upstream{Name: "u", Protocol: protocol, Connection: serverconfig.Connection{URL: web.URL}}
}

func tell(ctx context.Context, s *sdk.ServerSession, token any, who string) {
	if token != nil {
		_ = s.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: 1, Message: who})
	}
	for _, level := range []sdk.LoggingLevel{"debug", "warning"} {
		_ = s.Log(ctx, &sdk.LoggingMessageParams{Level: level, Data: string(level) + " " + who})
	}
}

func askName(ctx context.Context, s *sdk.ServerSession, modern bool, who string, answers sdk.InputResponseMap) (string, sdk.InputRequestMap, error) {
	params := &sdk.ElicitParams{Mode: "form", Message: "your name, " + who + "?", RequestedSchema: map[string]any{
		"type": "object", "properties": map[string]any{"name": map[string]any{"type": "string"}},
	}}
	var answer *sdk.ElicitResult
	switch {
	case !modern:
		var err error
		if answer, err = s.Elicit(ctx, params); err != nil {
			return "", nil, err
		}
	case answers == nil:
		return "", sdk.InputRequestMap{"name": params}, nil
	default:
		answer, _ = answers["name"].(*sdk.ElicitResult)
	}
	if answer == nil || answer.Action != "accept" {
		return "no name", nil, nil
	}
	return fmt.Sprint("hello ", answer.Content["name"]), nil, nil
}

// named answers with a name that has the question's in it.
func answering(_ context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	if method != mcp.MethodElicit {
		return nil, &call.RPCAnswer{Code: mcp.CodeMethodNotFound, Message: "no"}
	}
	var p struct{ Message string }
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, err
	}
	who := strings.TrimSuffix(strings.TrimPrefix(p.Message, "your name, "), "?")
	return json.RawMessage(`{"action":"accept","content":{"name":"Mx ` + who + `"}}`), nil
}

// toolCall calls the tool "ask" of u.
func toolCall(who string, client *caller) *call.Call {
	return &call.Call{
		Kind: call.Tool, Tool: "ask", RawArgs: []byte(`{"who":"` + who + `"}`), Args: map[string]any{"who": who},
		Client: client, Caller: principal.Nobody(), MaxBytes: 1 << 20,
	}
}

func ask(m *Manager) call.Handler {
	return &handler{m: m, target: serverconfig.UpstreamTool{Upstream: "u", Tool: "ask"}}
}

// answered goes on with a modern call that asks, as its client would.
func answered(ctx context.Context, t *testing.T, h call.Handler, c *call.Call, result *call.Result) (*call.Result, error) {
	t.Helper()
	if result.Input == nil {
		t.Fatalf("it does not ask: %s", result.Content)
	}
	var requests map[string]struct {
		Method string
		Params json.RawMessage
	}
	if err := json.Unmarshal(result.Input.Requests, &requests); err != nil {
		t.Fatalf("%s: %v", result.Input.Requests, err)
	}
	responses := map[string]json.RawMessage{}
	for key, r := range requests {
		answer, err := answering(ctx, r.Method, r.Params)
		if err != nil {
			t.Fatal(err)
		}
		responses[key] = answer
	}
	retry := *c
	retry.Responses, _ = json.Marshal(responses)
	retry.State = result.Input.State
	return h.Call(ctx, &retry)
}

// TestQuestionsCrossEras: callers and servers of all pairs of eras.
func TestQuestionsCrossEras(t *testing.T) {
	for _, server := range []bool{false, true} {
		for _, client := range []bool{false, true} {
			t.Run(fmt.Sprintf("modern server %t, modern caller %t", server, client), func(t *testing.T) {
				_, u := asking(t, server)
				m := managing(t, hasty, u)
				handlers := map[string]call.Handler{
					"tool": ask(m), "prompt": m.Prompt(&serverconfig.UpstreamPrompt{Upstream: "u", Prompt: "ask"}),
				}
				for kind, h := range handlers {
					who := &caller{t: t, modern: client, declares: declaresAll, answer: answering}
					if !client {
						who.session = "session-1"
					}
					c := toolCall("Kim", who)
					if kind == "prompt" {
						c.Kind = call.Prompt
					}
					result, err := h.Call(t.Context(), c)
					if err == nil && client {
						result, err = answered(t.Context(), t, h, c, result)
					}
					if err != nil || !strings.Contains(string(result.Content), "hello Mx Kim") {
						t.Errorf("%s: %+v, %v", kind, result, err)
					}
				}
			})
		}
	}
}

// TestCallerThatCannotBeAsked: it hears so, and shares a session that declares
// nothing.
func TestCallerThatCannotBeAsked(t *testing.T) {
	for _, modern := range []bool{false, true} {
		server, u := asking(t, modern)
		m := managing(t, hasty, u)
		for _, who := range []*caller{{t: t, declares: "{}", session: "s"}, {t: t, declares: "{}", modern: true}, {t: t, declares: `{"roots":{}}`, session: "r"}} {
			result, err := ask(m).Call(t.Context(), toolCall("Kim", who))
			var failure *call.Error
			if err == nil && !result.IsError && result.Input == nil || err != nil && !errors.As(err, &failure) {
				t.Errorf("modern server %t: %+v, %v", modern, result, err)
			}
		}
		n := 0
		for s := range server.Sessions() {
			n++
			if p := s.InitializeParams(); p != nil && p.Capabilities != nil && p.Capabilities.Elicitation != nil {
				t.Error("the shared session declares elicitation")
			}
		}
		if !modern && n != 1 {
			t.Errorf("%d sessions", n)
		}
	}
}

// TestEachHearsItsOwn: many callers at once, some of whom go away while they
// are asked. Progress, logs, questions and answers reach exactly the asker.
func TestEachHearsItsOwn(t *testing.T) {
	for _, server := range []bool{false, true} {
		for _, client := range []bool{false, true} {
			t.Run(fmt.Sprintf("modern server %t, modern caller %t", server, client), func(t *testing.T) {
				_, u := asking(t, server)
				m := managing(t, hasty, u)
				var callers sync.WaitGroup
				for i := range 12 {
					callers.Go(func() {
						for round := range 4 {
							oneHearsItsOwn(t, ask(m), fmt.Sprintf("p%dr%d", i, round), client, (i+round)%3 == 0)
						}
					})
				}
				callers.Wait()
			})
		}
	}
}

func oneHearsItsOwn(t *testing.T, h call.Handler, name string, modern, leaves bool) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	who := &caller{t: t, modern: modern, declares: declaresAll, level: "info"}
	if !modern {
		who.session = "of-" + name
	}
	who.answer = func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
		if !strings.Contains(string(params), name+"?") {
			t.Errorf("%s is asked %s", name, params)
		}
		if leaves {
			cancel()
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return answering(ctx, method, params)
	}
	c := toolCall(name, who)
	var mu sync.Mutex
	var progress []string
	c.Progress = func(params wire.Object) {
		text, _ := params.Text("message")
		mu.Lock()
		defer mu.Unlock()
		progress = append(progress, text)
	}
	result, err := h.Call(ctx, c)
	if err == nil && modern && !leaves {
		if !strings.Contains(string(result.Input.Requests), name+"?") {
			t.Errorf("%s is asked %s", name, result.Input.Requests)
		}
		result, err = answered(ctx, t, h, c, result)
	}
	notes := who.end()
	if !leaves && (err != nil || !strings.Contains(string(result.Content), "hello Mx "+name+`"`)) {
		t.Errorf("%s: %+v, %v", name, result, err)
	}
	for _, text := range progress {
		if text != name {
			t.Errorf("%s hears of the progress of %s", name, text)
		}
	}
	for _, note := range notes {
		if !strings.Contains(note, `"warning `+name+`"`) {
			t.Errorf("%s hears %s", name, note)
		}
	}
	if !leaves && (len(progress) == 0 || len(notes) == 0) {
		t.Errorf("%s hears progress %d, logs %d", name, len(progress), len(notes))
	}
}

// TestForwardedCapabilities: what a caller declares, and what of it goes on.
func TestForwardedCapabilities(t *testing.T) {
	child := &serverconfig.Stdio{Forward: []serverconfig.Ask{serverconfig.AskElicitation}}
	for declares, want := range map[string]struct {
		modern, legacy, child string
		asked                 bool
	}{
		`{}`:                                   {"", "", "", false},
		`{"elicitation":null}`:                 {"", "", "", false},
		`{"roots":{"a":1}}`:                    {`{"roots":{}}`, `{"roots":{}}`, "", false},
		`{"tasks":{},"sampling":{"tools":{}}}`: {`{"sampling":{"tools":{}}}`, `{"sampling":{"tools":{}}}`, "", true},
		`{"sampling":{},"elicitation":{"url":{}}}`: {
			`{"elicitation":{"url":{}},"sampling":{}}`, `{"elicitation":{"url":{}},"sampling":{}}`, `{"elicitation":{"url":{}}}`, true,
		},
		`{"extensions":{"io.modelcontextprotocol/ui":{"a":[1]},"x/y":{}}}`: {`{"extensions":{"io.modelcontextprotocol/ui":{"a":[1]}}}`, "", `{"extensions":{"io.modelcontextprotocol/ui":{"a":[1]}}}`, false},
		`nonsense`: {"", "", "", false},
	} {
		c := &call.Call{Client: &caller{t: t, declares: declares}}
		w := wishesOf(c, nil)
		if string(w.capabilities) != want.modern || string(w.legacy) != want.legacy || w.asked != want.asked {
			t.Errorf("%s: %s, legacy %s, asked %t", declares, w.capabilities, w.legacy, w.asked)
		}
		if w := wishesOf(c, child); string(w.capabilities) != want.child {
			t.Errorf("%s: a child is told %s", declares, w.capabilities)
		}
	}
}

// TestLogLevels: the least level that is wanted, and what is said in it.
func TestLogLevels(t *testing.T) {
	heard := func(least string) (out []string) {
		for _, level := range append(slices.Clone(levels), "odd") {
			if wants(least, json.RawMessage(`{"level":"`+level+`","data":1}`)) {
				out = append(out, level)
			}
		}
		return out
	}
	for least, want := range map[string]string{
		"": "[]", "debug": "[debug info notice warning error critical alert emergency odd]", "info": "[info notice warning error critical alert emergency odd]",
		"error": "[error critical alert emergency]", "emergency": "[emergency]",
	} {
		if got := fmt.Sprint(heard(least)); got != want {
			t.Errorf("%q hears %s", least, got)
		}
	}
}
