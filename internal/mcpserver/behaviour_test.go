// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpserver_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver"
	"github.com/espalier-dev/espalier/internal/mcpserver/transport"
	"github.com/espalier-dev/espalier/internal/podreport"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// blockingBackend holds every request until it is given up or released.
type blockingBackend struct {
	*httptest.Server
	arrived, left, release chan struct{}
}

func newBlockingBackend(t *testing.T) *blockingBackend {
	b := &blockingBackend{arrived: make(chan struct{}, 100), left: make(chan struct{}, 100), release: make(chan struct{})}
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.arrived <- struct{}{}
		select {
		case <-r.Context().Done():
			b.left <- struct{}{}
		case <-b.release:
			_, _ = io.WriteString(w, "released")
		}
	}))
	t.Cleanup(b.Close)
	return b
}

func slowTool(backend string) serverconfig.Tool {
	return tool("slow", func(t *serverconfig.Tool) {
		t.Expression = nil
		t.HTTP = &serverconfig.HTTP{Connection: serverconfig.Connection{URL: backend + "/"}, Method: "GET", TimeoutSeconds: 60}
	})
}

func (f *fixture) async(r *http.Request) <-chan answer {
	out := make(chan answer, 1)
	go func() {
		response, err := f.client.Do(r)
		if err != nil {
			out <- answer{body: err.Error()}
			return
		}
		defer response.Body.Close()
		body, _ := io.ReadAll(response.Body)
		out <- answer{response.StatusCode, response.Header, string(body)}
	}()
	return out
}

func TestCancellation(t *testing.T) {
	t.Run("client leaves", func(t *testing.T) {
		backend := newBlockingBackend(t)
		f := start(t, config(slowTool(backend.URL)))
		ctx, cancel := context.WithCancel(context.Background())
		f.async(f.callModern("slow", "{}").WithContext(ctx))
		<-backend.arrived
		cancel()
		<-backend.left
	})
	t.Run("call timeout", func(t *testing.T) {
		backend := newBlockingBackend(t)
		c := config(slowTool(backend.URL))
		c.Limits.CallTimeoutSeconds = 1
		f := start(t, c)
		if got := f.do(f.callModern("slow", "{}")); got.reason() != "CallTimeout" {
			t.Errorf("got %s", got.body)
		}
		<-backend.left
	})
	t.Run("withdrawn tool", func(t *testing.T) {
		backend := newBlockingBackend(t)
		f := start(t, config(slowTool(backend.URL), tool("other", nil)))
		answers := f.async(f.callModern("slow", "{}"))
		<-backend.arrived
		f.reload(config(tool("other", nil)))
		if got := <-answers; got.reason() != "Withdrawn" {
			t.Errorf("got %s", got.body)
		}
		<-backend.left
		if got := f.do(f.callModern("slow", "{}")); got.errorCode() != mcp.CodeInvalidParams {
			t.Errorf("got %s", got.body)
		}
	})
	t.Run("replaced tool", func(t *testing.T) {
		backend := newBlockingBackend(t)
		f := start(t, config(slowTool(backend.URL)))
		answers := f.async(f.callModern("slow", "{}"))
		<-backend.arrived
		f.reload(config(tool("slow", nil)))
		if got := f.do(f.callModern("slow", "{}")); got.text() != "slow" {
			t.Errorf("new version: got %s", got.body)
		}
		close(backend.release)
		if got := <-answers; got.text() != "released" {
			t.Errorf("old version: got %s", got.body)
		}
	})
	t.Run("withdrawn after it was replaced", func(t *testing.T) {
		backend := newBlockingBackend(t)
		f := start(t, config(slowTool(backend.URL), tool("other", nil)))
		answers := f.async(f.callModern("slow", "{}"))
		<-backend.arrived
		f.reload(config(tool("slow", nil), tool("other", nil)))
		f.reload(config(tool("other", nil)))
		if got := <-answers; got.reason() != "Withdrawn" {
			t.Errorf("got %s", got.body)
		}
	})
}

// events reads the messages of a stream.
func events(t *testing.T, body io.Reader) <-chan map[string]any {
	out := make(chan map[string]any, 100)
	go func() {
		defer close(out)
		scanner := bufio.NewScanner(body)
		for scanner.Scan() {
			if data, ok := strings.CutPrefix(scanner.Text(), "data: "); ok && data != "" {
				var m map[string]any
				if err := json.Unmarshal([]byte(data), &m); err != nil {
					t.Errorf("%s: %v", data, err)
				}
				out <- m
			}
		}
	}()
	return out
}

