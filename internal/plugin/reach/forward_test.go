// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/espalier-dev/espalier/internal/plugin/env"
)

// patience is for what ought to happen at once, on a busy machine.
const patience = 60 * time.Second

func deadline(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// TestForward: bytes go to and fro, by either protocol of the API server, also
// more than fits a frame.
func TestForward(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }))
	defer web.Close()
	for _, spdyOnly := range []bool{false, true} {
		api := newFakeAPI(t)
		api.spdyOnly = spdyOnly
		api.set("ns/a:8080", web.Listener.Addr().String())
		dial := (&cluster{forward: forwardBy(api.config())}).toPod("ns", "a", 8080)
		client := &http.Client{Transport: &http.Transport{DialContext: dial}}
		want := strings.Repeat("all that is said ", 100_000)
		request, err := http.NewRequestWithContext(deadline(t), http.MethodPost, "http://a-mcp.ns.svc:8080/", strings.NewReader(want))
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(response.Body)
		response.Body.Close()
		client.CloseIdleConnections()
		if err != nil || string(got) != want {
			t.Errorf("spdyOnly %v: %d bytes of %d, %v", spdyOnly, len(got), len(want), err)
		}
		asked := []string{"GET /api/v1/namespaces/ns/pods/a/portforward"}
		if spdyOnly {
			asked = append(asked, "POST /api/v1/namespaces/ns/pods/a/portforward")
		}
		if got := api.asked(); !slices.Equal(got, asked) {
			t.Errorf("spdyOnly %v: asked %q, want %q", spdyOnly, got, asked)
		}
	}
}

// TestForwardRefused: what a kubelet says when nobody listens in the pod is an
// error of the network like any other.
func TestForwardRefused(t *testing.T) {
	api := newFakeAPI(t)
	conn, err := forwardBy(api.config())(deadline(t), "ns", "a", 9)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, err = conn.Read(make([]byte, 1))
	if !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("got %v", err)
	}
}

// TestForwardForbidden names the right that is missing.
func TestForwardForbidden(t *testing.T) {
	api := newFakeAPI(t)
	api.forbidden = true
	_, err := forwardBy(api.config())(deadline(t), "ns", "a", 8080)
	if !apierrors.IsForbidden(err) || !strings.Contains(env.HintOf(err), "pods/portforward") {
		t.Errorf("got %v, hint %q", err, env.HintOf(err))
	}
}

// TestForwardEnds: a connection ends with its tunnel, and at its deadline.
func TestForwardEnds(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	api := newFakeAPI(t)
	api.set("ns/a:8080", silent.Addr().String())
	conn, err := forwardBy(api.config())(deadline(t), "ns", "a", 8080)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	far, err := silent.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	if err := conn.SetReadDeadline(time.Now().Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	var network net.Error
	if _, err := conn.Read(make([]byte, 1)); !errors.As(err, &network) || !network.Timeout() {
		t.Errorf("at the deadline: %v", err)
	}
	if err := conn.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	read := make(chan error, 1)
	go func() {
		_, err := conn.Read(make([]byte, 1))
		read <- err
	}()
	api.closeTunnels()
	select {
	case err := <-read:
		if err == nil {
			t.Error("something came through a tunnel that was closed")
		}
	case <-deadline(t).Done():
		t.Error("the connection outlived its tunnel")
	}
}

// TestDialGivenUp: a dial ends with its context though the API server is silent.
func TestDialGivenUp(t *testing.T) {
	entered, over := make(chan struct{}, 8), make(chan struct{})
	api := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		entered <- struct{}{}
		<-over
	}))
	defer api.Close()
	defer close(over)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-entered
		cancel()
	}()
	f := newFakeAPI(t)
	config := f.config()
	config.Host = api.URL
	if _, err := forwardBy(config)(ctx, "ns", "a", 8080); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
