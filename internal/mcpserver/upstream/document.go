// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"crypto/sha256"
	"errors"
	"math/rand/v2"
	"net/url"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/mcpserver/handlers"
	"github.com/espalier-dev/espalier/internal/mcpserver/upstream/client"
	"github.com/espalier-dev/espalier/internal/openapi"
	"github.com/espalier-dev/espalier/internal/podreport"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// OperationFactory makes the handler of one operation of an API.
type OperationFactory func(tool string, request *openapi.Request, connection *serverconfig.Connection) (call.Handler, error)

// answers is a session that gives the answers to calls of its tools itself, with what
// a call is made of here.
type answers interface {
	Handle(ctx context.Context, tool string, c *call.Call) (*call.Result, error)
}

// itself is a session without what stands before it for one call.
func itself(s session) session {
	if b, ok := s.(*bridged); ok {
		return b.session
	}
	return s
}

// watched is a session that can be in trouble and still serve what it had.
type watched interface {
	// Trouble is empty while all is well.
	Trouble() client.Reason
	// Left are what is not served of what is behind, sorted.
	Left() []openapi.Left
}

// document is the session with an API that an OpenAPI document describes. The
// document is looked at again and again; one that cannot be used leaves the
// tools of the one before in place.
type document struct {
	source *source
	from   origin
	// used is the digest of the document in use; refused that of one that
	// could not be, and verdict says why. One goroutine looks at a time.
	used, refused [sha256.Size]byte
	verdict       error

	changed, done chan struct{}
	end           sync.Once

	mu       sync.Mutex
	lists    *client.Lists
	handlers map[string]call.Handler
	left     []openapi.Left
	trouble  client.Reason
}

var (
	_ session = (*document)(nil)
	_ answers = (*document)(nil)
	_ watched = (*document)(nil)
)

// openDocument reads the document for the first time.
func openDocument(ctx context.Context, s *source) (session, error) {
	d := &document{source: s, from: originOf(s), changed: make(chan struct{}, 1), done: make(chan struct{})}
	if _, err := d.look(ctx); err != nil {
		return nil, err
	}
	return d, nil
}

// look reads the document if it is another than before, and puts its tools in
// place.
func (d *document) look(ctx context.Context) (news bool, err error) {
	data, err := d.from.read(ctx)
	if err != nil || data == nil {
		return false, err
	}
	sum := sha256.Sum256(data)
	if sum == d.refused {
		return false, d.verdict
	}
	if sum != d.used {
		if err := d.take(data); err != nil {
			d.refused, d.verdict = sum, err
			return false, err
		}
		d.used, news = sum, true
	}
	d.from.taken()
	return news, nil
}

