// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver"
	"github.com/espalier-dev/espalier/internal/mcpserver/peers"
	"github.com/espalier-dev/espalier/internal/mcpserver/session"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// fleet is a server of several replicas.
type fleet struct {
	replicas []*fixture
	whole    chan struct{} // closed when all replicas have addresses

	mu        sync.Mutex
	addresses []string
	err       error // of lookups
}

// startFleet runs three replicas that serve c and find each other.
func startFleet(t testing.TB, c *serverconfig.Config, change ...func(*mcpserver.Options)) *fleet {
	t.Helper()
	f := &fleet{whole: make(chan struct{})}
	change = append(change, func(o *mcpserver.Options) { o.Address, o.Peers = "127.0.0.1", f.resolve })
	for range 3 {
		replica := start(t, nil, change...)
		f.replicas = append(f.replicas, replica)
		f.mu.Lock()
		f.addresses = append(f.addresses, replica.server.InternalAddr().String())
		f.mu.Unlock()
	}
	close(f.whole)
	for _, replica := range f.replicas {
		replica.write(c)
		replica.until("a replica that is ready", func() bool { ok, _ := replica.server.Ready(); return ok })
	}
	return f
}

func (f *fleet) resolve(context.Context) ([]string, error) {
	<-f.whole
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.addresses), f.err
}

// remove takes a replica out of what lookups give.
func (f *fleet) remove(i int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.addresses = slices.Delete(f.addresses, i, i+1)
}

// at is the same client at another replica.
func (c *legacyClient) at(f *fixture) *legacyClient { return &legacyClient{f: f, id: c.id} }

func (f *fleet) any() *fixture { return f.replicas[rand.IntN(len(f.replicas))] }

// TestSessionsOverReplicas is case C07: clients whose every request comes to
// another replica.
func TestSessionsOverReplicas(t *testing.T) {
	f := startFleet(t, askingConfig(), asking)
	const sessions, calls = 50, 1000
	clients := make([]*legacyClient, sessions)
	streams := make([]listener, sessions)
	owners := map[string]int{}
	for i := range clients {
		r := f.any().post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`)
		clients[i] = &legacyClient{f: f.any(), id: f.replicas[0].do(r).header.Get("Mcp-Session-Id")}
		owner, _, _ := strings.Cut(clients[i].id, ".")
		owners[owner]++
		at := clients[i].at(f.any())
		if got := at.f.do(at.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)); got.status != http.StatusAccepted {
			t.Fatalf("got %d: %s", got.status, got.body)
		}
		at = clients[i].at(f.any())
		streams[i] = at.f.open(at.get(""))
		if streams[i].status != http.StatusOK || streams[i].header.Get("X-Accel-Buffering") != "no" {
			t.Fatalf("got %d, %v", streams[i].status, streams[i].header)
		}
	}
	if len(owners) != 3 {
		t.Errorf("sessions are held by %v", owners)
	}
	var workers sync.WaitGroup
	work := make(chan int)
	for range 8 {
		workers.Go(func() {
			for n := range work {
				at := clients[n%sessions].at(f.any())
				if got := at.f.do(at.call(fmt.Sprint(n), "ping", "")); got.text() != "ping" || !strings.Contains(got.body, fmt.Sprintf(`"id":%d,`, n)) {
					t.Errorf("got %d: %s", got.status, got.body)
				}
			}
		})
	}
	for n := range calls {
		work <- n
	}
	close(work)
	workers.Wait()
	for _, replica := range f.replicas {
		replica.reload(config(tool("ping", nil)))
	}
	for i, stream := range streams {
		if m := next(t, stream.events); m["method"] != mcp.NotificationToolsChanged {
			t.Errorf("client %d was told %v", i, m)
		}
		at := clients[i].at(f.any())
		if got := at.end(); got.status != http.StatusNoContent {
			t.Errorf("got %d", got.status)
		}
		for m := range stream.events { // The change of resources and prompts, then the end.
			if m["method"] == mcp.NotificationToolsChanged {
				t.Errorf("told twice: %v", m)
			}
		}
		at = clients[i].at(f.any())
		if got := at.f.do(at.call("1", "ping", "")); got.status != http.StatusNotFound {
			t.Errorf("after the end: got %d", got.status)
		}
	}
}

func TestAskedThroughReplicas(t *testing.T) {
	f := startFleet(t, askingConfig(), asking)
	a, b, c := f.replicas[0], f.replicas[1], f.replicas[2]
	client := a.connect("2025-11-25", `{"elicitation":{}}`)
	stream := b.open(client.at(b).call(`"x"`, "elicit", ""))
	id, _ := json.Marshal(next(t, stream.events)["id"])
	if got := c.do(client.at(c).post(`{"jsonrpc":"2.0","id":` + string(id) + `,"result":{"action":"accept"}}`)); got.status != http.StatusAccepted {
		t.Errorf("got %d", got.status)
	}
	if m := next(t, stream.events); m["id"] != "x" || m["result"].(map[string]any)["isError"] != nil {
		t.Errorf("got %v", m)
	}
	if m, more := <-stream.events; more {
		t.Errorf("got %v", m)
	}
	t.Run("taken up at another replica", func(t *testing.T) {
		lines, hangUp := rawStream(t, b, client.at(b).call("7", "elicit", ""))
		eventID(t, lines)
		asked := eventID(t, lines)
		hangUp()
		stream := c.open(client.at(c).get(asked))
		b.do(client.at(b).post(`{"jsonrpc":"2.0","id":2,"result":{}}`))
		if m := next(t, stream.events); m["id"] != 7.0 {
			t.Errorf("got %v", m)
		}
	})
	t.Run("batch", func(t *testing.T) {
		r := client.at(b).post(`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{"level":"error"}}]`)
		r.Header.Set("Mcp-Protocol-Version", "2025-03-26")
		if got := b.do(r); got.body != `[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":2,"result":{}}]` {
			t.Errorf("got %s", got.body)
		}
	})
}

