// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	gorilla "github.com/gorilla/websocket"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// fakeAPI is an API server that only forwards ports of pods, as far as this
// room can tell: to addresses of this machine.
type fakeAPI struct {
	t *testing.T
	*httptest.Server

	mu sync.Mutex
	// pods are the addresses by "namespace/name:port"; "" is refused.
	pods map[string]string
	// spdyOnly: it knows no WebSocket. forbidden: nobody may forward.
	spdyOnly, forbidden bool
	paths               []string
	tunnels             []httpstream.Connection
}

// closeTunnels breaks all that is forwarded.
func (f *fakeAPI) closeTunnels() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, tunnel := range f.tunnels {
		_ = tunnel.Close()
	}
}

func newFakeAPI(t *testing.T) *fakeAPI {
	f := &fakeAPI{t: t, pods: map[string]string{}}
	f.Server = httptest.NewServer(f)
	t.Cleanup(func() {
		f.CloseClientConnections()
		f.Close()
	})
	return f
}

func (f *fakeAPI) config() *rest.Config { return &rest.Config{Host: f.URL} }

func (f *fakeAPI) set(pod, address string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pods[pod] = address
}

func (f *fakeAPI) address(pod string, port string) (string, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	address, ok := f.pods[pod+":"+port]
	return address, ok
}

func (f *fakeAPI) asked() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.paths...)
}

func (f *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.paths = append(f.paths, r.Method+" "+r.URL.Path)
	forbidden, spdyOnly := f.forbidden, f.spdyOnly
	f.mu.Unlock()
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if len(parts) != 7 || parts[6] != "portforward" {
		http.NotFound(w, r)
		return
	}
	if forbidden {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"pods \"a\" is forbidden: no portforward for you"}`)
		return
	}
	pod := parts[3] + "/" + parts[5]
	streams := make(chan httpstream.Stream, 8)
	accept := func(stream httpstream.Stream, _ <-chan struct{}) error {
		streams <- stream
		return nil
	}
	if r.Method == http.MethodPost {
		_, err := httpstream.Handshake(r, w, []string{portforward.PortForwardProtocolV1Name})
		if err != nil {
			return
		}
		if tunnel := spdy.NewResponseUpgrader().UpgradeResponse(w, r, accept); tunnel != nil {
			f.forward(pod, tunnel, streams)
		}
		return
	}
	if spdyOnly {
		http.Error(w, "no WebSocket here", http.StatusBadRequest)
		return
	}
	upgrader := gorilla.Upgrader{Subprotocols: []string{"SPDY/3.1+" + portforward.PortForwardProtocolV1Name}}
	socket, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	tunnel, err := spdy.NewServerConnection(portforward.NewTunnelingConnection("server", socket), accept)
	if err != nil {
		f.t.Errorf("server connection: %v", err)
		return
	}
	f.forward(pod, tunnel, streams)
}

// forward serves one tunnel as a kubelet does.
func (f *fakeAPI) forward(pod string, tunnel httpstream.Connection, streams <-chan httpstream.Stream) {
	defer tunnel.Close()
	f.mu.Lock()
	f.tunnels = append(f.tunnels, tunnel)
	f.mu.Unlock()
	var faults, data httpstream.Stream
	for faults == nil || data == nil {
		select {
		case s := <-streams:
			if s.Headers().Get(corev1.StreamType) == corev1.StreamTypeError {
				faults = s
			} else {
				data = s
			}
		case <-tunnel.CloseChan():
			return
		}
	}
	port := data.Headers().Get(corev1.PortHeader)
	address, ok := f.address(pod, port)
	if !ok {
		address = "127.0.0.1:1" // Nobody listens there.
	}
	conn, err := net.Dial("tcp", address)
	if err != nil {
		fmt.Fprintf(faults, "error forwarding port %s to pod %s: %v", port, pod, err)
		_ = faults.Close()
		_ = data.Close()
		<-tunnel.CloseChan()
		return
	}
	go func() {
		_, _ = io.Copy(data, conn)
		_ = data.Close()
		_ = faults.Close()
	}()
	go func() {
		_, _ = io.Copy(conn, data)
		_ = conn.(*net.TCPConn).CloseWrite() //nolint:forcetypeassert // It was dialled by TCP.
	}()
	<-tunnel.CloseChan()
	_ = conn.Close()
}
