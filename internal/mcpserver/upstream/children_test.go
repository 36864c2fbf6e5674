// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/mcpserver/principal"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
	"github.com/espalier-dev/espalier/internal/podreport"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// TestMain makes this program the child of its own tests.
func TestMain(m *testing.M) {
	if mode := os.Getenv("UPSTREAM_CHILD"); mode != "" {
		if err := beChild(mode == "modern"); err != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// beChild is a server of somebody else's making over stdin and stdout.
func beChild(modern bool) error {
	starts, err := os.OpenFile(os.Getenv("STARTS_FILE"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintln(starts, os.Getpid())
	_ = starts.Close()
	server := sdk.NewServer(&sdk.Implementation{Name: "child", Version: "1"}, &sdk.ServerOptions{
		Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}, Logging: &sdk.LoggingCapabilities{}},
	})
	tool := func(name string, f func(ctx context.Context, r *sdk.CallToolRequest) (string, sdk.InputRequestMap, error)) {
		server.AddTool(&sdk.Tool{Name: name, InputSchema: map[string]any{"type": "object"}}, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			text, requests, err := f(ctx, r)
			if err != nil || requests != nil {
				return &sdk.CallToolResult{InputRequests: requests}, err
			}
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}, nil
		})
	}
	var mu sync.Mutex
	count := 0
	tool("count", func(context.Context, *sdk.CallToolRequest) (string, sdk.InputRequestMap, error) {
		mu.Lock()
		defer mu.Unlock()
		count++
		return fmt.Sprintf("%d in %d", count, os.Getpid()), nil, nil
	})
	tool("ask", func(ctx context.Context, r *sdk.CallToolRequest) (string, sdk.InputRequestMap, error) {
		var args struct{ Who string }
		_ = json.Unmarshal(r.Params.Arguments, &args)
		tell(ctx, r.Session, r.Params.GetProgressToken(), args.Who)
		return askName(ctx, r.Session, modern, args.Who, r.Params.InputResponses)
	})
	tool("roots", func(ctx context.Context, r *sdk.CallToolRequest) (string, sdk.InputRequestMap, error) {
		roots, err := r.Session.ListRoots(ctx, nil)
		if err != nil {
			return "", nil, err
		}
		return fmt.Sprint(len(roots.Roots), " roots"), nil, nil
	})
	tool("hang", func(ctx context.Context, r *sdk.CallToolRequest) (string, sdk.InputRequestMap, error) {
		tell(ctx, r.Session, r.Params.GetProgressToken(), "hangs")
		<-ctx.Done()
		return "", nil, ctx.Err()
	})
	if !modern {
		server.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
			return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
				if method == mcp.MethodDiscover {
					return nil, &jsonrpc.Error{Code: mcp.CodeMethodNotFound, Message: "no"}
				}
				return next(ctx, method, r)
			}
		})
	}
	return server.Run(context.Background(), &sdk.StdioTransport{})
}

// wrapping gives an upstream that is a child, and the file of its starts.
func wrapping(t *testing.T, modern bool, change func(*serverconfig.Stdio)) (serverconfig.Upstream, string) {
	t.Helper()
	starts := filepath.Join(t.TempDir(), "starts")
	t.Setenv("STARTS_FILE", starts)
	t.Setenv("UPSTREAM_CHILD", map[bool]string{true: "modern", false: "legacy"}[modern])
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := &serverconfig.Stdio{
		Command: []string{program}, Env: []string{"STARTS_FILE", "UPSTREAM_CHILD"}, StartupTimeoutSeconds: 20, HandshakeTimeoutSeconds: 20,
		MaxMessageBytes: 1 << 20, MaxStderrBytes: 1 << 16, PerClient: true, MaxProcesses: 20, IdleSeconds: 3600, Forward: []serverconfig.Ask{serverconfig.AskElicitation},
	}
	if change != nil {
		change(child)
	}
	return serverconfig.Upstream{Name: "u", Stdio: child}, starts
}

func pids(t *testing.T, starts string) []string {
	t.Helper()
	raw, err := os.ReadFile(starts)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(raw))
}

func toolOf(m *Manager, name string) call.Handler {
	return &handler{m: m, target: serverconfig.UpstreamTool{Upstream: "u", Tool: name}}
}

// saying calls a tool and gives its text.
func saying(t *testing.T, m *Manager, name string, who *caller, p *principal.Principal) string {
	t.Helper()
	c := toolCall("Kim", who)
	c.Tool = name
	if p != nil {
		c.Caller = p
	}
	result, err := toolOf(m, name).Call(t.Context(), c)
	if err != nil {
		return "error: " + err.Error()
	}
	var content []struct{ Text string }
	if json.Unmarshal(result.Content, &content) != nil || len(content) != 1 {
		t.Fatalf("%s answers %+v", name, result)
	}
	return content[0].Text
}

