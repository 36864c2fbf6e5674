// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package stdio is the transport of desktop clients, which start the server as
// a child: one message per line on stdin and stdout, and nothing else there.
package stdio

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"

	"github.com/espalier-dev/espalier/internal/mcpserver/duplex"
	"github.com/espalier-dev/espalier/internal/mcpserver/httpgate"
	"github.com/espalier-dev/espalier/internal/mcpserver/metrics"
	"github.com/espalier-dev/espalier/internal/mcpserver/principal"
	"github.com/espalier-dev/espalier/internal/mcpserver/registry"
	"github.com/espalier-dev/espalier/internal/mcpserver/transport"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
)

// Transport implements transport.Transport over one pair of streams.
type Transport struct {
	*duplex.Host
	conn  *Conn
	ready <-chan struct{}
	token string
	ended chan struct{}
}

// New gives a transport that reads from in and writes to out. Nothing is read
// before ready is closed: a client that asks at once what there is must not be
// told of an empty server.
// token is the client's credential, for servers that want one.
func New(in io.Reader, out io.Writer, token string, ready <-chan struct{}, m *metrics.Metrics, log *slog.Logger) *Transport {
	return &Transport{Host: duplex.New(m, log), conn: NewConn(in, out), token: token, ready: ready, ended: make(chan struct{})}
}

// Start implements transport.Transport.
func (t *Transport) Start(h transport.Handler) error {
	if err := t.Host.Start(h); err != nil {
		return err
	}
	if t.Begin() == nil {
		return transport.ErrStarted // It was stopped meanwhile.
	}
	go func() {
		defer close(t.ended)
		defer t.End()
		select {
		case <-t.ready:
		case <-t.Stopping():
		}
		_ = t.Serve(context.Background(), t.conn, duplex.Options{Transport: "Stdio", Caller: t.caller}) // However it ended, it has.
	}()
	return nil
}

// caller is whom the token is of. There are no headers: it stands in the
// environment, as the protocol wants it for stdio.
func (t *Transport) caller(snapshot *registry.Snapshot) (*principal.Principal, *wire.Error) {
	r := &http.Request{Header: http.Header{}}
	if t.token != "" {
		r.Header.Set("Authorization", "Bearer "+t.token)
	}
	return httpgate.Caller(r, snapshot)
}

// Ended is closed when the client sends no more and all is answered.
func (t *Transport) Ended() <-chan struct{} { return t.ended }

// Conn carries one message per line. It implements duplex.Conn.
type Conn struct {
	in  *bufio.Reader
	out io.Writer
}

const bufferSize = 64 << 10

// NewConn gives a connection over two streams.
func NewConn(in io.Reader, out io.Writer) *Conn {
	return &Conn{in: bufio.NewReaderSize(in, bufferSize), out: out}
}

// Read implements duplex.Conn. Empty lines are passed over. ctx has no say: it
// is in the nature of a pipe.
func (c *Conn) Read(_ context.Context, limit int64) ([]byte, error) {
	for {
		line, err := c.line(limit)
		if err != nil {
			return nil, err
		}
		if !blank(line) {
			return line, nil
		}
	}
}

// line reads up to the next line feed. The last line may lack one.
func (c *Conn) line(limit int64) ([]byte, error) {
	var line, tail []byte
	size := int64(0)
	for {
		part, err := c.in.ReadSlice('\n')
		if size += int64(len(part)); size <= limit+1 {
			line = append(line, part...)
		} else {
			if len(line) < duplex.KeptEnds {
				line = append(line, part[:min(len(part), duplex.KeptEnds)]...)
			}
			if tail == nil {
				tail = bytes.Clone(line[max(0, len(line)-duplex.KeptEnds):])
			}
			tail = append(tail, part[max(0, len(part)-duplex.KeptEnds):]...)
			tail = tail[max(0, len(tail)-duplex.KeptEnds):]
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && !(errors.Is(err, io.EOF) && size > 0):
			return nil, err
		case size > limit+1:
			return nil, &duplex.TooLargeError{Limit: limit, Head: line[:min(len(line), duplex.KeptEnds)], Tail: tail}
		}
		return line, nil
	}
}

func blank(line []byte) bool {
	for _, c := range line {
		if c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return false
		}
	}
	return true
}

// Write implements duplex.Conn. A message goes out in one write.
func (c *Conn) Write(_ context.Context, message []byte) error {
	_, err := c.out.Write(append(message[:len(message):len(message)], '\n'))
	return err
}
