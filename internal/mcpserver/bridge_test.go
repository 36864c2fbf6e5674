// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

const sharedURI = "docs://shared"

// inquirer is a server of somebody else's making, whose tool "ask" tells of
// progress, logs, and wants to know a name.
func inquirer(t *testing.T, modern bool) (*sdk.Server, serverconfig.Upstream) {
	t.Helper()
	server := sdk.NewServer(&sdk.Implementation{Name: "inquirer", Version: "1"}, &sdk.ServerOptions{
		Capabilities: &sdk.ServerCapabilities{
			Tools: &sdk.ToolCapabilities{}, Logging: &sdk.LoggingCapabilities{}, Resources: &sdk.ResourceCapabilities{Subscribe: true},
		},
		SubscribeHandler:   func(context.Context, *sdk.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *sdk.UnsubscribeRequest) error { return nil },
	})
	server.AddResource(&sdk.Resource{URI: sharedURI, Name: "shared"}, func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: sharedURI, Text: "text"}}}, nil
	})
	server.AddTool(&sdk.Tool{Name: "ask", InputSchema: map[string]any{"type": "object"}}, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		var args struct{ Who string }
		if err := json.Unmarshal(r.Params.Arguments, &args); err != nil {
			return nil, err
		}
		if token := r.Params.GetProgressToken(); token != nil {
			_ = r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: 1, Message: args.Who})
		}
		_ = r.Session.Log(ctx, &sdk.LoggingMessageParams{Level: "warning", Data: args.Who})
		question := &sdk.ElicitParams{Mode: "form", Message: args.Who, RequestedSchema: map[string]any{
			"type": "object", "properties": map[string]any{"name": map[string]any{"type": "string"}},
		}}
		answer, _ := r.Params.InputResponses["name"].(*sdk.ElicitResult)
		switch {
		case !modern:
			var err error
			if answer, err = r.Session.Elicit(ctx, question); err != nil {
				return nil, err
			}
		case answer == nil:
			return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{"name": question}, RequestState: "state of " + args.Who}, nil
		case r.Params.RequestState != "state of "+args.Who:
			return nil, fmt.Errorf("%s has the state %q", args.Who, r.Params.RequestState)
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: fmt.Sprint("hello ", answer.Content["name"])}}}, nil
	})
	options, protocol := &sdk.StreamableHTTPOptions{}, serverconfig.ProtocolLegacy
	if modern {
		options, protocol = &sdk.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true}, serverconfig.ProtocolModern
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

// asked is a client of somebody else's making that is asked. What it hears must
// have its name.
type asked struct {
	t       *testing.T
	name    string
	modern  bool
	session *sdk.ClientSession
	updated chan string

	mu sync.Mutex
	// leaves are calls that are cancelled when they are asked.
	leaves        map[string]context.CancelFunc
	progress, log int
}

func (f *fixture) asked(name, version string, client *http.Client) *asked {
	f.t.Helper()
	a := &asked{t: f.t.(*testing.T), name: name, modern: mcp.IsModern(version), updated: make(chan string, 100), leaves: map[string]context.CancelFunc{}}
	c := sdk.NewClient(&sdk.Implementation{Name: name, Version: "1"}, &sdk.ClientOptions{
		ElicitationHandler:     a.answer,
		ResourceUpdatedHandler: func(_ context.Context, r *sdk.ResourceUpdatedNotificationRequest) { a.updated <- r.Params.URI },
		LoggingMessageHandler:  func(_ context.Context, r *sdk.LoggingMessageRequest) { a.hears(&a.log, fmt.Sprint(r.Params.Data)) },
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
			a.hears(&a.progress, r.Params.Message)
		},
	})
	session, err := c.Connect(f.t.Context(), &sdk.StreamableClientTransport{Endpoint: f.url(), HTTPClient: client, MaxRetries: -1}, &sdk.ClientSessionOptions{ProtocolVersion: version})
	must(f.t, err)
	f.t.Cleanup(func() { _ = session.Close() })
	a.session = session
	if !a.modern {
		must(f.t, session.SetLoggingLevel(f.t.Context(), &sdk.SetLoggingLevelParams{Level: "info"}))
	}
	return a
}

