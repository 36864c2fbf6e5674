// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/duplex"
	"github.com/espalier-dev/espalier/internal/mcpserver/stdio"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
)

const (
	// sayLimit is how long a message without an answer may take.
	sayLimit = 10 * time.Second
	// drainLimit is how long requests may still run when the client sends no
	// more; hurriedLimit, when the process is told to end.
	drainLimit   = time.Minute
	hurriedLimit = 2 * time.Second
	// closeLimit is how long the end of the session may take.
	closeLimit = 3 * time.Second
	// maxRunning is how many requests may run at a time.
	maxRunning = 2048
	// maxSaid is how many messages without an answer may wait for their turn.
	maxSaid = 256
)

// Options of Run. All are wanted but where it is said.
type Options struct {
	// In and Out are the client's end: one message per line.
	In  io.Reader
	Out io.Writer
	// Open leads to the server, or says why that is not possible now. It is
	// called for each session anew.
	Open func(ctx context.Context) (*Way, error)
	// Header gives what to send with each request, the credential above all;
	// nil for nothing.
	Header func() (http.Header, error)
	// Credential says that one is among them.
	Credential bool
	// Log is for the people who read what the client keeps of stderr.
	Log *slog.Logger
	// UserAgent is how the bridge calls itself in HTTP.
	UserAgent string
	// Wait is how long a request may wait for a replica.
	Wait time.Duration
	// MaxBytes bounds a message, in either direction.
	MaxBytes int64
}

// headers are the ones of each request. The map is the caller's.
func (o *Options) headers() (http.Header, error) {
	out := http.Header{}
	if o.Header != nil {
		given, err := o.Header()
		if err != nil {
			return nil, err
		}
		out = given.Clone()
	}
	out.Set("User-Agent", o.UserAgent)
	return out, nil
}

// ownHeaders are headers, or what their lack means to a message.
func (o *Options) ownHeaders() (http.Header, *fault) {
	own, err := o.headers()
	if err != nil {
		return nil, &fault{kind: refused, code: mcp.CodeUnauthorized, reason: "CredentialMissing", text: "the credential cannot be read", cause: err}
	}
	return own, nil
}

// errEnded is the cause with which what still runs is ended.
var errEnded = errors.New("the bridge ends")

type bridge struct {
	o    *Options
	conn *stdio.Conn
	// life ends when the client is gone, or all is over.
	life context.Context //nolint:containedctx // what runs outlives the call that began it
	end  context.CancelCauseFunc

	out     sync.Mutex
	running running
	// work are the requests, behind is what runs besides them.
	work, behind sync.WaitGroup
	says         chan *message
	legacy       legacy
	modern       modern
	mirror       *mirror
}

// Run carries messages until the client sends no more and all is answered, or
// ctx ends. The error, if any, is that of the client's end.
func Run(ctx context.Context, o Options) error {
	b := &bridge{o: &o, conn: stdio.NewConn(o.In, o.Out), says: make(chan *message, maxSaid), mirror: newMirror()}
	b.life, b.end = context.WithCancelCause(context.WithoutCancel(ctx))
	defer b.end(errEnded)
	b.legacy.turn = make(chan struct{}, 1)
	said := make(chan struct{})
	go func() {
		defer close(said)
		b.sayAll()
	}()
	lines := make(chan line)
	go b.read(lines)
	hurry, broken := b.serve(ctx, lines)
	close(b.says)
	b.drain(hurry, said)
	b.behind.Wait()
	return broken
}

// line is what came from the client: a message, or why it is none.
type line struct {
	data []byte
	err  error
}

// read reads lines until the client sends no more. It ends with the client's
// end, which nothing can interrupt.
func (b *bridge) read(lines chan<- line) {
	defer close(lines)
	for {
		data, err := b.conn.Read(b.life, b.o.MaxBytes)
		select {
		case lines <- line{data, err}:
		case <-b.life.Done():
			return
		}
		var large *duplex.TooLargeError
		if err != nil && !errors.As(err, &large) {
			return
		}
	}
}