// TestChildPerClient: a session has a child of its own, and so has a person;
// the anonymous share one. Lists start none.
func TestChildPerClient(t *testing.T) {
	for _, modern := range []bool{false, true} {
		t.Run(fmt.Sprintf("modern child %t", modern), func(t *testing.T) {
			u, starts := wrapping(t, modern, nil)
			m := managing(t, hasty, u)
			if got := m.Report(nil)[0]; mcp.IsModern(got.Protocol) != modern || got.Clients != 0 {
				t.Fatalf("reports %+v", got)
			}
			s := m.source("u")
			for range 3 {
				l, done, _ := s.use()
				if err := s.reload(t.Context(), l); err != nil {
					t.Error(err)
				}
				done()
			}
			if n := len(pids(t, starts)); n != 1 {
				t.Fatalf("%d children were started by lists", n)
			}
			session := func(id string) *caller { return &caller{t: t, session: id, declares: "{}"} }
			stateless := func() *caller { return &caller{t: t, modern: true, declares: "{}"} }
			clients := []struct {
				who *caller
				p   *principal.Principal
			}{
				{session("a"), nil}, {session("b"), nil}, {session("a"), nil}, {stateless(), person("a")}, {stateless(), person("b")},
				{stateless(), person("a")}, {stateless(), nil}, {&caller{t: t, declares: "{}"}, nil}, {stateless(), nil},
			}
			var got []string
			of := map[string]int{}
			for _, c := range clients {
				var n, pid string
				if _, err := fmt.Sscanf(saying(t, m, "count", c.who, c.p), "%s in %s", &n, &pid); err != nil {
					t.Fatal(err)
				}
				if of[pid] == 0 {
					of[pid] = len(of) + 1
				}
				got = append(got, fmt.Sprintf("%d:%s", of[pid], n))
			}
			if want := "[1:1 2:1 1:2 3:1 4:1 3:2 5:1 5:2 5:3]"; fmt.Sprint(got) != want {
				t.Errorf("child:count %v, want %s", got, want)
			}
			if n := len(pids(t, starts)); n != 6 {
				t.Errorf("%d children were started", n)
			}
			if r := m.Report(nil)[0]; r.Clients != 5 || r.Child == nil || r.Child.State != podreport.ChildRunning {
				t.Errorf("reports %+v", r)
			}
		})
	}
}

// TestChildAsks: what a child wants to know is asked its client, as far as that
// is forwarded; nobody who may be anybody is asked.
func TestChildAsks(t *testing.T) {
	u, _ := wrapping(t, false, nil)
	m := managing(t, hasty, u)
	inSession := &caller{t: t, session: "a", declares: declaresAll, level: "info"}
	inSession.answer = answering
	if got := saying(t, m, "ask", inSession, nil); got != "hello Mx Kim" {
		t.Errorf("a session is asked: %s", got)
	}
	if notes := inSession.end(); len(notes) != 1 || !strings.Contains(notes[0], "warning Kim") {
		t.Errorf("it is told %q", notes)
	}
	if got := saying(t, m, "roots", &caller{t: t, session: "a", declares: declaresAll, answer: answering}, nil); !strings.HasPrefix(got, "error: ") {
		t.Errorf("roots: %s", got)
	}
	c, asked := askedBy(t, toolOf(m, "ask"), person("a"))
	if result, err := answered(t.Context(), t, toolOf(m, "ask"), c, asked); err != nil || !strings.Contains(string(result.Content), "hello Mx Kim") {
		t.Errorf("%+v, %v", result, err)
	}
	if got := saying(t, m, "ask", &caller{t: t, modern: true, declares: declaresAll}, nil); !strings.HasPrefix(got, "error: ") {
		t.Errorf("the anonymous are asked: %s", got)
	}
}

// TestChildOfModernAsks: per request, so also one that all share.
func TestChildOfModernAsks(t *testing.T) {
	for _, perClient := range []bool{true, false} {
		u, _ := wrapping(t, true, func(c *serverconfig.Stdio) { c.PerClient = perClient })
		m := managing(t, hasty, u)
		c, asked := askedBy(t, toolOf(m, "ask"), person("a"))
		if result, err := answered(t.Context(), t, toolOf(m, "ask"), c, asked); err != nil || !strings.Contains(string(result.Content), "hello Mx Kim") {
			t.Errorf("per client %t: %+v, %v", perClient, result, err)
		}
		if got := saying(t, m, "ask", &caller{t: t, session: "s", declares: declaresAll, answer: answering}, nil); got != "hello Mx Kim" {
			t.Errorf("per client %t: %s", perClient, got)
		}
	}
}

// TestSharedChildAsksNobody in the legacy era.
func TestSharedChildAsksNobody(t *testing.T) {
	u, starts := wrapping(t, false, func(c *serverconfig.Stdio) { c.PerClient = false })
	m := managing(t, hasty, u)
	if got := saying(t, m, "ask", &caller{t: t, session: "s", declares: declaresAll, answer: answering}, nil); !strings.HasPrefix(got, "error: ") {
		t.Errorf("got %s", got)
	}
	if n := len(pids(t, starts)); n != 1 {
		t.Errorf("%d children", n)
	}
}

