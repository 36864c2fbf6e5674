// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"regexp"
	"strconv"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/upstream/process"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// stdioCarrier speaks to a child: one message per line, in both directions.
// What else the child prints on stdout goes to the log.
type stdioCarrier struct {
	options *Options
	child   *process.Process
	hear    func(incoming)
	asks    *asks
	waiters waiters
	noise   process.Lines
	ended   chan struct{}

	mu       sync.Mutex
	revision revision
}

func newStdio(options *Options, child *process.Process, hear func(incoming), asks *asks) *stdioCarrier {
	c := &stdioCarrier{
		options: options, child: child, hear: hear, asks: asks, ended: make(chan struct{}),
		noise: process.Lines{Log: options.Process.Log, Stream: "stdout"},
	}
	go c.read()
	return c
}

func (c *stdioCarrier) agree(r revision) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.revision = r
}

func (c *stdioCarrier) spoken() revision {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.revision
}

// read takes lines until the child's stdout ends.
func (c *stdioCarrier) read() {
	defer close(c.ended)
	defer c.child.Stdout().Close()
	lines := &lineReader{r: bufio.NewReaderSize(c.child.Stdout(), 64<<10), limit: c.options.MaxBytes}
	for {
		line, err := lines.next()
		var large *largeLineError
		switch {
		case errors.As(err, &large) && !large.isMessage():
			c.noise.Line(large.head)
			continue
		case errors.As(err, &large):
			c.waiters.fail(large.ids(), &Error{Reason: TooLarge})
			continue
		case err != nil:
			return
		}
		line = bytes.TrimSpace(line)
		if m, ok := parse(line); ok {
			c.take(m)
		} else {
			c.noise.Line(line)
		}
	}
}

func (c *stdioCarrier) take(in incoming) {
	switch {
	case in.isRequest():
		if !c.spoken().modern {
			// Its own reader does not wait for it to read.
			c.asks.take(in, func(body []byte) { _ = c.child.Write(append(body, '\n')) })
		}
	case in.isNotification():
		c.hear(in)
	default:
		c.waiters.deliver(in)
	}
}

// requestIn sends a request as of revision r.
func (c *stdioCarrier) requestIn(ctx context.Context, r revision, m *message) ([]byte, error) {
	result, err := c.waiters.exchange(ctx, m, c.ended, func() error { return c.write(r, m) })
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
		if m.method != mcp.MethodInitialize && m.method != mcp.MethodDiscover {
			_ = c.write(r, cancelNote(m.id))
		}
	}
	return result, err
}

func (c *stdioCarrier) request(ctx context.Context, m *message) ([]byte, error) {
	return c.requestIn(ctx, c.spoken(), m)
}

func (c *stdioCarrier) write(r revision, m *message) error {
	if err := c.child.Write(append(m.encode(r, c.options.Version), '\n')); err != nil {
		return &Error{Reason: ConnectionLost, Cause: err}
	}
	return nil
}

func (c *stdioCarrier) notify(_ context.Context, m *message) error { return c.write(c.spoken(), m) }

// stream: what a legacy child says by itself comes anyway.
func (c *stdioCarrier) stream(ctx context.Context, standing func()) error {
	return standUntil(ctx, c.ended, standing)
}

// abort implements carrier: the group is killed.
func (c *stdioCarrier) abort() {
	c.child.Abort()
	<-c.ended
}

func (c *stdioCarrier) close(ctx context.Context) {
	c.child.Close(ctx)
	<-c.ended
}

// lineReader reads lines of at most limit bytes. Of a longer one it keeps the
// ends, which may tell whose answer it was.
type lineReader struct {
	r     *bufio.Reader
	limit int64
}

const keptEnds = 256

// largeLineError is a line over the limit.
type largeLineError struct{ head, tail []byte }

func (*largeLineError) Error() string { return "line too large" }

// isMessage: it may be one, going by how it begins.
func (e *largeLineError) isMessage() bool {
	head := bytes.TrimLeft(e.head, " \t\r")
	return len(head) > 0 && head[0] == '{'
}

var idMember = regexp.MustCompile(`"id"\s*:\s*"?(\d{1,18})"?`)

