// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpprobe/fakemcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// sdkServer is a server of somebody else's making.
func sdkServer(t *testing.T, modern bool) (*sdk.Server, string) {
	t.Helper()
	server := sdk.NewServer(&sdk.Implementation{Name: "sdk", Version: "1"}, &sdk.ServerOptions{
		Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{ListChanged: true}},
	})
	addTool(server, "echo")
	options := &sdk.StreamableHTTPOptions{}
	if modern {
		options = &sdk.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true}
	}
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, options)
	web := httptest.NewServer(handler)
	t.Cleanup(func() {
		for s := range server.Sessions() {
			_ = s.Close()
		}
		web.CloseClientConnections()
		web.Close()
	})
	return server, web.URL
}

func addTool(server *sdk.Server, name string) {
	server.AddTool(&sdk.Tool{Name: name, InputSchema: map[string]any{"type": "object"}}, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		if token := r.Params.GetProgressToken(); token != nil {
			if err := r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: 1, Message: "half"}); err != nil {
				return nil, err
			}
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(r.Params.Arguments)}}}, nil
	})
}

func options(url string) Options {
	return Options{URL: url, HTTP: &http.Client{Transport: &http.Transport{}}, Version: "test", MaxBytes: 1 << 20}
}

func connect(t *testing.T, o Options) (*Session, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	s, err := Connect(ctx, o)
	if err == nil {
		t.Cleanup(func() {
			s.Close(context.Background())
			o.HTTP.CloseIdleConnections()
		})
	}
	return s, err
}

func mustConnect(t *testing.T, o Options) *Session {
	t.Helper()
	s, err := connect(t, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSDKServers speaks to servers of another make in both eras: list, call,
// progress, a sign of life, and word of a change.
func TestSDKServers(t *testing.T) {
	for _, modern := range []bool{true, false} {
		t.Run(fmt.Sprintf("modern=%t", modern), func(t *testing.T) {
			server, url := sdkServer(t, modern)
			o := options(url)
			if !modern {
				o.Protocol = serverconfig.ProtocolLegacy
			}
			s := mustConnect(t, o)
			if mcp.IsModern(s.Version()) != modern || !s.Abilities().ListChanged() {
				t.Fatalf("speaks %s, list changed %t", s.Version(), s.Abilities().ListChanged())
			}
			list, err := s.Lists(t.Context())
			if err != nil || len(list.Tools) != 1 || list.Tools[0].Name != "echo" {
				t.Fatalf("listed %+v, %v", list, err)
			}
			var progress string
			raw, err := s.Call(t.Context(), &Call{Tool: "echo", Args: []byte(`{"a":1.50}`), Aside: Aside{Progress: func(params wire.Object) {
				progress, _ = params.Text("message")
			}}})
			if err != nil || !strings.Contains(string(raw), `{\"a\":1.50}`) || progress != "half" {
				t.Errorf("got %s, %v, progress %q", raw, err, progress)
			}
			if err := s.Check(t.Context()); err != nil {
				t.Error(err)
			}
			hearsChanges(t, s, server)
		})
	}
}

// TestSDKServerOverSSE: a server that knows nothing newer than HTTP with SSE.
func TestSDKServerOverSSE(t *testing.T) {
	server := sdk.NewServer(&sdk.Implementation{Name: "sdk", Version: "1"}, &sdk.ServerOptions{
		Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{ListChanged: true}},
	})
	addTool(server, "echo")
	web := httptest.NewServer(sdk.NewSSEHandler(func(*http.Request) *sdk.Server { return server }, nil))
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
	})
	s := mustConnect(t, options(web.URL+"/sse"))
	if _, ok := s.carrier.(*sseCarrier); !ok || !mcp.IsLegacy(s.Version()) {
		t.Fatalf("speaks %s over %T", s.Version(), s.carrier)
	}
	list, err := s.Lists(t.Context())
	if err != nil || len(list.Tools) != 1 {
		t.Fatalf("listed %+v, %v", list, err)
	}
	progress := make(chan string, 1)
	raw, err := s.Call(t.Context(), &Call{Tool: "echo", Args: []byte(`{"a":1.50}`), Aside: Aside{Progress: func(params wire.Object) {
		text, _ := params.Text("message")
		progress <- text
	}}})
	if err != nil || !strings.Contains(string(raw), `{\"a\":1.50}`) || <-progress != "half" {
		t.Errorf("got %s, %v", raw, err)
	}
	if err := s.Check(t.Context()); err != nil {
		t.Error(err)
	}
	hearsChanges(t, s, server)
	web.CloseClientConnections()
	if _, err := s.Call(t.Context(), &Call{Tool: "echo", Args: []byte("{}")}); err == nil {
		t.Error("a lost stream gave an answer")
	}
}