// listener is an open stream.
type listener struct {
	status int
	header http.Header
	events <-chan map[string]any
	close  func()
}

func (f *fixture) listen(id, filter string) listener {
	f.t.Helper()
	r := f.post(`{"jsonrpc":"2.0","id":` + id + `,"method":"subscriptions/listen","params":{"notifications":` + filter + `,` + modernMeta + `}}`)
	r.Header.Set("Mcp-Protocol-Version", "2026-07-28")
	r.Header.Set("Mcp-Method", "subscriptions/listen")
	response, err := f.client.Do(r)
	must(f.t, err)
	closed := func() { _ = response.Body.Close() }
	f.t.Cleanup(closed)
	return listener{response.StatusCode, response.Header, events(f.t.(*testing.T), response.Body), closed}
}

func next(t *testing.T, events <-chan map[string]any) map[string]any {
	t.Helper()
	select {
	case m, ok := <-events:
		if !ok {
			t.Fatal("the stream ended")
		}
		return m
	case <-time.After(time.Minute):
		t.Fatal("no event came")
		return nil
	}
}

// subscription gives the tag of a message.
func subscription(m map[string]any) any {
	params, _ := m["params"].(map[string]any)
	if result, ok := m["result"].(map[string]any); ok {
		params = result
	}
	meta, _ := params["_meta"].(map[string]any)
	return meta[mcp.MetaSubscriptionID]
}

func TestListen(t *testing.T) {
	f := start(t, config(tool("a", nil)))
	listening := f.listen(`"sub"`, `{"toolsListChanged":true,"promptsListChanged":true}`)
	if listening.header.Get("Content-Type") != "text/event-stream" || listening.header.Get("X-Accel-Buffering") != "no" {
		t.Errorf("headers %v", listening.header)
	}
	stream, deaf := listening.events, f.listen(`2`, `{}`).events
	first := next(t, stream)
	params, _ := first["params"].(map[string]any)
	if got := fmt.Sprint(params["notifications"]); first["method"] != mcp.NotificationAcknowledged || got != "map[promptsListChanged:true toolsListChanged:true]" || subscription(first) != "sub" {
		t.Errorf("acknowledged by %v", first)
	}
	if first := next(t, deaf); subscription(first) != 2.0 {
		t.Errorf("acknowledged by %v", first)
	}
	f.reload(config(tool("a", nil), tool("b", nil)))
	if m := next(t, stream); m["method"] != mcp.NotificationToolsChanged || subscription(m) != "sub" {
		t.Errorf("got %v", m)
	}
	// An edit that changes no list tells nobody.
	f.reload(config(tool("a", func(t *serverconfig.Tool) { t.Expression = &serverconfig.Result{Text: "'new'"} }), tool("b", nil)))
	f.reload(config(tool("a", nil)))
	if m := next(t, stream); m["method"] != mcp.NotificationToolsChanged {
		t.Errorf("got %v", m)
	}
	must(t, f.server.Stop(context.Background()))
	last := next(t, stream)
	result, _ := last["result"].(map[string]any)
	if last["id"] != "sub" || result["resultType"] != "complete" || subscription(last) != "sub" {
		t.Errorf("ended by %v", last)
	}
	if m, more := <-stream; more {
		t.Errorf("after the end: %v", m)
	}
	if m := next(t, deaf); m["id"] != 2.0 {
		t.Errorf("the deaf one got %v", m)
	}
}

func TestLimits(t *testing.T) {
	t.Run("rate", func(t *testing.T) {
		c := config(tool("ping", nil))
		c.Limits.RequestsPerSecond, c.Limits.Burst = 1, 2
		f := start(t, c)
		var reasons []string
		for range 3 {
			reasons = append(reasons, f.do(f.callModern("ping", "{}")).reason())
		}
		if fmt.Sprint(reasons) != "[  RateLimited]" {
			t.Errorf("got %q", reasons)
		}
		if got := f.do(f.modern("tools/list", "")); got.status != 200 {
			t.Errorf("list: got %d", got.status)
		}
	})
	t.Run("concurrency", func(t *testing.T) {
		backend := newBlockingBackend(t)
		c := config(slowTool(backend.URL))
		c.Limits.Concurrency = 2
		f := start(t, c)
		first, second := f.async(f.callModern("slow", "{}")), f.async(f.callModern("slow", "{}"))
		<-backend.arrived
		<-backend.arrived
		if got := f.do(f.callModern("slow", "{}")); got.reason() != "ConcurrencyLimit" {
			t.Errorf("got %s", got.body)
		}
		close(backend.release)
		<-first
		<-second
		if got := f.do(f.callModern("slow", "{}")); got.text() != "released" {
			t.Errorf("got %s", got.body)
		}
	})
	t.Run("streams", func(t *testing.T) {
		c := config(tool("ping", nil))
		c.Limits.Streams = 1
		f := start(t, c)
		first := f.listen("1", `{"toolsListChanged":true}`)
		next(t, first.events)
		if refused := f.listen("2", `{}`); refused.status != http.StatusTooManyRequests {
			t.Errorf("got %d", refused.status)
		}
		first.close()
		f.until("a free place", func() bool {
			again := f.listen("3", `{}`)
			defer again.close()
			return again.status == http.StatusOK
		})
	})
	t.Run("result size", func(t *testing.T) {
		c := config(tool("big", func(t *serverconfig.Tool) { t.Expression = &serverconfig.Result{Text: "args.x + args.x"} }))
		c.Limits.MaxMessageBytes = 1000
		f := start(t, c)
		if got := f.do(f.callModern("big", `{"x":"`+strings.Repeat("x", 600)+`"}`)); got.reason() != "ResultTooLarge" {
			t.Errorf("got %s", got.body)
		}
	})
}

