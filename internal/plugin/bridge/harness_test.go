// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/mcpprobe/fakemcp"
)

// patient is how long a test waits for what has to come.
const patient = 30 * time.Second

// place is where a server is, or is not: its address outlives servers.
type place struct {
	mu      sync.Mutex
	address string
	opened  map[net.Conn]bool
}

// set moves the server; empty is away: connections are refused. Those that
// stand are cut, as the end of a pod does.
func (p *place) set(address string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.address = address
	for c := range p.opened {
		_ = c.Close()
	}
	p.opened = map[net.Conn]bool{}
}

func (p *place) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	p.mu.Lock()
	address := p.address
	p.mu.Unlock()
	if address == "" {
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	}
	c, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.address != address { // The server went while it was dialled.
		_ = c.Close()
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	}
	if p.opened == nil {
		p.opened = map[net.Conn]bool{}
	}
	p.opened[c] = true
	return c, nil
}

// rig is a bridge between a test that plays the client and a place.
type rig struct {
	t     *testing.T
	place *place
	in    *io.PipeWriter
	lines chan string
	ended chan error
	stop  context.CancelFunc
}

// connect starts a bridge to what is served at place.
func connect(t *testing.T, at *place, change ...func(*Options)) *rig {
	t.Helper()
	inReader, in := io.Pipe()
	out, outWriter := io.Pipe()
	r := &rig{t: t, place: at, in: in, lines: make(chan string, 1000), ended: make(chan error, 1)}
	transport := &http.Transport{DialContext: at.dial, MaxIdleConnsPerHost: 10}
	o := Options{
		In: inReader, Out: outWriter, Log: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug})),
		Open: func(context.Context) (*Way, error) {
			return &Way{URL: "http://server.example/mcp", Transport: StreamableHTTP, HTTP: &http.Client{Transport: transport}}, nil
		},
		UserAgent: "test", Wait: patient, MaxBytes: 1 << 20,
	}
	for _, f := range change {
		f(&o)
	}
	go func() {
		defer close(r.lines)
		scanner := bufio.NewScanner(out)
		scanner.Buffer(nil, 4<<20)
		for scanner.Scan() {
			r.lines <- scanner.Text()
		}
	}()
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	go func() {
		err := Run(ctx, o)
		_ = outWriter.Close()
		r.ended <- err
		close(r.ended)
	}()
	t.Cleanup(func() {
		stop()
		_ = in.Close()
		select {
		case err := <-r.ended:
			t.Log("the bridge ended", err)
		case <-time.After(patient):
			t.Error("the bridge does not end")
		}
		transport.CloseIdleConnections()
	})
	return r
}

// fake serves a fake at a new place.
func fake(t *testing.T, s *fakemcp.Server) *place {
	t.Helper()
	at := &place{}
	at.serve(t, s)
	return at
}

// serve lets a handler take over the place.
func (p *place) serve(t *testing.T, h http.Handler) {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(func() {
		p.set("")
		server.CloseClientConnections()
		server.Close()
	})
	p.set(server.Listener.Addr().String())
}

func (r *rig) send(lines ...string) {
	r.t.Helper()
	for _, line := range lines {
		if _, err := io.WriteString(r.in, line+"\n"); err != nil {
			r.t.Fatal(err)
		}
	}
}

// line gives what the bridge wrote next.
func (r *rig) line() string {
	r.t.Helper()
	select {
	case line, ok := <-r.lines:
		if !ok {
			r.t.Fatal("the bridge has ended")
		}
		if !json.Valid([]byte(line)) {
			r.t.Fatalf("%q is no JSON", line)
		}
		return line
	case <-time.After(patient):
		r.t.Fatal("nothing comes from the bridge")
	}
	return ""
}

// expect wants the next line to be want.
func (r *rig) expect(want string) {
	r.t.Helper()
	if got := r.line(); got != want {
		r.t.Fatalf("got  %s\nwant %s", got, want)
	}
}

// expectAll wants the next lines, in whatever order.
func (r *rig) expectAll(want ...string) {
	r.t.Helper()
	missing := map[string]int{}
	for _, w := range want {
		missing[w]++
	}
	for range want {
		got := r.line()
		if missing[got]--; missing[got] < 0 {
			r.t.Fatalf("got %s\nwant one of %v", got, missing)
		}
	}
}

// until gives the first line that holds all of parts, and passes over others.
func (r *rig) until(parts ...string) string {
	r.t.Helper()
next:
	for {
		line := r.line()
		for _, part := range parts {
			if !strings.Contains(line, part) {
				continue next
			}
		}
		return line
	}
}

// close ends the client's end and waits for the bridge.
func (r *rig) close() {
	r.t.Helper()
	_ = r.in.Close()
	select {
	case err := <-r.ended:
		if err != nil {
			r.t.Errorf("the bridge ended with %v", err)
		}
	case <-time.After(patient):
		r.t.Fatal("the bridge does not end")
	}
}

// eventually waits for what only the other side shows.
func eventually(t *testing.T, what string, check func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patient); !check(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s did not come", what)
		}
	}
}

const (
	meta        = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	hello       = `{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"desk","version":"1"}}}`
	initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
)

// shake shakes hands as a legacy client does.
func (r *rig) shake() {
	r.t.Helper()
	r.send(hello)
	r.until(`"id":"hello"`, `"protocolVersion"`)
	r.send(initialized)
}