// TestSSEPointsElsewhere: a stream that sends messages to another origin would
// have them with our credential.
func TestSSEPointsElsewhere(t *testing.T) {
	f, o := fake(t, func(f *fakemcp.Server) {
		f.On(fakemcp.Any, func(c *fakemcp.Call) {
			if c.R.Method == http.MethodGet {
				c.Stream("event: endpoint\ndata: http://elsewhere.test/messages\n\n")
				c.Hang()
				return
			}
			c.Text(http.StatusMethodNotAllowed, "", "")
		})
	})
	if _, err := connect(t, o); ReasonOf(err) != UnexpectedStatus {
		t.Errorf("got %v", err)
	}
	if f.Count(fakemcp.GET) != 1 {
		t.Error("no stream was asked for")
	}
}

func hearsChanges(t *testing.T, s *Session, server *sdk.Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	standing, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		if offered, err := s.Listen(ctx, func() { close(standing) }); !offered {
			t.Errorf("no stream: %v", err)
		}
	}()
	<-standing
	addTool(server, "more")
	select {
	case <-s.Changed():
	case <-ctx.Done():
		t.Error("no word of the change")
	}
	cancel()
	<-ended
}

func fake(t *testing.T, change func(*fakemcp.Server)) (*fakemcp.Server, Options) {
	t.Helper()
	f := fakemcp.New()
	change(f)
	web := httptest.NewServer(f)
	t.Cleanup(func() {
		f.Release()
		web.CloseClientConnections()
		web.Close()
	})
	return f, options(web.URL + "/mcp")
}

// TestMisbehaviour: each kind of bad peer has its word, and none blocks.
func TestMisbehaviour(t *testing.T) {
	for mode, want := range map[string]Reason{
		"drop": ConnectionLost, "garbage": NotMCP, "html": NotMCP, "empty": NotMCP, "bad-gateway": UnexpectedStatus,
		"auth": AuthRequired, "forbidden": AuthRequired, "version": UnsupportedProtocol, "refuse": HandshakeRejected,
		"list-error": ListFailed, "lose-session": SessionLost, "huge": TooLarge, "hang": Timeout, "hang-list": Timeout,
		"host": UnexpectedStatus, "ok": "", "sse": "", "loop": "",
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			_, o := fake(t, func(f *fakemcp.Server) {
				if err := f.SetMode(mode); err != nil {
					t.Fatal(err)
				}
			})
			ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
			defer cancel()
			got := Reason("")
			s, err := Connect(ctx, o)
			if err == nil {
				_, err = s.Lists(ctx)
				s.Close(context.Background())
			}
			if err != nil {
				got = ReasonOf(err)
			}
			if got != want {
				t.Errorf("got %q (%v), want %q", got, err, want)
			}
		})
	}
}

func TestEraIsFoundOrPinned(t *testing.T) {
	for name, test := range map[string]struct {
		modern, legacy bool
		protocol       serverconfig.Protocol
		version        string
		reason         Reason
	}{
		"both":               {true, true, serverconfig.ProtocolAuto, mcp.Version20260728, ""},
		"legacy":             {false, true, "", mcp.Version20250618, ""},
		"modern":             {true, false, "", mcp.Version20260728, ""},
		"both, legacy":       {true, true, serverconfig.ProtocolLegacy, mcp.Version20250618, ""},
		"legacy, but modern": {false, true, serverconfig.ProtocolModern, "", UnexpectedStatus},
		"modern, but legacy": {true, false, serverconfig.ProtocolLegacy, "", HandshakeRejected},
	} {
		t.Run(name, func(t *testing.T) {
			_, o := fake(t, func(f *fakemcp.Server) { f.Settings.Modern, f.Settings.Legacy = test.modern, test.legacy })
			o.Protocol = test.protocol
			s, err := connect(t, o)
			if test.reason != "" {
				if err == nil || ReasonOf(err) != test.reason {
					t.Fatalf("got %v", err)
				}
				return
			}
			if err != nil || s.Version() != test.version {
				t.Fatalf("got %v, %v", s, err)
			}
		})
	}
}

