// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpserver_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/mcpprobe/fakemcp"
	"github.com/espalier-dev/espalier/internal/mcpserver"
	"github.com/espalier-dev/espalier/internal/mcpserver/upstream"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// hurried is a timing for tests.
func hurried(o *mcpserver.Options) {
	o.Upstreams = upstream.Timing{
		Health: 50 * time.Millisecond, Handshake: 5 * time.Second, Keep: 500 * time.Millisecond, Settle: 2 * time.Second,
		Refresh: 50 * time.Millisecond, Seldom: time.Second, Backoff: 10 * time.Millisecond, MaxBackoff: 50 * time.Millisecond,
		Credential: 20 * time.Millisecond,
	}
}

// peer is an upstream at a fixed address that can go away and come back.
type peer struct {
	t       *testing.T
	address string
	handler http.Handler
	server  *http.Server
	done    chan struct{}
}

func newPeer(t *testing.T, handler http.Handler) *peer {
	p := &peer{t: t, handler: handler, address: "127.0.0.1:0"}
	p.up()
	t.Cleanup(p.down)
	return p
}

func (p *peer) up() {
	p.t.Helper()
	var listener net.Listener
	var err error
	for range 3000 {
		if listener, err = net.Listen("tcp", p.address); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	must(p.t, err)
	p.address = listener.Addr().String()
	p.server, p.done = &http.Server{Handler: p.handler, ReadHeaderTimeout: time.Second}, make(chan struct{})
	go func() {
		defer close(p.done)
		_ = p.server.Serve(listener)
	}()
}

func (p *peer) down() {
	_ = p.server.Close()
	<-p.done
}

func (p *peer) upstream(name, prefix string) serverconfig.Upstream {
	return serverconfig.Upstream{Name: name, Prefix: prefix, Connection: serverconfig.Connection{URL: "http://" + p.address + "/mcp"}}
}

func fakePeer(t *testing.T, modern bool, tools ...string) (*fakemcp.Server, *peer) {
	f := fakemcp.New()
	f.Settings.Modern, f.Settings.Legacy = modern, !modern
	f.Settings.Capabilities = map[string]any{"tools": map[string]any{}}
	f.Settings.Tools = nil
	for _, name := range tools {
		f.Settings.Tools = append(f.Settings.Tools, fakemcp.Tool(name))
	}
	t.Cleanup(f.Release)
	return f, newPeer(t, f)
}

func fronting(upstreams ...serverconfig.Upstream) *serverconfig.Config {
	c := config(tool("own", nil))
	c.Upstreams, c.Policy, c.Requires = upstreams, &serverconfig.ToolsPolicy{Max: 100}, []string{serverconfig.FeatureUpstreams}
	return c
}

func (f *fixture) names() []string {
	f.t.Helper()
	var out []string
	tools, _ := f.do(f.modern("tools/list", "")).result()["tools"].([]any)
	for _, entry := range tools {
		tool, _ := entry.(map[string]any)
		name, _ := tool["name"].(string)
		out = append(out, name)
	}
	return out
}

func (f *fixture) lists(names ...string) {
	f.t.Helper()
	f.until(fmt.Sprintf("the list %v", names), func() bool { return slices.Equal(f.names(), names) })
}

func (f *fixture) upstreams() string {
	var out []string
	for _, u := range f.server.Report().Upstreams {
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s %d %s%s", u.Name, u.State, u.Tools, u.Protocol, u.Reason)))
	}
	return strings.Join(out, ", ")
}

func TestUpstreamsOfBothEras(t *testing.T) {
	legacy, old := fakePeer(t, false, "a", "b")
	_, fresh := fakePeer(t, true, "a", "c")
	f := start(t, fronting(old.upstream("old", "old_"), fresh.upstream("new", "")), hurried)
	f.lists("a", "c", "old_a", "old_b", "own")
	if got := f.upstreams(); got != "old Ready 2 2025-06-18, new Ready 2 2026-07-28" {
		t.Errorf("report %s", got)
	}
	for _, name := range []string{"a", "old_b"} {
		got := f.do(f.callModern(name, `{"x":1.50}`))
		if got.text() != `{"x":1.50}` {
			t.Errorf("%s answers %s", name, got.body)
		}
	}
	if got := f.do(f.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"old_a","arguments":{}}}`)); got.text() != "{}" {
		t.Errorf("a legacy caller got %s", got.body)
	}
	if n := legacy.Count("initialize"); n != 1 || legacy.MostSessions() != 1 {
		t.Errorf("%d handshakes, %d sessions: callers do not share one", n, legacy.MostSessions())
	}
	health := get(t, f, "/healthz")
	if !strings.Contains(health, "ok\nupstream/old Ready\nupstream/new Ready\n") {
		t.Errorf("healthz says %q", health)
	}
	if metrics := get(t, f, "/metrics"); !strings.Contains(metrics, `espalier_server_upstream_up{upstream="old"} 1`) || !strings.Contains(metrics, `espalier_server_upstream_calls_total{outcome="ok",upstream="old"} 2`) {
		t.Error("the metrics lack the upstream")
	}
}

func get(t *testing.T, f *fixture, path string) string {
	t.Helper()
	response, err := f.client.Get(f.internal() + path)
	must(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	must(t, err)
	return string(body)
}

// TestUpstreamLostAndFound: a short absence changes no list, a long one
// withdraws that upstream's tools only, and all comes back by itself.
func TestUpstreamLostAndFound(t *testing.T) {
	_, gone := fakePeer(t, false, "a")
	_, stays := fakePeer(t, true, "b")
	f := start(t, fronting(gone.upstream("gone", ""), stays.upstream("stays", "")), hurried, func(o *mcpserver.Options) { o.Upstreams.Keep = 5 * time.Second })
	f.lists("a", "b", "own")

	gone.down()
	f.until("word of the loss", func() bool { return strings.HasPrefix(f.upstreams(), "gone Unavailable 1 ConnectionRefused") })
	if got := f.names(); !slices.Equal(got, []string{"a", "b", "own"}) {
		t.Errorf("listed %v at once", got)
	}
	if got := f.do(f.callModern("a", `{}`)); got.reason() != "UpstreamUnavailable" {
		t.Errorf("a call answers %s", got.body)
	}
	gone.up()
	f.until("its return", func() bool { return strings.HasPrefix(f.upstreams(), "gone Ready 1") })

	gone.down()
	f.lists("b", "own")
	if got := f.do(f.callModern("b", `{}`)); got.text() != "{}" {
		t.Errorf("the other one answers %s", got.body)
	}
	if ok, why := f.server.Ready(); !ok {
		t.Errorf("not ready: %s", why)
	}
	gone.up()
	f.lists("a", "b", "own")
	if got := f.do(f.callModern("a", `{}`)); got.text() != "{}" {
		t.Errorf("answers %s", got.body)
	}
}

// TestUpstreamForgetsSession: a server that was replaced does not know the
// session; no caller notices.
func TestUpstreamForgetsSession(t *testing.T) {
	server, p := fakePeer(t, false, "a")
	f := start(t, fronting(p.upstream("u", "")), hurried, func(o *mcpserver.Options) { o.Upstreams.Health = time.Hour; o.Upstreams.Refresh = time.Hour })
	f.lists("a", "own")
	server.On("tools/call", func(c *fakemcp.Call) {
		server.On("tools/call", nil)
		c.Text(http.StatusNotFound, "", "")
	})
	if got := f.do(f.callModern("a", `{}`)); got.text() != "{}" {
		t.Errorf("answers %s", got.body)
	}
	if n := server.Count("initialize"); n != 2 {
		t.Errorf("%d handshakes", n)
	}
}

// TestUpstreamStarts: a pod waits for its upstreams, but not for ever.
func TestUpstreamStarts(t *testing.T) {
	_, p := fakePeer(t, false, "a")
	p.down()
	root := fronting(p.upstream("u", ""))
	began := time.Now()
	f := start(t, root, hurried, func(o *mcpserver.Options) { o.Upstreams.Settle = 300 * time.Millisecond })
	if took := time.Since(began); took < 300*time.Millisecond {
		t.Errorf("ready after %s", took)
	}
	f.lists("own")
	p.up()
	f.lists("a", "own")
}

// TestUpstreamListChanges is seen without any word of it.
func TestUpstreamListChanges(t *testing.T) {
	server, p := fakePeer(t, true, "alpha")
	f := start(t, fronting(p.upstream("u", "")), hurried)
	f.lists("alpha", "own")
	server.SetTools(2)
	f.lists("alpha", "own", "tool-2")
	server.SetTools(0)
	f.lists("own")
}

// TestUpstreamCredential: each request carries the mounted key and nothing of
// the caller's; a rotated key makes a new session.
func TestUpstreamCredential(t *testing.T) {
	server, p := fakePeer(t, false, "a")
	u := p.upstream("u", "")
	u.Headers = []serverconfig.Value{{Name: "Authorization", Prefix: "Bearer ", File: "secrets/s/token"}}
	f := start(t, nil, hurried)
	writeKey(t, f, "one")
	f.write(fronting(u))
	f.lists("a", "own")
	r := f.callModern("a", `{}`)
	r.Header.Set("Authorization", "Bearer callers-own")
	r.Header.Set("Cookie", "callers=own")
	f.do(r)
	writeKey(t, f, "two")
	f.until("a session with the new key", func() bool {
		all := server.Requests()
		return all[len(all)-1].Header.Get("Authorization") == "Bearer two" && server.OpenSessions() == 1 && server.Count("initialize") > 1
	})
	for _, r := range server.Requests() {
		if value := r.Header.Get("Authorization"); value != "Bearer one" && value != "Bearer two" || r.Header.Get("Cookie") != "" {
			t.Errorf("%s carries %q and %q", r.Method, value, r.Header.Get("Cookie"))
		}
	}
	if n := server.Count("initialize"); n != 2 {
		t.Errorf("%d handshakes", n)
	}
}

func writeKey(t *testing.T, f *fixture, value string) {
	t.Helper()
	path := filepath.Join(f.creds, "secrets", "s", "token")
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path+".tmp", []byte(value), 0o600))
	must(t, os.Rename(path+".tmp", path))
}

func TestUpstreamWantsCredential(t *testing.T) {
	server, p := fakePeer(t, false, "a")
	must(t, server.SetMode("auth"))
	f := start(t, fronting(p.upstream("u", "")), hurried)
	f.until("its reason", func() bool { return f.upstreams() == "u Unavailable 0 UpstreamAuthRequired" })
}
