// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver"
	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/mcpserver/memory"
	"github.com/espalier-dev/espalier/internal/mcpserver/metrics"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// column of the table: one transport in one era.
type column struct {
	name    string
	modern  bool
	connect connector
	// absent: no revision defines the era over this transport.
	absent bool
	// single: a server has one client only.
	single bool
}

var columns = []column{
	{name: "StreamableHTTP modern", modern: true, connect: connectHTTP},
	{name: "StreamableHTTP legacy", connect: connectHTTP},
	{name: "SSE modern", modern: true, connect: connectSSE, absent: true},
	{name: "SSE legacy", connect: connectSSE},
	{name: "WebSocket modern", modern: true, connect: connectWebSocket},
	{name: "WebSocket legacy", connect: connectWebSocket},
	{name: "stdio modern", modern: true, connect: connectStdio, single: true},
	{name: "stdio legacy", connect: connectStdio, single: true},
	{name: "memory modern", modern: true, connect: connectMemory},
	{name: "memory legacy", connect: connectMemory},
}

// row of the table. connect gives further clients of the column.
type row struct {
	name string
	// modern and legacy are what is seen in an era.
	modern, legacy func(c *cell)
}

// cell is one row in one column.
type cell struct {
	*testing.T
	*client
	f       *fixture
	column  column
	backend *blockingBackend
}

// another client of the column.
func (c *cell) another() *client {
	f := c.f
	if c.column.single {
		f = startAll(c.T, every())
	}
	return c.column.connect(c.T, f, c.column.modern)
}

// every is a config with all transports.
func every(tools ...serverconfig.Tool) *serverconfig.Config {
	c := config(tools...)
	c.Transports = []serverconfig.Transport{
		{Type: serverconfig.TransportStreamableHTTP, Path: "/mcp"},
		{Type: serverconfig.TransportSSE, Path: "/sse"},
		{Type: serverconfig.TransportWebSocket, Path: "/ws"},
	}
	c.Requires = []string{serverconfig.FeatureTransports}
	return c
}

// startAll starts a server with all transports there are.
func startAll(t *testing.T, c *serverconfig.Config, change ...func(*mcpserver.Options)) *fixture {
	t.Helper()
	inReader, inWriter := io.Pipe()
	outReader, outWriter := io.Pipe()
	log := slog.New(slog.DiscardHandler)
	mem := memory.New(metrics.New("test"), log)
	change = append([]func(*mcpserver.Options){func(o *mcpserver.Options) {
		o.Transports = append(o.Transports, mem)
		o.Stdio = &mcpserver.Stdio{In: inReader, Out: outWriter}
	}}, change...)
	f := start(t, c, change...)
	f.memory, f.stdin, f.stdout, f.stdoutEnd = mem, inWriter, outReader, outWriter
	t.Cleanup(func() {
		_ = inWriter.Close()
		_ = outReader.Close()
	})
	return f
}

// TestTransports is the one conformance test of all transports: a column per
// transport and era, a row per behaviour. What no revision defines is seen to
// be absent.
func TestTransports(t *testing.T) {
	for _, col := range columns {
		t.Run(col.name, func(t *testing.T) {
			for _, row := range rows {
				t.Run(row.name, func(t *testing.T) {
					backend := newBlockingBackend(t)
					f := startAll(t, every(tool("ping", nil), tool("none", func(t *serverconfig.Tool) { t.Expression = nil }), tool("elicit", nil), slowTool(backend.URL)), asking)
					c := &cell{T: t, f: f, column: col, client: col.connect(t, f, col.modern), backend: backend}
					switch {
					case col.absent:
						absent(c)
					case col.modern:
						row.modern(c)
					default:
						row.legacy(c)
					}
				})
			}
		})
	}
}

// absent: a request of the modern era is refused as the protocol has it, and
// told what is spoken.
func absent(c *cell) {
	for _, method := range []string{"server/discover", "tools/list", "subscriptions/listen"} {
		wantRefused(c.T, c.ask(method, ""), mcp.CodeUnsupportedProtocolVersion, mcp.LegacyVersions)
	}
	if m := c.raw("", "server/discover", "").answer(c.T); errorOf(m) == 0 {
		c.Errorf("got %v", m)
	}
}

func wantRefused(t *testing.T, m message, code int, supported []string) {
	t.Helper()
	e, _ := m["error"].(message)
	data, _ := e["data"].(message)
	var got []string
	list, _ := data["supported"].([]any)
	for _, v := range list {
		got = append(got, v.(string))
	}
	if errorOf(m) != code || !slices.Equal(got, supported) {
		t.Errorf("got %v, want code %d and %v", m, code, supported)
	}
}

func errorOf(m message) int {
	e, _ := m["error"].(message)
	code, _ := e["code"].(float64)
	return int(code)
}