func TestCancelledThroughReplicas(t *testing.T) {
	backend := newBlockingBackend(t)
	f := startFleet(t, config(slowTool(backend.URL), tool("ping", nil)))
	a, b, c := f.replicas[0], f.replicas[1], f.replicas[2]
	client := a.connect("2025-11-25", `{}`)
	answers := b.async(client.at(b).call(`"x"`, "slow", ""))
	<-backend.arrived
	c.do(client.at(c).post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"x"}}`))
	<-backend.left
	if got := <-answers; got.reason() != "Cancelled" {
		t.Errorf("got %s", got.body)
	}
	t.Run("a client that leaves one replica has left", func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		b.async(client.at(b).call("1", "slow", "").WithContext(ctx))
		<-backend.arrived
		cancel()
		<-backend.left
	})
	t.Run("calls that were passed on finish in a drain of their owner", func(t *testing.T) {
		answers := b.async(client.at(b).call("2", "slow", ""))
		<-backend.arrived
		stopped := make(chan error, 1)
		go func() { stopped <- a.server.Stop(context.Background()) }()
		a.until("a drain", func() bool { ok, why := a.server.Ready(); return !ok && why == "Draining" })
		close(backend.release)
		if got := <-answers; got.text() != "released" {
			t.Errorf("got %s", got.body)
		}
		must(t, <-stopped)
	})
}

func TestOwnerGone(t *testing.T) {
	for _, leaves := range []string{"from the lookup too", "and is still looked up"} {
		t.Run(leaves, func(t *testing.T) {
			f := startFleet(t, config(tool("ping", nil)))
			a, b := f.replicas[0], f.replicas[1]
			client := a.connect("2025-11-25", `{}`)
			stream := b.open(client.at(b).get(""))
			must(t, a.server.Stop(context.Background()))
			if m, more := <-stream.events; more {
				t.Errorf("got %v", m)
			}
			if leaves == "from the lookup too" {
				f.remove(0)
			}
			for _, r := range []*http.Request{client.at(b).call("1", "ping", ""), client.at(b).get("")} {
				if got := b.do(r); got.status != http.StatusNotFound || !strings.Contains(got.body, "initialize again") {
					t.Errorf("%s: got %d: %s", r.Method, got.status, got.body)
				}
			}
			again := b.connect("2025-11-25", `{}`)
			if got := b.do(again.call("1", "ping", "")); got.text() != "ping" {
				t.Errorf("got %s", got.body)
			}
		})
	}
}

func TestStrangeSessionIDs(t *testing.T) {
	f := startFleet(t, config(tool("ping", nil)))
	a := f.replicas[0]
	client := a.connect("2025-11-25", `{}`)
	other := peers.Hash(f.replicas[1].server.InternalAddr().String())
	for _, id := range []string{"x", "x.y", "127.0.0.1:1.x", ".", client.id + "x", other + ".x", other + "." + strings.TrimPrefix(client.id, peers.Hash(a.server.InternalAddr().String())+".")} {
		for _, r := range []*http.Request{(&legacyClient{f: a, id: id}).call("1", "ping", ""), (&legacyClient{f: a, id: id}).get("")} {
			if got := a.do(r); got.status != http.StatusNotFound {
				t.Errorf("%s %s: got %d: %s", r.Method, id, got.status, got.body)
			}
		}
	}
	t.Run("modern requests are answered where they come", func(t *testing.T) {
		r := a.callModern("ping", "{}")
		r.Header.Set("Mcp-Session-Id", "x.y")
		if got := a.do(r); got.text() != "ping" {
			t.Errorf("got %s", got.body)
		}
	})
	t.Run("headers of a browser come once", func(t *testing.T) {
		b := f.replicas[1]
		r := client.at(b).call("1", "ping", "")
		r.Header.Set("Origin", "https://app.example.com")
		got := b.do(r)
		if origins := got.header.Values("Access-Control-Allow-Origin"); got.text() != "ping" || len(origins) != 1 {
			t.Errorf("got %v: %s", got.header, got.body)
		}
		r = client.at(b).call("1", "ping", "")
		r.Header.Set("Origin", "https://evil.example.com")
		if got := b.do(r); got.status != http.StatusForbidden {
			t.Errorf("got %d", got.status)
		}
	})
	t.Run("nothing is passed on twice", func(t *testing.T) {
		r := (&legacyClient{f: a, id: other + ".x"}).call("1", "ping", "")
		r.URL.Host, r.URL.Path = a.server.InternalAddr().String(), peers.Path+"/mcp"
		if got := a.do(r); got.status != http.StatusNotFound {
			t.Errorf("got %d", got.status)
		}
	})
	t.Run("other paths", func(t *testing.T) {
		for _, path := range []string{peers.Path, peers.Path + "/", peers.Path + "/report", peers.Path + peers.Path + "/mcp"} {
			r := client.call("1", "ping", "")
			r.URL.Host, r.URL.Path = a.server.InternalAddr().String(), path
			if got := a.do(r); got.status != http.StatusNotFound {
				t.Errorf("%s: got %d", path, got.status)
			}
		}
	})
	t.Run("lookups fail", func(t *testing.T) {
		f.mu.Lock()
		f.err = errors.New("no DNS")
		f.mu.Unlock()
		b := f.replicas[1]
		var got answer
		b.until("the answer that it is not known", func() bool {
			got = b.do((&legacyClient{f: b, id: "abcdefgh.y"}).call("1", "ping", ""))
			return got.status == http.StatusServiceUnavailable
		})
		if !strings.Contains(got.body, "PeersUnknown") {
			t.Errorf("got %s", got.body)
		}
	})
}

// TestSessionsBelongToTheirPrincipals: what is passed on is judged again.
func TestSessionsBelongToTheirPrincipals(t *testing.T) {
	c := config(tool("ping", nil))
	c.Requires = append(c.Requires, serverconfig.FeatureAuth)
	c.Auth = &serverconfig.Auth{Resource: "https://mcp.example.com/mcp", APIKeys: &serverconfig.APIKeys{Secret: "clients"}}
	folder := t.TempDir()
	must(t, os.Mkdir(filepath.Join(folder, "clients"), 0o750))
	for _, name := range []string{"alice", "bob"} {
		must(t, os.WriteFile(filepath.Join(folder, "clients", name), []byte("key-of-"+name), 0o600))
	}
	f := startFleet(t, c, func(o *mcpserver.Options) { o.APIKeysDir = folder })
	a, b := f.replicas[0], f.replicas[1]
	with := func(r *http.Request, key string) *http.Request {
		r.Header.Set("Authorization", "Bearer "+key)
		return r
	}
	opened := a.do(with(a.post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}`), "key-of-alice"))
	client := &legacyClient{f: a, id: opened.header.Get("Mcp-Session-Id")}
	for _, replica := range []*fixture{a, b} {
		at := client.at(replica)
		if got := replica.do(with(at.call("1", "ping", ""), "key-of-alice")); got.text() != "ping" {
			t.Errorf("her own: %d %s", got.status, got.body)
		}
		for name, r := range map[string]*http.Request{"post": at.call("1", "ping", ""), "get": at.get("")} {
			if got := replica.do(with(r, "key-of-bob")); got.status != http.StatusNotFound {
				t.Errorf("%s by another: got %d", name, got.status)
			}
		}
		if got := replica.do(at.call("1", "ping", "")); got.status != http.StatusUnauthorized {
			t.Errorf("by nobody: got %d", got.status)
		}
	}
	r := client.call("1", "ping", "")
	r.URL.Host, r.URL.Path = a.server.InternalAddr().String(), peers.Path+"/mcp"
	if got := a.do(r); got.status != http.StatusUnauthorized {
		t.Errorf("on the internal port: got %d", got.status)
	}
}

