// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpserver_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpprobe/fakemcp"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// subscribed opens a stream for resources and gives what is acknowledged.
func (f *fixture) subscribed(uris ...string) (listener, string) {
	f.t.Helper()
	t, _ := f.t.(*testing.T)
	l := f.listen(`"s"`, `{"resourceSubscriptions":["`+strings.Join(uris, `","`)+`"]}`)
	params, _ := next(t, l.events)["params"].(map[string]any)
	told, _ := params["notifications"].(map[string]any)
	return l, fmt.Sprint(told["resourceSubscriptions"])
}

// updatedURI is the resource that the next event tells of.
func updatedURI(t *testing.T, l listener) string {
	t.Helper()
	m := next(t, l.events)
	params, _ := m["params"].(map[string]any)
	if m["method"] != mcp.NotificationUpdated || subscription(m) != "s" {
		t.Errorf("got %v", m)
	}
	return fmt.Sprint(params["uri"])
}

// TestUpstreamUpdates: what a real server of either era tells of a resource
// reaches those that asked for it, also over a later connection.
func TestUpstreamUpdates(t *testing.T) {
	for _, modern := range []bool{true, false} {
		t.Run(fmt.Sprintf("modern=%t", modern), func(t *testing.T) {
			server, p := sdkPeer(t, modern)
			f := start(t, fronting(p.upstream("u", "")), hurried)
			f.until("the resources", func() bool { return len(f.resources()) == 1 })
			update := func(uri string) {
				t.Helper()
				must(t, server.ResourceUpdated(context.Background(), &sdk.ResourceUpdatedNotificationParams{URI: uri}))
			}
			one, acknowledged := f.subscribed("u:one", "u:many/1", "x:nope")
			if acknowledged != "[u:one u:many/1 x:nope]" {
				t.Errorf("acknowledged %s", acknowledged) // An upstream may come to know any URI.
			}
			other, _ := f.subscribed("u:many/2")
			update("u:many/1")
			if got := updatedURI(t, one); got != "u:many/1" {
				t.Errorf("told of %s", got)
			}
			update("u:many/2")
			if got := updatedURI(t, other); got != "u:many/2" {
				t.Errorf("told of %s", got)
			}
			update("u:one")
			if got := updatedURI(t, one); got != "u:one" {
				t.Errorf("told of %s", got)
			}
			// What is missed while there is no connection is told afterwards.
			for s := range server.Sessions() {
				_ = s.Close()
			}
			p.down()
			f.until("word of the loss", func() bool { return strings.HasPrefix(f.upstreams(), "u Unavailable") })
			p.up()
			told := map[string]bool{}
			for len(told) < 3 { // What may have been missed may be told twice.
				told[updatedURI(t, one)] = true
			}
			if !told["u:one"] || !told["u:many/1"] || !told["x:nope"] || updatedURI(t, other) != "u:many/2" {
				t.Errorf("told of %v", told)
			}
			update("u:many/2")
			if got := updatedURI(t, other); got != "u:many/2" {
				t.Errorf("told of %s", got)
			}
		})
	}
}

// subscriptions records what a legacy fake is asked to tell of.
type subscriptions struct {
	mu    sync.Mutex
	calls []string
	tell  chan string // URIs for the GET stream
}

func (s *subscriptions) has(calls ...string) func() bool {
	return func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return strings.Join(s.calls, ",") == strings.Join(calls, ",")
	}
}

