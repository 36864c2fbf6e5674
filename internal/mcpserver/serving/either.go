// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"crypto/tls"
	"net"
	"sync/atomic"
)

// recordHandshake is the first byte of what a TLS client sends, and of no
// request of HTTP.
const recordHandshake = 0x16

// ListenEither takes both TLS and plain connections of l: replicas pass on
// what holds credentials of callers, and kubelets ask for health in clear.
func (k *Keeper) ListenEither(l net.Listener) net.Listener { return &eitherListener{l, k} }

type eitherListener struct {
	net.Listener
	keeper *Keeper
}

// Accept waits for the next connection, and for nothing of it.
func (l *eitherListener) Accept() (net.Conn, error) {
	connection, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &either{Conn: connection, keeper: l.keeper}, nil
}

// either is a connection that becomes one or the other with its first byte,
// which is the client's.
type either struct {
	net.Conn
	keeper *Keeper
	active atomic.Pointer[net.Conn]
}

func (c *either) Read(p []byte) (int, error) {
	if active := c.active.Load(); active != nil {
		return (*active).Read(p)
	}
	var first [1]byte
	if n, err := c.Conn.Read(first[:]); n == 0 {
		return 0, err
	}
	var active net.Conn = &replay{Conn: c.Conn, first: first[:]}
	if first[0] == recordHandshake {
		active = tls.Server(active, c.keeper.server())
	}
	c.active.Store(&active)
	return active.Read(p)
}

func (c *either) Write(p []byte) (int, error) {
	if active := c.active.Load(); active != nil {
		return (*active).Write(p)
	}
	return c.Conn.Write(p)
}

// Close closes the connection, with TLS its own way.
func (c *either) Close() error {
	if active := c.active.Load(); active != nil {
		return (*active).Close()
	}
	return c.Conn.Close()
}

// replay gives first again before all else. One reads at a time.
type replay struct {
	net.Conn
	first []byte
}

func (r *replay) Read(p []byte) (int, error) {
	if len(r.first) > 0 {
		n := copy(p, r.first)
		r.first = r.first[n:]
		return n, nil
	}
	return r.Conn.Read(p)
}