// serve takes lines until there are no more. hurry ends when what runs is to
// end soon.
func (b *bridge) serve(ctx context.Context, lines <-chan line) (hurry context.Context, broken error) {
	for {
		select {
		case <-ctx.Done():
			return ctx, nil
		case <-b.life.Done():
			return ctx, context.Cause(b.life)
		case next, ok := <-lines:
			var large *duplex.TooLargeError
			switch {
			case !ok || errors.Is(next.err, io.EOF):
				return ctx, nil
			case errors.As(next.err, &large):
				b.tooLarge(large)
			case next.err != nil:
				return ctx, next.err
			default:
				b.take(next.data)
			}
		}
	}
}

func (b *bridge) tooLarge(large *duplex.TooLargeError) {
	f := tooLarge(large.Limit)
	b.o.Log.Warn("The client sent a message that is too large", "limit", large.Limit)
	var id []byte
	if m := idAtHead.FindSubmatch(large.Head); m != nil {
		id = m[1]
	} else if m := idAtTail.FindSubmatch(large.Tail); m != nil {
		id = m[1]
	}
	b.write(wire.AppendError(nil, id, &wire.Error{Code: f.code, Message: f.text, Data: wire.Data(f.reason)}))
}

// write sends a line to the client.
func (b *bridge) write(message []byte) {
	b.out.Lock()
	defer b.out.Unlock()
	if b.life.Err() != nil {
		return
	}
	if err := b.conn.Write(b.life, message); err != nil {
		b.end(err) // The client is gone.
	}
}

// take deals with one line. It does not wait for anybody.
func (b *bridge) take(data []byte) {
	m, invalid := read(data)
	if invalid != nil {
		b.write(wire.AppendError(nil, m.ID, invalid))
		return
	}
	switch {
	case m.isRequest():
		b.start(m)
	case m.IsResponse:
		b.respond(m)
	case m.Method == mcp.NotificationCancelled:
		b.cancel(m)
	case m.Method == mcp.NotificationInitialized && m.modern == "":
		b.initialized(m)
	default:
		m.after = b.legacy.gates()
		select {
		case b.says <- m:
		default:
			b.o.Log.Warn("The server takes no notifications; one is left out", "method", m.Method)
		}
	}
}

// start runs a request.
func (b *bridge) start(m *message) {
	ctx, cancel, refusal := b.running.enter(b.life, m)
	if refusal != nil {
		for _, id := range m.giveUp() {
			b.write(wire.AppendError(nil, id, refusal))
		}
		return
	}
	m.after = b.legacy.gates()
	carry := b.carry
	switch {
	case m.Method == mcp.MethodInitialize && m.modern == "":
		begun := b.legacy.begin()
		carry = func(ctx context.Context, m *message) *fault {
			defer close(begun)
			return b.initialize(ctx, m)
		}
	case m.isListen():
		carry = b.listen
	}
	b.work.Go(func() {
		defer cancel(nil)
		defer b.running.leave(m)
		began := time.Now()
		f := carry(ctx, m)
		if f == nil || ctx.Err() != nil || m.unwanted.Load() {
			b.o.Log.Debug("Answered", "method", m.Method, "milliseconds", time.Since(began).Milliseconds(), "cancelled", ctx.Err() != nil)
			return
		}
		if f.answer == nil || f.reason == unauthorized {
			b.o.Log.Warn("A request failed", "method", m.Method, "error", f)
		}
		for _, id := range m.giveUp() {
			b.write(f.line(id))
		}
	})
}

// drain lets requests end, but for those that never do, and ends the session.
func (b *bridge) drain(hurry context.Context, said <-chan struct{}) {
	b.running.endListening()
	done := make(chan struct{})
	go func() {
		b.work.Wait()
		<-said
		close(done)
	}()
	limit := time.NewTimer(drainLimit)
	defer limit.Stop()
	select {
	case <-done:
	case <-limit.C:
	case <-b.life.Done():
	case <-hurry.Done():
		select {
		case <-done:
		case <-time.After(hurriedLimit):
		case <-b.life.Done():
		}
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(b.life), closeLimit)
	defer cancel()
	b.end(errEnded)
	b.legacy.close(closing)
	b.modern.close(closing)
	<-done
}
