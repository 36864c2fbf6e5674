// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpprobe/fakemcp"
)

// In the modern era a request that is given up is aborted, and no message
// says so.
func TestCancelModern(t *testing.T) {
	s := fakemcp.New()
	s.Settings.Modern = true
	began, ended := make(chan struct{}), make(chan struct{})
	s.On(mcp.MethodToolsCall, func(c *fakemcp.Call) {
		close(began)
		c.Hang()
		close(ended)
	})
	r := connect(t, fake(t, s))
	r.send(`{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"alpha",` + meta + `}}`)
	<-began
	r.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"x","reason":"enough"}}`)
	<-ended
	r.send(`{"jsonrpc":"2.0","id":"y","method":"tools/list","params":{` + meta + `}}`)
	r.until(`"id":"y"`)
	if s.Count(mcp.NotificationCancelled) != 0 {
		t.Error("a message said it, too")
	}
}

// In the legacy era the client's own words go on.
func TestCancelLegacy(t *testing.T) {
	s := fakemcp.New()
	began, ended := make(chan struct{}), make(chan struct{})
	s.On(mcp.MethodToolsCall, func(c *fakemcp.Call) {
		close(began)
		c.Hang()
		close(ended)
	})
	s.On(mcp.NotificationCancelled, func(c *fakemcp.Call) { c.Text(http.StatusAccepted, "", "") })
	r := connect(t, fake(t, s))
	r.shake()
	r.send(`{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"alpha"}}`)
	<-began
	note := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"x","reason":"enough"}}`
	r.send(note)
	<-ended
	told := false
	for _, request := range s.Requests() {
		told = told || request.Method == mcp.NotificationCancelled && string(request.Body) == note
	}
	if !told {
		t.Error("the server was not told")
	}
	// What waits for a server is given up without one.
	away := connect(t, &place{})
	away.send(`{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"alpha",`+meta+`}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"x"}}`)
	away.close()
}

// A client that sends no more gets its answers, and then the session ends.
func TestEndDrains(t *testing.T) {
	s := fakemcp.New()
	release := make(chan struct{})
	began := make(chan struct{})
	s.On(mcp.MethodToolsCall, func(c *fakemcp.Call) {
		close(began)
		<-release
		c.WellBehaved()
	})
	r := connect(t, fake(t, s))
	// All at once, as a script does.
	r.send(hello, initialized, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"alpha","arguments":{}}}`)
	_ = r.in.Close()
	<-began
	if n := s.OpenSessions(); n != 1 {
		t.Errorf("%d sessions while a call runs", n)
	}
	close(release)
	r.until(`"id":"hello"`)
	r.until(`"id":1`, `"result"`)
	r.close()
	if s.OpenSessions() != 0 || s.Count(fakemcp.DELETE) != 1 {
		t.Errorf("%d sessions are left after %d DELETE", s.OpenSessions(), s.Count(fakemcp.DELETE))
	}
	if got := s.Requests()[1].Method; got != mcp.NotificationInitialized {
		t.Errorf("after initialize came %s", got)
	}
}

// Told to end, the bridge does not wait for what may take long.
func TestStopEndsSession(t *testing.T) {
	s := fakemcp.New()
	began := make(chan struct{})
	s.On(mcp.MethodToolsCall, func(c *fakemcp.Call) {
		close(began)
		c.Hang()
	})
	r := connect(t, fake(t, s))
	r.shake()
	r.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"alpha"}}`)
	<-began
	r.stop()
	if err := <-r.ended; err != nil {
		t.Error(err)
	}
	if n := s.Count(fakemcp.DELETE); n != 1 {
		t.Errorf("%d DELETE", n)
	}
}