// take makes tools of a document.
func (d *document) take(data []byte) (err error) {
	defer func() {
		if r := recover(); r != nil { // One document must not end the others.
			err = &client.Error{Reason: client.InvalidDocument, Cause: errors.New("the document cannot be read")}
		}
	}()
	config := &d.source.config
	parsed, err := openapi.Parse(data)
	if err != nil {
		return &client.Error{Reason: client.InvalidDocument, Cause: err}
	}
	options := openapi.Options{
		Base: config.URL, BaseDeclared: config.URL != "", DocumentURL: config.OpenAPI.DocumentURL,
		Wanted: func(name string) bool { return wanted(config, name) },
	}
	for _, h := range config.Headers {
		options.Headers = append(options.Headers, h.Name)
	}
	if !options.BaseDeclared {
		if options.Base, err = documentBase(parsed, config); err != nil {
			return err
		}
	}
	connection := config.Connection
	connection.URL = options.Base // Its origin alone is shown tokens.
	tools, left := parsed.Tools(options)
	lists, byName := &client.Lists{}, make(map[string]call.Handler, len(tools))
	for i := range tools {
		t := &tools[i]
		handler, err := d.source.m.options.Operation(t.Name, &t.Request, &connection)
		if err != nil {
			left = append(left, openapi.Left{Name: t.Name, Reason: openapi.ReasonInvalidPath})
			continue
		}
		byName[t.Name] = handler
		lists.Tools = append(lists.Tools, client.Entry{ID: t.Name, Name: t.Name, Definition: t.Definition})
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lists, d.handlers, d.left = lists, byName, left
	return nil
}

// documentBase is the API's URL as the document has it. What the document
// says is followed only where it can do no harm: with credentials to the very
// origin that the document is from, and never to this pod itself.
func documentBase(parsed *openapi.Document, config *serverconfig.Upstream) (string, error) {
	from := config.OpenAPI.DocumentURL
	base, err := parsed.Base(from)
	if err != nil {
		return "", &client.Error{Reason: client.NoServer, Cause: err}
	}
	if from != "" && (len(config.Headers) > 0 || config.TLS != nil || config.Auth != nil) && !openapi.SameOrigin(base, from) {
		return "", &client.Error{Reason: client.UntrustedServer}
	}
	if localURL(base) && !localURL(from) {
		return "", &client.Error{Reason: client.NoServer, Cause: errors.New("the document names a server on this very host")}
	}
	return base, nil
}

func localURL(raw string) bool {
	u, err := url.Parse(raw)
	return err == nil && handlers.IsLocalHost(u.Hostname())
}

// Handle implements answers.
func (d *document) Handle(ctx context.Context, tool string, c *call.Call) (*call.Result, error) {
	d.mu.Lock()
	handler := d.handlers[tool]
	d.mu.Unlock()
	if handler == nil { // The document changed a moment ago.
		return nil, call.Fail(call.UpstreamUnavailable, "the API no longer has the operation of this tool")
	}
	return handler.Call(ctx, c)
}

// Trouble implements watched.
func (d *document) Trouble() client.Reason {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.trouble
}

// Left implements watched.
func (d *document) Left() []openapi.Left {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.left
}

// Version implements session: no revision of MCP is spoken.
func (d *document) Version() string { return "" }

// Abilities implements session.
func (d *document) Abilities() client.Abilities {
	return client.Abilities{Tools: true, ToolsChanged: true}
}

// Lists implements session.
func (d *document) Lists(context.Context) (*client.Lists, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lists, nil
}

// Changed implements session.
func (d *document) Changed() <-chan struct{} { return d.changed }

// Call implements session. Calls come by Handle.
func (d *document) Call(context.Context, *client.Call) ([]byte, error) { return nil, errNoMethod }

// Request implements session.
func (d *document) Request(context.Context, *client.Request) ([]byte, error) {
	return nil, errNoMethod
}

var errNoMethod = &client.RPCError{Code: mcp.CodeMethodNotFound, Message: "an OpenAPI document brings tools only"}

// Check implements session. Whether the API answers shows at each call; an
// operation called only to find out could do anything.
func (d *document) Check(context.Context) error { return nil }

// Listen implements session: it looks at the document until ctx ends.
func (d *document) Listen(ctx context.Context, standing func()) (bool, error) {
	standing()
	wait := d.from.interval(0)
	failures := 0
	for {
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return true, ctx.Err()
		case <-timer.C:
		}
		news, err := d.look(ctx)
		if ctx.Err() != nil {
			return true, ctx.Err()
		}
		d.note(err)
		if failures++; err == nil {
			failures = 0
		}
		if news {
			select {
			case d.changed <- struct{}{}:
			default:
			}
		}
		wait = d.from.interval(failures)
	}
}

// note tells when looking at the document begins or ceases to fail.
func (d *document) note(err error) {
	reason := client.Reason("")
	if err != nil {
		reason = client.ReasonOf(err)
	}
	d.mu.Lock()
	same := d.trouble == reason
	d.trouble = reason
	d.mu.Unlock()
	if same {
		return
	}
	if err != nil {
		d.source.log.Warn("Document cannot be used, the tools of the one before stay", "reason", string(reason), "cause", causeOf(err))
	} else {
		d.source.log.Info("Document can be used again")
	}
	d.source.m.changed()
}

// Done implements session.
func (d *document) Done() <-chan struct{} { return d.done }

// Lost implements session.
func (d *document) Lost() error { return &client.Error{Reason: client.Failed} }

// Close implements session.
func (d *document) Close(context.Context) { d.end.Do(func() { close(d.done) }) }

// jitter spreads a wait, so that replicas do not come at once.
func jitter(d time.Duration) time.Duration { return d - rand.N(d/10+1) } //nolint:gosec // no secret

// documentState adds to the report what is only known of a document. It is
// called with the lock held.
func (s *source) documentState(u *podreport.Upstream) {
	if s.listing != nil {
		for _, l := range s.listing.Left {
			if l.Served {
				continue
			}
			if u.Skipped++; len(u.SkippedNames) < podreport.MaxSkippedNames {
				u.SkippedNames = append(u.SkippedNames, podreport.Skipped{Name: s.config.Prefix + l.Name, Reason: string(l.Reason)})
			}
		}
	}
	if s.session == nil {
		return
	}
	if w, ok := s.session.session.(watched); ok && u.State == podreport.UpstreamReady && w.Trouble() != "" {
		u.State, u.Reason = podreport.UpstreamUnavailable, string(w.Trouble())
	}
}