func resultOf(m message) message {
	result, _ := m["result"].(message)
	return result
}

func textOf(m message) string {
	raw, _ := json.Marshal(m)
	return answer{body: string(raw)}.text()
}

func toolsOf(m message) []string {
	var names []string
	list, _ := resultOf(m)["tools"].([]any)
	for _, entry := range list {
		names = append(names, entry.(message)["name"].(string))
	}
	return names
}

var rows = []row{
	{"discovery identity", identityModern, identityLegacy},
	{"protocols", protocolsModern, protocolsLegacy},
	{"a contributed tool", contributed, begun(contributed)},
	{"list changes", changesModern, begun(changesLegacy)},
	{"subscription ids", subscriptionsModern, begun(subscriptionsLegacy)},
	{"cancellation", cancellation, begun(cancellation)},
	{"questions", questionsModern, begun(questionsLegacy)},
	{"closure by the client", closure, begun(closure)},
	{"closure by the server", shutdownModern, begun(shutdownLegacy)},
}

// begun runs f in a session.
func begun(f func(*cell)) func(*cell) {
	return func(c *cell) {
		c.initialize("2025-11-25")
		f(c)
	}
}

var identity = message{"name": "test", "title": "Test", "version": "1.0.0"}

func identityModern(c *cell) {
	result := resultOf(c.ask("server/discover", ""))
	meta, _ := result["_meta"].(message)
	want := message{mcp.MetaServerInfo: identity, mcp.MetaCatalogDigest: c.f.server.Report().CatalogDigest}
	if diff := cmp.Diff(want, meta); diff != "" || result["instructions"] != "Ask." {
		c.Errorf("%s%v", diff, result)
	}
}

func identityLegacy(c *cell) {
	result := resultOf(c.initialize("2025-06-18"))
	meta, _ := result["_meta"].(message)
	if diff := cmp.Diff(identity, result["serverInfo"]); diff != "" || result["instructions"] != "Ask." || meta[mcp.MetaCatalogDigest] != c.f.server.Report().CatalogDigest {
		c.Errorf("%s%v", diff, result)
	}
}

func protocolsModern(c *cell) {
	versions, _ := resultOf(c.ask("server/discover", ""))["supportedVersions"].([]any)
	if got := fmt.Sprint(versions); got != fmt.Sprint(mcp.AllVersions()) {
		c.Errorf("supports %s", got)
	}
	later := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2099-01-01","io.modelcontextprotocol/clientCapabilities":{}}`
	wantRefused(c.T, c.raw("", "tools/list", later).answer(c.T), mcp.CodeUnsupportedProtocolVersion, mcp.AllVersions())
	for _, method := range []string{"initialize", "ping", "logging/setLevel", "resources/subscribe"} {
		if m := c.ask(method, `"protocolVersion":"2026-07-28"`); errorOf(m) != mcp.CodeMethodNotFound {
			c.Errorf("%s: got %v", method, m)
		}
	}
}

func protocolsLegacy(c *cell) {
	for i, version := range append(mcp.LegacyVersions, "1999-01-01") {
		p := c.client
		if i > 0 {
			p = c.another()
		}
		want := version
		if !mcp.IsLegacy(version) {
			want = mcp.LegacyVersions[0]
		}
		if got := resultOf(p.initialize(version))["protocolVersion"]; got != want {
			c.Errorf("asked for %s, got %v", version, got)
		}
		if m := p.ask("ping", ""); m["result"] == nil {
			c.Errorf("ping gave %v", m)
		}
	}
	if m := c.raw("", "server/discover", "").answer(c.T); errorOf(m) == 0 {
		c.Errorf("server/discover gave %v", m)
	}
}

func contributed(c *cell) {
	if got := fmt.Sprint(toolsOf(c.ask("tools/list", ""))); got != "[elicit none ping slow]" {
		c.Errorf("listed %s", got)
	}
	if got := textOf(c.call("ping", "{}").answer(c.T)); got != "ping" {
		c.Errorf("got %q", got)
	}
	if got := textOf(c.call("none", "{}").answer(c.T)); got != "no executor configured" {
		c.Errorf("got %q", got)
	}
	if m := c.call("nope", "{}").answer(c.T); errorOf(m) != mcp.CodeInvalidParams {
		c.Errorf("got %v", m)
	}
}

func changesModern(c *cell) {
	listening := c.open("", "subscriptions/listen", `"notifications":{"toolsListChanged":true}`)
	if m := next(c.T, listening.messages); m["method"] != mcp.NotificationAcknowledged {
		c.Fatalf("got %v", m)
	}
	c.f.reload(every(tool("fresh", nil)))
	if m := next(c.T, listening.messages); m["method"] != mcp.NotificationToolsChanged {
		c.Errorf("got %v", m)
	}
	if got := fmt.Sprint(toolsOf(c.ask("tools/list", ""))); got != "[fresh]" {
		c.Errorf("listed %s", got)
	}
}