// Answers of many requests at once are whole lines, each its own.
func TestManyAtOnce(t *testing.T) {
	s := fakemcp.New()
	const many = 200
	var all sync.WaitGroup
	all.Add(many)
	s.On(mcp.MethodToolsCall, func(c *fakemcp.Call) {
		all.Done()
		all.Wait() // They do run at once.
		c.Stream(fakemcp.Data(`{"jsonrpc":"2.0","method":"notifications/progress","params":{}}`), fakemcp.Data(c.Response(map[string]any{"x": strings.Repeat("x", 10000)})))
	})
	r := connect(t, fake(t, s))
	r.shake()
	for i := range many {
		r.send(`{"jsonrpc":"2.0","id":` + strconv.Itoa(i) + `,"method":"tools/call","params":{"name":"alpha"}}`)
	}
	seen := map[string]bool{}
	for range 2 * many {
		line := r.line()
		if seen[line] && strings.Contains(line, `"id"`) {
			t.Fatalf("twice: %.80s", line)
		}
		seen[line] = true
	}
	if len(seen) != many+1 {
		t.Errorf("%d lines of %d", len(seen), many+1)
	}
}

// A batch goes on as it is; who gets no answer gets one from here.
func TestBatch(t *testing.T) {
	s := fakemcp.New()
	batch := `[{"jsonrpc":"2.0","id":1,"method":"tools/list"},{"jsonrpc":"2.0","method":"notifications/x"},{"jsonrpc":"2.0","id":"2","method":"ping"}]`
	answers := `[{"jsonrpc":"2.0","id":"2","result":{}},{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}]`
	s.On(fakemcp.Any, func(c *fakemcp.Call) {
		if c.Method != "" || c.R.Method != http.MethodPost {
			c.Default()
			return
		}
		c.Text(http.StatusOK, "application/json", answers)
	})
	r := connect(t, fake(t, s))
	r.shake()
	r.send(batch)
	r.expect(answers)
	answers = `[{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}]`
	r.send(batch)
	r.expect(answers)
	r.until(`"id":"2"`, `"reason":"NotMCP"`)
	r.send(`[{"jsonrpc":"2.0","id":1}]`)
	r.until(`"code":-32600`)
}

// A listen stream outlives its server: the client hears what it may have
// missed, and nothing of the rest.
func TestListen(t *testing.T) {
	s := fakemcp.New()
	s.Settings.Modern = true
	ack := `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"l"},"notifications":{"toolsListChanged":true,"resourceSubscriptions":["x://\u0061"]}}}`
	// Each stream lasts until its own end comes: then the server drains.
	ends := []chan struct{}{make(chan struct{}), make(chan struct{}), make(chan struct{})}
	var streams atomic.Int32
	s.On(mcp.MethodSubscriptionsListen, func(c *fakemcp.Call) {
		end := ends[streams.Add(1)-1]
		c.Stream(fakemcp.Data(ack))
		select {
		case <-end:
			c.Send(fakemcp.Data(c.Response(map[string]any{"resultType": "complete"})))
		case <-c.R.Context().Done():
		}
	})
	at := fake(t, s)
	r := connect(t, at)
	listen := `{"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},` + meta + `}}`
	r.send(listen)
	r.expect(ack)
	missed := []string{
		`{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"l"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"l"},"uri":"x://\u0061"}}`,
	}
	at.set("") // It is cut.
	at.serve(t, s)
	r.expectAll(missed...)
	close(ends[1]) // It ends in good order.
	r.expectAll(missed...)

	// The server's refusal is the client's answer.
	s.On(mcp.MethodSubscriptionsListen, func(c *fakemcp.Call) { c.Error(http.StatusNotFound, -32601, "gone", nil) })
	close(ends[2])
	r.expect(`{"jsonrpc":"2.0","id":"l","error":{"code":-32601,"message":"gone"}}`)

	// One that tells of nothing is over when the server says so.
	empty := `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{}}}`
	s.On(mcp.MethodSubscriptionsListen, func(c *fakemcp.Call) {
		c.Stream(fakemcp.Data(empty), fakemcp.Data(`{"jsonrpc":"2.0","id":"l","result":{}}`))
	})
	r.send(listen)
	r.expect(empty)
	r.expect(`{"jsonrpc":"2.0","id":"l","result":{}}`)

	// Given up, it ends; and the end of the client does not wait for one.
	s.On(mcp.MethodSubscriptionsListen, func(c *fakemcp.Call) {
		c.Stream(fakemcp.Data(ack))
		c.Hang()
	})
	r.send(listen)
	r.expect(ack)
	r.close()
}
