// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpserver_test

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	words "github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/mcpserver"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

func TestSessionIsToldOfChanges(t *testing.T) {
	withText := func(value string) *serverconfig.Config {
		c := config(tool("a", nil))
		c.Resources = []serverconfig.Resource{resource("x:a", func(r *serverconfig.Resource) { r.Text = &value })}
		return c
	}
	f := start(t, withText("1"))
	c := f.connect("2025-06-18", "{}")
	if got := f.do(c.request("1", "resources/subscribe", `"uri":"x:none"`)); got.errorCode() != words.CodeResourceNotFound {
		t.Errorf("got %s", got.body)
	}
	if got := f.do(c.request("1", "resources/subscribe", `"uri":"x:a"`)); got.body != `{"jsonrpc":"2.0","id":1,"result":{}}` {
		t.Errorf("got %s", got.body)
	}
	stream := f.open(c.get(""))
	f.reload(withText("2"))
	if m := next(t, stream.events); m["method"] != words.NotificationUpdated || m["params"].(map[string]any)["uri"] != "x:a" {
		t.Errorf("got %v", m)
	}
	stream.close()
	// What changes while no stream stands is told by the next.
	f.reload(func() *serverconfig.Config { c := withText("2"); c.Tools = append(c.Tools, tool("b", nil)); return c }())
	stream = f.open(c.get("0-1"))
	if m := next(t, stream.events); m["method"] != words.NotificationToolsChanged {
		t.Errorf("got %v", m)
	}
	if got := f.do(c.request("1", "resources/unsubscribe", `"uri":"x:a"`)); got.errorCode() != 0 {
		t.Errorf("got %s", got.body)
	}
	f.reload(withText("3")) // Nobody is told of the text; the list lost a tool.
	if m := next(t, stream.events); m["method"] != words.NotificationToolsChanged {
		t.Errorf("got %v", m)
	}
	must(t, f.server.Stop(context.Background()))
	if m, more := <-stream.events; more {
		t.Errorf("got %v", m)
	}
}

func TestSessionCancellation(t *testing.T) {
	backend := newBlockingBackend(t)
	f := start(t, config(slowTool(backend.URL), tool("ping", nil)))
	c, other := f.connect("2025-11-25", "{}"), f.connect("2025-11-25", "{}")
	answers := f.async(c.call(`"x"`, "slow", ""))
	<-backend.arrived
	f.do(other.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"x"}}`)) // Not theirs.
	f.do(c.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"x"}}`))
	<-backend.left
	if got := <-answers; got.reason() != "Cancelled" {
		t.Errorf("got %s", got.body)
	}
	answers = f.async(other.call(`"x"`, "slow", ""))
	<-backend.arrived
	other.end()
	<-backend.left
	if got := <-answers; got.reason() != "Cancelled" {
		t.Errorf("got %s", got.body)
	}
}

func TestSessionLimits(t *testing.T) {
	c := config(tool("ping", nil))
	c.Limits.Streams = 1
	f := start(t, c)
	a, b := f.connect("2025-11-25", "{}"), f.connect("2025-11-25", "{}")
	stream := f.open(a.get(""))
	if got := f.do(b.get("")); got.status != http.StatusTooManyRequests || !strings.Contains(got.body, "StreamLimit") {
		t.Errorf("got %d: %s", got.status, got.body)
	}
	stream.close()
}

// rawStream reads lines with the ids of events.
func rawStream(t *testing.T, f *fixture, r *http.Request) (lines *bufio.Scanner, closed func()) {
	t.Helper()
	response, err := f.client.Do(r)
	must(t, err)
	closed = func() { _ = response.Body.Close() }
	t.Cleanup(closed)
	return bufio.NewScanner(response.Body), closed
}

func eventID(t *testing.T, lines *bufio.Scanner) string {
	t.Helper()
	for lines.Scan() {
		if id, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
			return id
		}
	}
	t.Fatal("no event")
	return ""
}

