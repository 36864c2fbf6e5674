// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/mcpserver/credentials"
	"github.com/espalier-dev/espalier/internal/mcpserver/serving/servingtest"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// tap records what comes over the connections of a listener.
type tap struct {
	net.Listener
	mu   sync.Mutex
	seen bytes.Buffer
}

func (t *tap) Accept() (net.Conn, error) {
	c, err := t.Listener.Accept()
	return &tapped{c, t}, err
}

func (t *tap) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := t.seen.String()
	t.seen.Reset()
	return text
}

type tapped struct {
	net.Conn
	tap *tap
}

func (c *tapped) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.tap.mu.Lock()
	defer c.tap.mu.Unlock()
	c.tap.seen.Write(p[:n])
	return n, err
}

// TestListenEither: one port takes both, connections are kept, and what is sent
// over TLS cannot be read on its way.
func TestListenEither(t *testing.T) {
	folder := t.TempDir()
	a, err := servingtest.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	cert, key, err := a.Issue("web-mcp.team-a.svc", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"c": cert, "k": key, "a": a.PEM} {
		if err := os.WriteFile(filepath.Join(folder, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	settings := &serverconfig.ServingTLS{CertFile: "c", KeyFile: "k", CAFile: "a", ServerName: "web-mcp.team-a.svc"}
	keeper := New(credentials.New(folder), func() *serverconfig.ServingTLS { return settings }, slog.New(slog.DiscardHandler))
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	wire := &tap{Listener: inner}
	opened := make(chan struct{}, 10)
	server := &http.Server{
		ReadHeaderTimeout: 10 * time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body) // Half of it is seen by the test.
			_, _ = w.Write(body)
		}),
		ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				opened <- struct{}{}
			}
		},
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(keeper.ListenEither(wire)) }()
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: keeper.Client()}}
	defer client.CloseIdleConnections()
	for scheme, readable := range map[string]bool{"http": true, "https": false} {
		const word = "a-credential"
		for range 3 {
			body := word + strings.Repeat("x", 100<<10)
			response, err := client.Post(scheme+"://"+inner.Addr().String(), "text/plain", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(response.Body)
			if err != nil || string(got) != body {
				t.Errorf("%s: %d bytes came back, %v", scheme, len(got), err)
			}
			if err := response.Body.Close(); err != nil {
				t.Error(err)
			}
		}
		if got := strings.Contains(wire.text(), word); got != readable {
			t.Errorf("%s: readable on its way: %t", scheme, got)
		}
	}
	if n := len(opened); n != 2 {
		t.Errorf("%d connections for six requests over two schemes", n)
	}
}