// TestJoin: a replica is ready when others can find it.
func TestJoin(t *testing.T) {
	known := make(chan []string, 1)
	known <- []string{"192.0.2.1:8081"}
	f := start(t, nil, func(o *mcpserver.Options) {
		o.Address = "127.0.0.1"
		o.Peers = func(context.Context) ([]string, error) {
			addresses := <-known
			known <- addresses
			return addresses, nil
		}
	})
	f.write(config(tool("ping", nil)))
	f.until("a replica that waits for its peers", func() bool { _, why := f.server.Ready(); return why == "PeersPending" })
	<-known
	known <- []string{"192.0.2.1:8081", f.server.InternalAddr().String()}
	f.until("a replica that is ready", func() bool { ok, _ := f.server.Ready(); return ok })
}

func TestListOfSessions(t *testing.T) {
	private, public := key(t)
	c := config(tool("ping", nil))
	c.Probe = serverconfig.ProbeTrust{Audience: "team-a/test", Keys: []string{public}}
	c.Sessions = &serverconfig.Sessions{Max: 2, IdleSeconds: 600}
	f := start(t, c)
	first := f.connect("2025-11-25", "{}")
	stream := f.open(first.get(""))
	f.connect("2025-06-18", "{}")
	if got := f.do(f.legacy("initialize", `"protocolVersion":"2025-06-18"`)); got.status != http.StatusTooManyRequests {
		t.Errorf("a third one: got %d", got.status)
	}
	r, err := http.NewRequest(http.MethodGet, f.internal()+"/sessions", nil)
	must(t, err)
	if got := f.do(r); got.status != http.StatusUnauthorized {
		t.Errorf("got %d", got.status)
	}
	r.Header.Set("Authorization", "Bearer "+token(t, private, jose.EdDSA, jwt.Claims{Issuer: "espalier", Audience: jwt.Audience{"team-a/test"}, Expiry: jwt.NewNumericDate(time.Now().Add(time.Minute))}))
	told := f.do(r)
	var body struct{ Sessions []session.Info }
	must(t, json.Unmarshal([]byte(told.body), &body))
	list := body.Sessions
	if strings.Contains(told.body, first.id) {
		t.Errorf("it tells ids: %s", told.body)
	}
	if len(list) != 2 || !list[0].Streaming || list[1].Streaming || list[1].Version != "2025-06-18" || list[0].Tenant.Kind != "Anonymous" || list[0].Transport != "StreamableHTTP" {
		t.Errorf("got %+v", list)
	}
	stream.close()
}