func (a *asked) mine(text string) {
	if !strings.HasPrefix(text, a.name+"/") {
		a.t.Errorf("%s hears %q", a.name, text)
	}
}

func (a *asked) hears(count *int, text string) {
	a.mine(text)
	a.mu.Lock()
	defer a.mu.Unlock()
	*count++
}

func (a *asked) answer(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
	a.mine(r.Params.Message)
	a.mu.Lock()
	leave := a.leaves[r.Params.Message]
	a.mu.Unlock()
	if leave != nil {
		leave()
		return nil, context.Canceled
	}
	return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"name": "Mx " + r.Params.Message}}, nil
}

// call calls "ask" as one of many; the progress tokens are those of others as
// well.
func (a *asked) call(i int, leaves bool) {
	ctx, cancel := context.WithTimeout(a.t.Context(), 30*time.Second)
	defer cancel()
	who := fmt.Sprintf("%s/%d", a.name, i)
	if leaves {
		a.mu.Lock()
		a.leaves[who] = cancel
		a.mu.Unlock()
	}
	params := &sdk.CallToolParams{Name: "ask", Arguments: map[string]any{"who": who}}
	if a.modern {
		params.Meta = sdk.Meta{mcp.MetaLogLevel: "info"}
	}
	params.SetProgressToken(fmt.Sprint("token-", i))
	result, err := a.session.CallTool(ctx, params)
	if leaves {
		return
	}
	if err != nil || result.IsError || result.Content[0].(*sdk.TextContent).Text != "hello Mx "+who {
		a.t.Errorf("%s: %+v, %v", who, result, err)
	}
}

// TestEachClientHearsItsOwn: two clients with equal ids of requests, equal
// progress tokens and equal URIs before one pooled upstream. Progress, logs,
// questions, answers and updates reach exactly the asker, under load and with
// cancellations, whatever the eras.
func TestEachClientHearsItsOwn(t *testing.T) {
	for _, upstream := range []bool{false, true} {
		for _, versions := range [][2]string{
			{mcp.Version20251125, mcp.Version20251125}, {mcp.Version20260728, mcp.Version20260728}, {mcp.Version20250618, mcp.Version20260728},
		} {
			t.Run(fmt.Sprintf("modern upstream %t, clients %v", upstream, versions), func(t *testing.T) {
				server, u := inquirer(t, upstream)
				f := start(t, fronting(u), hurried)
				f.lists("ask", "own")
				clients := []*asked{f.asked("a", versions[0], f.client), f.asked("b", versions[1], f.client)}
				for _, c := range clients {
					if !c.modern {
						must(t, c.session.Subscribe(t.Context(), &sdk.SubscribeParams{URI: sharedURI}))
					}
				}
				const calls = 18
				var work sync.WaitGroup
				for i := range calls {
					for _, c := range clients {
						work.Go(func() { c.call(i, i%3 == 2) })
					}
				}
				work.Wait()
				for _, c := range clients {
					c.mu.Lock()
					if c.progress < calls*2/3 || c.log < calls*2/3 {
						t.Errorf("%s hears of progress %d times, of logs %d times", c.name, c.progress, c.log)
					}
					c.mu.Unlock()
				}
				must(t, server.ResourceUpdated(t.Context(), &sdk.ResourceUpdatedNotificationParams{URI: sharedURI}))
				for _, c := range clients {
					if c.modern {
						continue
					}
					select {
					case uri := <-c.updated:
						if uri != sharedURI {
							t.Errorf("%s hears of %s", c.name, uri)
						}
					case <-time.After(time.Minute):
						t.Errorf("%s hears of no update", c.name)
					}
				}
			})
		}
	}
}