// ids that may be the message's own: the first in its head, or the last in
// its tail.
func (e *largeLineError) ids() []int64 {
	var out []int64
	add := func(match [][]byte) {
		if id, err := strconv.ParseInt(string(match[1]), 10, 64); err == nil {
			out = append(out, id)
		}
	}
	if m := idMember.FindSubmatch(e.head); m != nil {
		add(m)
	}
	if all := idMember.FindAllSubmatch(e.tail, -1); len(all) > 0 {
		add(all[len(all)-1])
	}
	return out
}

func (l *lineReader) next() ([]byte, error) {
	var line []byte
	for {
		part, err := l.r.ReadSlice('\n')
		if int64(len(line)+len(part)) > l.limit {
			return nil, l.skip(line, part, err)
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return line, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(line) > 0:
			return line, nil // The last line; the end comes next.
		default:
			return nil, err
		}
	}
}

// skip reads to the end of a line that is too large.
func (l *lineReader) skip(line, part []byte, err error) error {
	large := &largeLineError{head: bytes.Clone(line[:min(len(line), keptEnds)])}
	if len(line) == 0 {
		large.head = bytes.Clone(part[:min(len(part), keptEnds)])
	}
	tail := bytes.Clone(part[max(0, len(part)-keptEnds):])
	for errors.Is(err, bufio.ErrBufferFull) {
		part, err = l.r.ReadSlice('\n')
		tail = append(tail, part[max(0, len(part)-keptEnds):]...)
		tail = tail[max(0, len(tail)-keptEnds):]
	}
	large.tail = tail
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return large
}

// connectStdio starts a child and shakes hands. Discover is asked first; after
// a while of silence, or when it is refused, initialize too; the first valid
// answer decides.
func (s *Session) connectStdio(ctx context.Context) error {
	child, err := process.Start(*s.options.Process)
	if err != nil {
		return &Error{Reason: StartFailed, Phase: PhaseStart, Cause: err}
	}
	c := newStdio(s.options, child, s.hear, s.asks)
	s.carrier, s.child = c, child
	err = s.negotiateStdio(ctx, c)
	if err != nil {
		select {
		case <-child.Done():
			return &Error{Reason: ChildExited, Cause: err}
		case <-c.ended: // It closed its stdout: nothing more can come.
			return &Error{Reason: ChildExited, Cause: err}
		default:
		}
	}
	return err
}

type shake struct {
	modern bool
	result []byte
	err    error
}

func (s *Session) negotiateStdio(ctx context.Context, c *stdioCarrier) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answers := make(chan shake, 2)
	waiting := 0
	ask := func(modern bool) {
		waiting++
		r, m := revision{version: mcp.ModernVersions[0], modern: true}, &message{id: s.next(), method: mcp.MethodDiscover}
		if !modern {
			r, m = revision{}, s.initializeMessage(mcp.LegacyVersions[0])
		}
		go func() {
			result, err := c.requestIn(ctx, r, m)
			answers <- shake{modern, result, err}
		}()
	}
	legacyOnly := s.options.Protocol == serverconfig.ProtocolLegacy || s.options.LegacyChild
	asked := legacyOnly
	ask(!legacyOnly)
	patience := time.NewTimer(discoverWait)
	defer patience.Stop()
	var failure error
	for {
		select {
		case <-patience.C:
			if !asked && s.options.Protocol != serverconfig.ProtocolModern {
				asked = true
				ask(false)
			}
			continue
		case a := <-answers:
			waiting--
			if a.err == nil {
				a.err = s.agreeStdio(ctx, c, a)
			}
			if a.err == nil {
				return nil
			}
			failure = a.err
		}
		if !asked && s.options.Protocol != serverconfig.ProtocolModern && isRefusal(failure) {
			asked = true
			ask(false)
		}
		if waiting == 0 {
			return failure
		}
	}
}

// isRefusal: the peer lives and answered otherwise than hoped.
func isRefusal(err error) bool {
	var known *Error
	return isRPC(err) || errors.As(err, &known) && (known.Reason == UnsupportedProtocol || known.Reason == NotMCP)
}

func (s *Session) agreeStdio(ctx context.Context, c *stdioCarrier, a shake) error {
	if a.modern {
		_, err := s.discovered(a.result)
		if err == nil {
			c.agree(s.revision)
		}
		return err
	}
	return s.initialized(ctx, a.result)
}