// sprayed sends each request to another replica.
type sprayed struct{ f *fleet }

func (s sprayed) RoundTrip(r *http.Request) (*http.Response, error) {
	at := s.f.any()
	r = r.Clone(r.Context())
	r.URL.Host = at.server.Addr().String()
	return at.client.Transport.RoundTrip(r)
}

// TestSDKOverReplicas lets an independent legacy client be asked and told
// through replicas that it does not choose.
func TestSDKOverReplicas(t *testing.T) {
	f := startFleet(t, askingConfig(), asking)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	changed := make(chan struct{}, 100)
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, &sdk.ClientOptions{
		ElicitationHandler: func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"answer": r.Params.Message}}, nil
		},
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { changed <- struct{}{} },
	})
	session, err := client.Connect(ctx, &sdk.StreamableClientTransport{
		Endpoint: f.replicas[0].url(), HTTPClient: &http.Client{Transport: sprayed{f}},
	}, &sdk.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	must(t, err)
	for range 20 {
		result, err := session.CallTool(ctx, &sdk.CallToolParams{Name: "elicit"})
		if err != nil || result.IsError || !strings.Contains(result.Content[0].(*sdk.TextContent).Text, `"answer":"who?"`) {
			t.Fatalf("got %+v, %v", result, err)
		}
	}
	for _, replica := range f.replicas {
		replica.reload(config(tool("ping", nil)))
	}
	select {
	case <-changed:
	case <-ctx.Done():
		t.Error("the client was not told of the change")
	}
	must(t, session.Close())
	for _, replica := range f.replicas {
		replica.until("no session", func() bool { return len(replica.server.Sessions()) == 0 })
	}
}