// TestAnswerIsTakenUpAgain: the connection breaks while the client is asked;
// the client comes back for the rest of the answer.
func TestAnswerIsTakenUpAgain(t *testing.T) {
	f := start(t, askingConfig(), asking)
	c := f.connect("2025-11-25", `{"elicitation":{}}`)
	lines, hangUp := rawStream(t, f, c.call("7", "elicit", ""))
	primed := eventID(t, lines)
	asked := eventID(t, lines)
	hangUp()
	for _, last := range []string{primed, asked} {
		stream := f.open(c.get(last))
		if last == primed {
			if m := next(t, stream.events); m["method"] != "elicitation/create" {
				t.Errorf("got %v", m)
			}
			stream.close()
			continue
		}
		f.do(c.post(`{"jsonrpc":"2.0","id":1,"result":{"action":"decline"}}`))
		if m := next(t, stream.events); m["id"] != 7.0 || m["result"] == nil {
			t.Errorf("got %v", m)
		}
		if m, more := <-stream.events; more {
			t.Errorf("after the answer: %v", m)
		}
	}
}

// TestAbandonedCallsEnd: nobody comes back, and the server stops.
func TestAbandonedCallsEnd(t *testing.T) {
	f := start(t, askingConfig(), asking, func(o *mcpserver.Options) { o.ShutdownTimeout = 10 * time.Second })
	c := f.connect("2025-11-25", `{"elicitation":{}}`)
	lines, hangUp := rawStream(t, f, c.call("7", "elicit", ""))
	eventID(t, lines)
	hangUp()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	must(t, f.server.Stop(ctx))
}

// TestManySessions is the server's side of case B11.
func TestManySessions(t *testing.T) {
	f := start(t, config(tool("ping", nil)))
	refused := 0
	for range 1200 {
		got := f.do(f.legacy("initialize", `"protocolVersion":"2025-06-18"`))
		switch got.status {
		case http.StatusOK:
		case http.StatusTooManyRequests:
			refused++
			if !strings.Contains(got.body, "SessionLimit") || got.header.Get("Mcp-Session-Id") != "" {
				t.Fatalf("got %s", got.body)
			}
		default:
			t.Fatalf("got %d", got.status)
		}
	}
	if refused != 200 {
		t.Errorf("%d were refused", refused)
	}
	unknown := &legacyClient{f: f, id: "0f8fad5b-d9cb-469f-a165-70867728950e"}
	for range 300 {
		if got := f.do(unknown.call("1", "ping", "")); got.status != http.StatusNotFound {
			t.Fatalf("got %d", got.status)
		}
	}
	if got := f.do(f.callModern("ping", "{}")); got.text() != "ping" {
		t.Errorf("got %s", got.body)
	}
}

// TestSDKSession lets an independent legacy client be asked and told.
func TestSDKSession(t *testing.T) {
	f := start(t, askingConfig(), asking)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	changed := make(chan struct{}, 10)
	options := &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"answer": r.Params.Message}}, nil
		},
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} },
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, options)
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: f.url(), HTTPClient: f.client}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	must(t, err)
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "elicit"})
	if err != nil || result.IsError || !strings.Contains(result.Content[0].(*mcp.TextContent).Text, `"answer":"who?"`) {
		t.Errorf("got %+v, %v", result, err)
	}
	f.reload(config(tool("ping", nil)))
	select {
	case <-changed:
	case <-ctx.Done():
		t.Error("the client was not told of the change")
	}
	must(t, session.Close())
}

// TestProbeLeavesNoSession is the probe's side of case B11, in the era that
// has sessions.
func TestProbeLeavesNoSession(t *testing.T) {
	f := start(t, config(tool("ping", nil)))
	var opened atomic.Int64
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Protocol-Version") == words.Version20260728 {
			http.Error(w, "unsupported", http.StatusBadRequest)
			return
		}
		target, _ := url.Parse("http://" + f.server.Addr().String())
		proxy := httputil.NewSingleHostReverseProxy(target)
		proxy.ModifyResponse = func(response *http.Response) error {
			if response.Header.Get("Mcp-Session-Id") != "" {
				opened.Add(1)
			}
			return nil
		}
		proxy.ServeHTTP(w, r)
	}))
	defer front.Close()
	prober := mcpprobe.New(mcpprobe.Options{Policy: mcpprobe.Policy{AllowLoopback: true}, Version: "test"})
	for range 3 {
		if report := prober.Probe(t.Context(), mcpprobe.Target{URL: front.URL + "/mcp"}); report.Outcome != mcpprobe.Proved || len(report.Tools.Tools) != 1 {
			t.Fatalf("got %+v", report)
		}
	}
	f.until("the end of the probes' sessions", func() bool { return len(f.server.Sessions()) == 0 })
	if opened.Load() != 3 {
		t.Errorf("%d sessions were opened", opened.Load())
	}
}