func changesLegacy(c *cell) {
	c.f.reload(every(tool("fresh", nil)))
	if m := next(c.T, c.unasked); m["method"] != mcp.NotificationToolsChanged {
		c.Errorf("got %v", m)
	}
	if got := fmt.Sprint(toolsOf(c.ask("tools/list", ""))); got != "[fresh]" {
		c.Errorf("listed %s", got)
	}
}

func subscriptionsModern(c *cell) {
	const filter = `"notifications":{"toolsListChanged":true}`
	for _, x := range []*exchange{c.open(`"sub"`, "subscriptions/listen", filter), c.open("77", "subscriptions/listen", filter)} {
		defer func() {
			id, _ := json.Marshal(subscription(next(c.T, x.messages)))
			if string(id) != x.id {
				c.Errorf("a change for %s is tagged %s", x.id, id)
			}
		}()
		if id, _ := json.Marshal(subscription(next(c.T, x.messages))); string(id) != x.id {
			c.Errorf("the acknowledgement for %s is tagged %s", x.id, id)
		}
	}
	c.f.reload(every(tool("fresh", nil)))
}

func subscriptionsLegacy(c *cell) {
	if m := c.raw("", "subscriptions/listen", `"notifications":{}`).answer(c.T); errorOf(m) == 0 {
		c.Errorf("got %v", m)
	}
	c.f.reload(every(tool("fresh", nil)))
	if m := next(c.T, c.unasked); subscription(m) != nil {
		c.Errorf("got %v", m)
	}
}

func cancellation(c *cell) {
	given := c.call("slow", "{}")
	<-c.backend.arrived
	given.cancel()
	<-c.backend.left
	if got := textOf(c.call("ping", "{}").answer(c.T)); got != "ping" {
		c.Errorf("after that: %q", got)
	}
	must(c.T, c.f.server.Stop(context.Background())) // All has been said then.
	select {
	case m, more := <-given.messages:
		// Where each request has an answer of its own that says that it was.
		if own := c.column.name == "StreamableHTTP legacy"; more && !own {
			c.Errorf("a cancelled request was answered: %v", m)
		}
	default:
	}
}

func questionsModern(c *cell) {
	if got := textOf(c.call("elicit", "{}").answer(c.T)); got != call.ErrCannotAsk.Error() {
		c.Errorf("got %q", got)
	}
}

func questionsLegacy(c *cell) {
	asked := c.call("elicit", "{}")
	question := next(c.T, c.unasked)
	if question["method"] != mcp.MethodElicit {
		c.Fatalf("asked %v", question)
	}
	id, _ := json.Marshal(question["id"])
	c.client.send(`{"jsonrpc":"2.0","id":`+string(id)+`,"result":{"action":"decline"}}`, nil)
	if got := textOf(asked.answer(c.T)); got != `{"action":"decline"}` {
		c.Errorf("got %q", got)
	}
}

func closure(c *cell) {
	running := c.call("slow", "{}")
	<-c.backend.arrived
	c.client.close()
	if !c.column.single {
		<-c.backend.left
		return
	}
	// The end of stdin says that nothing more is asked; what was is answered.
	close(c.backend.release)
	if got := textOf(running.answer(c.T)); got != "released" {
		c.Errorf("the call was answered %q", got)
	}
	wantOver(c)
}

func wantOver(c *cell) {
	select {
	case <-c.over:
	case <-time.After(time.Minute):
		c.Error("the connection did not end")
	}
}

func (c *cell) stops() <-chan error {
	stopped := make(chan error, 1)
	go func() { stopped <- c.f.server.Stop(context.Background()) }()
	return stopped
}

func shutdownModern(c *cell) {
	listening := c.open("", "subscriptions/listen", `"notifications":{}`)
	next(c.T, listening.messages)
	running := c.call("slow", "{}")
	<-c.backend.arrived
	stopped := c.stops()
	if m := listening.answer(c.T); resultOf(m)["resultType"] != "complete" {
		c.Errorf("the stream ended with %v", m)
	}
	close(c.backend.release)
	if got := textOf(running.answer(c.T)); got != "released" {
		c.Errorf("the call was answered %q", got)
	}
	must(c.T, <-stopped)
	if c.column.name != "StreamableHTTP modern" { // There is no connection that could end.
		wantOver(c)
	}
}

func shutdownLegacy(c *cell) {
	running := c.call("slow", "{}")
	<-c.backend.arrived
	stopped := c.stops()
	close(c.backend.release)
	if got := textOf(running.answer(c.T)); got != "released" {
		c.Errorf("the call was answered %q", got)
	}
	must(c.T, <-stopped)
	wantOver(c)
}