// TestServerAsks: whatever a legacy server asks is answered, ping by a result.
func TestServerAsks(t *testing.T) {
	f, o := fake(t, func(f *fakemcp.Server) {
		f.On(mcp.MethodToolsCall, func(c *fakemcp.Call) {
			c.Stream(fakemcp.Data(`{"jsonrpc":"2.0","id":"q1","method":"ping"}`), fakemcp.Data(`{"jsonrpc":"2.0","id":7,"method":"sampling/createMessage","params":{}}`),
				fakemcp.Data(c.Response(map[string]any{"content": []any{}})))
		})
	})
	s := mustConnect(t, o)
	if _, err := s.Call(t.Context(), &Call{Tool: "alpha", Args: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
	var bodies []string
	for range 3000 {
		bodies = nil
		for _, r := range f.Requests() {
			if r.HTTP == http.MethodPost && r.Method == "" {
				bodies = append(bodies, string(r.Body))
			}
		}
		if len(bodies) == 2 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	all := strings.Join(bodies, "\n")
	if !strings.Contains(all, `"id":"q1","result":{}`) || !strings.Contains(all, `"id":7,"error":{"code":-32601`) {
		t.Errorf("answered %s", all)
	}
	for _, r := range f.Requests() {
		if r.Method == mcp.MethodInitialize && !strings.Contains(string(r.Body), `"capabilities":{}`) {
			t.Errorf("declared %s", r.Body)
		}
	}
}

// TestCancellation reaches a legacy server as a notification.
func TestCancellation(t *testing.T) {
	called := make(chan struct{})
	f, o := fake(t, func(f *fakemcp.Server) {
		f.On(mcp.MethodToolsCall, func(c *fakemcp.Call) {
			close(called)
			c.Hang()
		})
	})
	s := mustConnect(t, o)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-called
		cancel()
	}()
	if _, err := s.Call(ctx, &Call{Tool: "alpha", Args: []byte("{}")}); err != context.Canceled { //nolint:errorlint // It must be the bare cause.
		t.Errorf("got %v", err)
	}
	for range 3000 {
		if f.Count(mcp.NotificationCancelled) == 1 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("the server was not told")
}

// TestGetStreamRefused (case A01): every refusal of the optional stream means
// that there is none, and nothing else.
func TestGetStreamRefused(t *testing.T) {
	for _, status := range []int{400, 404, 405, 406} {
		_, o := fake(t, func(f *fakemcp.Server) {
			f.Settings.Stateless = true
			f.On(fakemcp.GET, func(c *fakemcp.Call) { c.Text(status, "text/plain", "no") })
		})
		s := mustConnect(t, o)
		if offered, err := s.Listen(t.Context(), func() { t.Error("stands") }); offered || err == nil {
			t.Errorf("%d: offered %t, %v", status, offered, err)
		}
	}
}

func TestRedirectsStayHome(t *testing.T) {
	var stolen string
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { stolen = r.Header.Get("Authorization") }))
	defer thief.Close()
	_, o := fake(t, func(f *fakemcp.Server) {
		f.On(fakemcp.Any, func(c *fakemcp.Call) {
			c.W.Header().Set("Location", thief.URL)
			c.Text(http.StatusTemporaryRedirect, "", "")
		})
	})
	o.Header, o.Credential = http.Header{"Authorization": {"Bearer s3cr3t"}}, true
	if _, err := connect(t, o); ReasonOf(err) != Redirected || stolen != "" {
		t.Errorf("got %v, stolen %q", err, stolen)
	}
}

func TestHeaderText(t *testing.T) {
	for text, want := range map[string]string{"a b": "a b", " a": "=?base64?IGE=?=", "ä": "=?base64?w6Q=?=", "a\r\nX: y": "=?base64?YQ0KWDogeQ==?="} {
		if got := HeaderText(text); got != want {
			t.Errorf("%q is %q", text, got)
		}
	}
}

// TestListsOfAllKinds: what a server declares is read, page by page, and a list
// that fails takes no other with it.
func TestListsOfAllKinds(t *testing.T) {
	f := fakemcp.New()
	f.Settings.Capabilities = map[string]any{
		"tools": map[string]any{}, "resources": map[string]any{"subscribe": true, "listChanged": true}, "prompts": map[string]any{}, "completions": map[string]any{},
	}
	f.On("resources/list", func(c *fakemcp.Call) {
		if c.Cursor() == "" {
			c.Result(map[string]any{"resources": []any{map[string]any{"uri": "a:1", "name": "n"}, map[string]any{"name": "no uri"}}, "nextCursor": "2"})
			return
		}
		c.Result(map[string]any{"resources": []any{map[string]any{"uri": "a:1"}, map[string]any{"uri": "a:2"}}, "nextCursor": "2"})
	})
	f.On("prompts/list", func(c *fakemcp.Call) { c.Error(http.StatusOK, -32603, "broken", nil) })
	web := httptest.NewServer(f)
	t.Cleanup(web.Close)
	s := mustConnect(t, options(web.URL))
	want := Abilities{Tools: true, Resources: true, ResourcesChanged: true, Subscribe: true, Prompts: true, Completions: true}
	if s.Abilities() != want {
		t.Errorf("declares %+v", s.Abilities())
	}
	lists, err := s.Lists(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(lists.Tools) != 1 || len(lists.Resources) != 2 || lists.Resources[0].Name != "n" || lists.Resources[1].ID != "a:2" || lists.Templates != nil || lists.Prompts != nil {
		t.Errorf("listed %+v", lists)
	}
	// The fake knows no templates, which is no failure.
	if !slices.Equal(lists.Failed, []string{"prompts/list"}) {
		t.Errorf("failed %q", lists.Failed)
	}
}