func TestValidation(t *testing.T) {
	f := start(t, config(
		tool("add", func(t *serverconfig.Tool) {
			t.Definition = json.RawMessage(`{"name":"add","inputSchema":{"type":"object","required":["a"],"properties":{"a":{"type":"integer"}}},"outputSchema":{"type":"object","required":["sum"],"properties":{"sum":{"type":"integer"}}}}`)
			t.Expression = &serverconfig.Result{Structured: "{'sum': args.a > 9 ? dyn('many') : args.a + 1}"}
		}),
		tool("text", func(t *serverconfig.Tool) {
			t.Definition = json.RawMessage(`{"name":"text","inputSchema":{"type":"object"},"outputSchema":{"type":"object"}}`)
		}),
	))
	tests := []struct{ tool, args, reason, text string }{
		{"add", `{"a":1}`, "", `{"sum":2}`},
		{"add", `{}`, "InvalidArguments", `invalid arguments: required: missing properties: ["a"]`},
		{"add", `{"a":"1"}`, "InvalidArguments", `invalid arguments: a: type: 1 has type "string", want "integer"`},
		{"add", `{"a":10}`, "InvalidResult", `the result does not keep to the tool's outputSchema: sum: type: many has type "string", want "integer"`},
		{"text", `{}`, "InvalidResult", "the tool declares an outputSchema but gave no structured content"},
	}
	for _, tt := range tests {
		got := f.do(f.callModern(tt.tool, tt.args))
		if got.status != 200 || got.reason() != tt.reason || got.text() != tt.text {
			t.Errorf("%s %s: got %s", tt.tool, tt.args, got.body)
		}
	}
}

// TestSwapsAreAtomic reloads under load: each list is whole, of one version,
// and each call is answered by a version that was served while it ran.
func TestSwapsAreAtomic(t *testing.T) {
	const tools, versions = 20, 15
	version := func(v int) *serverconfig.Config {
		c := config()
		for i := range tools {
			c.Tools = append(c.Tools, tool(fmt.Sprintf("t%02d", i), func(t *serverconfig.Tool) {
				t.Definition = json.RawMessage(`{"name":"` + t.Name + `","title":"` + strconv.Itoa(v) + `","inputSchema":{"type":"object"}}`)
				t.Expression = &serverconfig.Result{Text: "'" + strconv.Itoa(v) + "'"}
			}))
		}
		return c
	}
	f := start(t, version(0))
	var served atomic.Int64 // the newest version that is known to be served
	var wanted atomic.Int64 // the newest version on disk
	ctx, cancel := context.WithCancel(context.Background())
	var clients sync.WaitGroup
	for range 4 {
		clients.Go(func() {
			for ctx.Err() == nil {
				least := served.Load()
				got := f.do(f.modern("tools/list", ""))
				list, _ := got.result()["tools"].([]any)
				titles := map[any]bool{}
				for _, entry := range list {
					titles[entry.(map[string]any)["title"]] = true
				}
				if len(list) != tools || len(titles) != 1 {
					t.Errorf("a list of %d tools of versions %v", len(list), titles)
				}
				answered := f.do(f.callModern("t07", "{}"))
				v, err := strconv.ParseInt(answered.text(), 10, 64)
				if err != nil || v < least || v > wanted.Load() {
					t.Errorf("answered by version %d, served was %d", v, least)
				}
			}
		})
	}
	for v := 1; v <= versions; v++ {
		wanted.Store(int64(v))
		f.reload(version(v))
		served.Store(int64(v))
	}
	cancel()
	clients.Wait()
}