// TestChildWantsRoots: only where that is named, and changes are told.
func TestChildWantsRoots(t *testing.T) {
	u, _ := wrapping(t, false, func(c *serverconfig.Stdio) { c.Forward = []serverconfig.Ask{serverconfig.AskRoots} })
	m := managing(t, hasty, u)
	who := &caller{t: t, session: "a", declares: declaresAll}
	who.answer = func(_ context.Context, method string, _ json.RawMessage) (json.RawMessage, error) {
		if method != mcp.MethodListRoots {
			t.Errorf("asked %s", method)
		}
		return json.RawMessage(`{"roots":[{"uri":"file:///a"},{"uri":"file:///b"}]}`), nil
	}
	if got := saying(t, m, "roots", who, nil); got != "2 roots" {
		t.Errorf("got %s", got)
	}
	if got := saying(t, m, "ask", who, nil); !strings.HasPrefix(got, "error: ") {
		t.Errorf("got %s", got)
	}
	m.RootsChanged("a")
	if got := saying(t, m, "roots", who, nil); got != "2 roots" {
		t.Errorf("got %s", got)
	}
}

// TestChildrenAreBounded: an idle one makes room, one in use does not.
func TestChildrenAreBounded(t *testing.T) {
	u, starts := wrapping(t, false, func(c *serverconfig.Stdio) { c.MaxProcesses = 2 })
	m := managing(t, hasty, u)
	session := func(id string) *caller { return &caller{t: t, session: id, declares: "{}"} }
	for _, id := range []string{"a", "b", "c", "b"} {
		if got := saying(t, m, "count", session(id), nil); strings.HasPrefix(got, "error: ") {
			t.Fatalf("%s: %s", id, got)
		}
	}
	if n := len(pids(t, starts)); n != 4 { // The resident one, a, b, c.
		t.Errorf("%d children were started", n)
	}
	if n := m.source("u").pool.size(); n != 2 {
		t.Errorf("%d run", n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var calls sync.WaitGroup
	defer calls.Wait()
	defer cancel()
	for _, id := range []string{"b", "c"} {
		c := toolCall("Kim", session(id))
		began := make(chan struct{}, 1)
		c.Progress = func(wire.Object) { began <- struct{}{} }
		calls.Go(func() { _, _ = toolOf(m, "hang").Call(ctx, c) })
		await(t, "a call that runs", began)
	}
	c := toolCall("Kim", session("d"))
	if _, err := toolOf(m, "count").Call(t.Context(), c); reasonOf(err) != call.ConcurrencyLimit {
		t.Errorf("one more: %v", err)
	}
}

// TestChildEnds: when it is idle, with its client's session, and by itself, and
// then there is another.
func TestChildEnds(t *testing.T) {
	u, _ := wrapping(t, false, func(c *serverconfig.Stdio) { c.IdleSeconds = 1 })
	m := managing(t, hasty, u)
	who := &caller{t: t, session: "a", declares: "{}"}
	pid := func() int {
		t.Helper()
		var n, pid int
		if _, err := fmt.Sscanf(saying(t, m, "count", who, nil), "%d in %d", &n, &pid); err != nil || n != 1 {
			t.Fatalf("%d in %d: %v", n, pid, err)
		}
		return pid
	}
	gone := func(pid int) {
		t.Helper()
		await(t, "its end", emptied(m))
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("the child is there still: %v", err)
		}
	}
	gone(pid())
	first := pid()
	m.SessionEnded("a")
	gone(first)
	first = pid()
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	gone(first)
	pid()
}

// TestChildHangs: one that answers nothing is found out by a call that took
// too long, and its client gets another.
func TestChildHangs(t *testing.T) {
	u, _ := wrapping(t, false, nil)
	timing := hasty
	timing.Handshake = 3 * time.Second
	m := managing(t, timing, u)
	who := &caller{t: t, session: "a", declares: "{}"}
	count := func() (n, pid int) {
		t.Helper()
		if _, err := fmt.Sscanf(saying(t, m, "count", who, nil), "%d in %d", &n, &pid); err != nil {
			t.Fatal(err)
		}
		return n, pid
	}
	late := func(before func()) {
		t.Helper()
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		c := toolCall("Kim", who)
		began := make(chan struct{}, 1)
		c.Progress = func(wire.Object) { began <- struct{}{} }
		go func() {
			<-began
			before()
			cancel(call.ErrTimeout)
		}()
		if _, err := toolOf(m, "hang").Call(ctx, c); !errors.Is(err, call.ErrTimeout) {
			t.Errorf("got %v", err)
		}
	}
	_, pid := count()
	late(func() {})
	if n, same := count(); n != 2 || same != pid {
		t.Errorf("%d in %d after %d: one that answers is ended", n, same, pid)
	}
	late(func() {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Error(err)
		}
	})
	await(t, "the end of the child", emptied(m))
	if n, other := count(); n != 1 || other == pid {
		t.Errorf("%d in %d after %d", n, other, pid)
	}
}