func subscribing(f *fakemcp.Server) *subscriptions {
	s := &subscriptions{tell: make(chan string, 10)}
	f.Settings.Capabilities = map[string]any{"resources": map[string]any{"subscribe": true}}
	for _, method := range []string{mcp.MethodSubscribe, mcp.MethodUnsubscribe} {
		f.On(method, func(c *fakemcp.Call) {
			s.mu.Lock()
			s.calls = append(s.calls, strings.TrimPrefix(c.Method, "resources/")+string(c.Params))
			s.mu.Unlock()
			c.Result(map[string]any{})
		})
	}
	f.On(fakemcp.GET, func(c *fakemcp.Call) {
		c.Stream(": open\n\n")
		for {
			select {
			case uri := <-s.tell:
				c.Send(fakemcp.Data(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"` + uri + `"}}`))
			case <-c.R.Context().Done():
				return
			}
		}
	})
	return s
}

// TestUpstreamSubscribedOnce: clients share one subscription, which ends with
// the last of them; what nobody asked for reaches nobody.
func TestUpstreamSubscribedOnce(t *testing.T) {
	server, p := fakeResources(t, "a", "a:1")
	server.Settings.Modern, server.Settings.Legacy = false, true
	s := subscribing(server)
	f := start(t, fronting(p.upstream("u", "")), hurried)
	f.until("the resource", func() bool { return len(f.resources()) == 1 })
	first, _ := f.subscribed("a:1")
	second, _ := f.subscribed("a:1", "a:dir")
	const one, dir = `subscribe{"uri":"a:1"}`, `subscribe{"uri":"a:dir"}`
	if !s.has(one, dir)() {
		t.Fatalf("asked %q", s.calls)
	}
	s.tell <- "a:2"       // Nobody's.
	s.tell <- "a:dir/sub" // Below what the second asked for.
	s.tell <- "a:1"
	if got := updatedURI(t, first); got != "a:1" {
		t.Errorf("the first is told of %s", got)
	}
	if told := map[string]bool{updatedURI(t, second): true, updatedURI(t, second): true}; !told["a:dir"] || !told["a:1"] {
		t.Errorf("the second is told of %v", told)
	}
	second.close()
	f.until("the end of one subscription", s.has(one, dir, `unsubscribe{"uri":"a:dir"}`))
	first.close()
	f.until("the end of the other", s.has(one, dir, `unsubscribe{"uri":"a:dir"}`, `unsubscribe{"uri":"a:1"}`))
}

// TestUpstreamThatTellsNothing: a subscription that nobody would keep is not
// acknowledged.
func TestUpstreamThatTellsNothing(t *testing.T) {
	server, p := fakeResources(t, "a", "a:1")
	c := kinds(nil)
	c.Upstreams, c.Policy = []serverconfig.Upstream{p.upstream("u", "")}, &serverconfig.ToolsPolicy{Max: 100}
	f := start(t, c, hurried)
	f.until("the resources", func() bool { return len(f.resources()) == 3 })
	if _, acknowledged := f.subscribed("a:1", "x:a", "a:unlisted"); acknowledged != "[x:a]" {
		t.Errorf("acknowledged %s", acknowledged)
	}
	for _, r := range server.Requests() {
		if r.Method == mcp.MethodSubscriptionsListen && strings.Contains(string(r.Body), "resourceSubscriptions") || r.HTTP == http.MethodGet {
			t.Errorf("asked %s", r.Body)
		}
	}
}

// TestUpstreamManySubscriptions: many resources need few streams.
func TestUpstreamManySubscriptions(t *testing.T) {
	server, p := fakeResources(t, "a", "a:1")
	server.Settings.Capabilities = map[string]any{"resources": map[string]any{"subscribe": true}}
	var mu sync.Mutex
	open, most, asked := 0, 0, map[string]bool{}
	server.On(mcp.MethodSubscriptionsListen, func(c *fakemcp.Call) {
		mu.Lock()
		open++
		most = max(most, open)
		for _, uri := range strings.FieldsFunc(string(c.Params), func(r rune) bool { return r == '"' || r == ',' || r == '[' || r == ']' }) {
			if strings.HasPrefix(uri, "a:n") {
				asked[uri] = true
			}
		}
		mu.Unlock()
		c.Stream(fakemcp.Data(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":` + string(c.ID) + `},"notifications":{}}}`))
		<-c.R.Context().Done()
		mu.Lock()
		open--
		mu.Unlock()
	})
	f := start(t, fronting(p.upstream("u", "")), hurried)
	f.until("the resource", func() bool { return len(f.resources()) == 1 })
	var listeners []listener
	for n := range 40 {
		uris := []string{}
		for i := range 10 {
			uris = append(uris, fmt.Sprintf("a:n%d-%d", n, i))
		}
		l, _ := f.subscribed(uris...)
		listeners = append(listeners, l)
	}
	mu.Lock()
	if len(asked) != 400 || most > 36 {
		t.Errorf("%d resources asked for over %d streams", len(asked), most)
	}
	mu.Unlock()
	for _, l := range listeners {
		l.close()
	}
	f.until("the end of all", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return open == 0
	})
}

// TestUpstreamUpdatesOfSessions: legacy clients subscribe and unsubscribe; the
// end of a session ends what it subscribed to.
func TestUpstreamUpdatesOfSessions(t *testing.T) {
	server, p := fakeResources(t, "a", "a:1")
	server.Settings.Modern, server.Settings.Legacy = false, true
	s := subscribing(server)
	f := start(t, fronting(p.upstream("u", "")), hurried)
	f.until("the resource", func() bool { return len(f.resources()) == 1 })
	one, other := f.connect("2025-06-18", "{}"), f.connect("2025-06-18", "{}")
	for _, c := range []*legacyClient{one, other} {
		if got := f.do(c.request("1", "resources/subscribe", `"uri":"a:1"`)); got.body != `{"jsonrpc":"2.0","id":1,"result":{}}` {
			t.Errorf("got %s", got.body)
		}
	}
	f.do(other.request("1", "resources/subscribe", `"uri":"a:2"`))
	const first, second, third, fourth = `subscribe{"uri":"a:1"}`, `subscribe{"uri":"a:2"}`, `unsubscribe{"uri":"a:2"}`, `unsubscribe{"uri":"a:1"}`
	if !s.has(first, second)() {
		t.Fatalf("asked %q", s.calls)
	}
	streams := map[string]listener{"a:1": f.open(one.get("")), "a:2": f.open(other.get(""))}
	for _, uri := range []string{"a:2", "a:1"} {
		s.tell <- uri
		m := next(t, streams[uri].events)
		params, _ := m["params"].(map[string]any)
		if m["method"] != mcp.NotificationUpdated || params["uri"] != uri {
			t.Errorf("got %v", m)
		}
	}
	f.do(other.request("1", "resources/unsubscribe", `"uri":"a:2"`))
	f.until("the end of one subscription", s.has(first, second, third))
	f.do(one.request("1", "resources/unsubscribe", `"uri":"a:1"`))
	s.tell <- "a:1"
	if m := next(t, streams["a:2"].events); m["method"] != mcp.NotificationUpdated {
		t.Errorf("got %v", m)
	}
	other.end()
	f.until("the end of the other", s.has(first, second, third, fourth))
}