func TestCatalogStates(t *testing.T) {
	f := start(t, config(tool("a", nil)))
	digest := f.server.Report().CatalogDigest
	state := func(want podreport.CatalogState) {
		t.Helper()
		f.until(string(want), func() bool { return f.server.Report().CatalogState == want })
		if got := f.server.Report().CatalogDigest; got != digest {
			t.Errorf("%s: serves %s", want, got)
		}
		if got := f.do(f.callModern("a", "{}")); got.text() != "a" {
			t.Errorf("%s: got %s", want, got.body)
		}
	}
	demanding := config(tool("b", nil))
	demanding.Requires = []string{"access-rules-of-the-future"}
	f.write(demanding)
	state(podreport.CatalogUnsupported)
	if got := f.server.Report().Missing; len(got) != 1 || got[0] != "access-rules-of-the-future" {
		t.Errorf("missing %v", got)
	}
	set, err := serverconfig.Cut(config(tool("c", nil)))
	must(t, err)
	f.mount(map[string][]byte{serverconfig.IndexKey: set.Index})
	state(podreport.CatalogIncomplete)
	f.mount(map[string][]byte{serverconfig.IndexKey: set.Index, set.Keys[0]: []byte("{}")})
	state(podreport.CatalogIncomplete)
	f.mount(map[string][]byte{serverconfig.IndexKey: []byte("{")})
	state(podreport.CatalogInvalid)
	f.mount(map[string][]byte{})
	state(podreport.CatalogMissing)
	f.reload(config(tool("a", nil), tool("d", nil)))
	// The state is told when the swap is done, a moment after the new catalog
	// answers.
	f.until("loaded again", func() bool {
		got := f.server.Report()
		return got.CatalogState == podreport.CatalogLoaded && got.Missing == nil
	})
}

func TestDrain(t *testing.T) {
	backend := newBlockingBackend(t)
	f := start(t, config(slowTool(backend.URL)), func(o *mcpserver.Options) { o.DrainDelay = 3 * time.Second })
	answers := f.async(f.callModern("slow", "{}"))
	<-backend.arrived
	stopped := make(chan error, 2)
	for range 2 {
		go func() { stopped <- f.server.Stop(context.Background()) }()
	}
	f.until("not ready", func() bool { ok, why := f.server.Ready(); return !ok && why == "Draining" })
	if got := f.do(f.modern("tools/list", "")); got.status != 200 {
		t.Errorf("in the delay: got %d", got.status)
	}
	close(backend.release)
	if got := <-answers; got.text() != "released" {
		t.Errorf("got %s", got.body)
	}
	for range 2 {
		if err := <-stopped; err != nil {
			t.Errorf("got %v", err)
		}
	}
	if err := f.server.Start(); !errors.Is(err, transport.ErrStarted) {
		t.Errorf("second start: got %v", err)
	}
}

func TestForcedStop(t *testing.T) {
	backend := newBlockingBackend(t)
	f := start(t, config(slowTool(backend.URL)), func(o *mcpserver.Options) { o.ShutdownTimeout = 50 * time.Millisecond })
	f.async(f.callModern("slow", "{}"))
	<-backend.arrived
	if err := f.server.Stop(context.Background()); err == nil {
		t.Error("a forced stop says nothing")
	}
	<-backend.left
}

func TestStopWithoutStart(t *testing.T) {
	s := mcpserver.New(mcpserver.Options{})
	must(t, s.Stop(context.Background()))
	must(t, s.Stop(context.Background()))
	if err := s.Start(); !errors.Is(err, transport.ErrStarted) {
		t.Errorf("got %v", err)
	}
}

func TestLogHoldsNoValues(t *testing.T) {
	f := start(t, config(tool("echo", func(t *serverconfig.Tool) { t.Expression = &serverconfig.Result{Text: "args.secret"} })))
	f.do(f.callModern("echo", `{"secret":"hunter2-secret"}`))
	f.do(f.callModern("echo", `{"other":"hunter2-secret"}`))
	f.do(f.callModern("hunter2-secret", `{}`))
	must(t, f.server.Stop(context.Background()))
	seen := 0
	for {
		select {
		case line := <-f.log.lines:
			seen++
			if strings.Contains(string(line), "hunter2") {
				t.Errorf("logged: %s", line)
			}
			continue
		default:
		}
		break
	}
	if seen < 4 {
		t.Errorf("only %d lines were logged", seen)
	}
}
