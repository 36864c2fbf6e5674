// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/streaming/pkg/httpstream"
)

// maxFault is how much is read of why a connection in the pod failed, in bytes.
const maxFault = 4 << 10

// conn is a connection to a port of a pod, over a tunnel of its own. The pipe
// gives it deadlines, which streams do not have.
type conn struct {
	net.Conn // the near end of the pipe

	mu    sync.Mutex
	fault error
}

// openConn makes the two streams of a connection. That nobody listens on the
// port shows at the first read only.
func openConn(tunnel httpstream.Connection, port int32) (net.Conn, error) {
	faults, err := tunnel.CreateStream(streamHeaders(corev1.StreamTypeError, port))
	if err != nil {
		return nil, err
	}
	_ = faults.Close() // Nothing is written to it.
	data, err := tunnel.CreateStream(streamHeaders(corev1.StreamTypeData, port))
	if err != nil {
		return nil, err
	}
	near, far := net.Pipe()
	c := &conn{Conn: near}
	go c.toNear(far, data, faults)
	go func() {
		_, _ = io.Copy(data, far)
		// The near end was closed: what was written has been sent.
		_ = data.Close()
		_ = tunnel.Close()
	}()
	go func() {
		// A tunnel that breaks ends the connection, whoever waits.
		<-tunnel.CloseChan()
		_ = far.Close()
	}()
	return c, nil
}

// toNear copies what comes, and notes why no more does.
func (c *conn) toNear(far net.Conn, data, faults io.Reader) {
	_, err := io.Copy(far, data)
	if err == nil {
		// The stream of faults ends with the connection, empty as a rule.
		text, _ := io.ReadAll(io.LimitReader(faults, maxFault))
		err = faultOf(string(text))
	}
	c.mu.Lock()
	c.fault = err
	c.mu.Unlock()
	_ = far.Close()
}

// Read is net.Conn's.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if errors.Is(err, io.EOF) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.fault != nil {
			return n, c.fault
		}
	}
	return n, err
}

// faultOf puts what the kubelet says into an error of the network; nil for
// nothing said.
func faultOf(text string) error {
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return nil
	case strings.Contains(text, "connection refused"):
		return &net.OpError{Op: "dial", Net: "tcp", Err: fmt.Errorf("nothing listens on the port in the pod: %w", syscall.ECONNREFUSED)}
	}
	return &net.OpError{Op: "forward", Net: "tcp", Err: errors.New(text)}
}
