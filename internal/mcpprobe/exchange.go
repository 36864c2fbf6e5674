// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpprobe

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/tracing"
)

// exchange is one probe under way.
type exchange struct {
	client     *Client
	target     Target
	bounds     Bounds
	transport  *transport
	total      *budget
	header     http.Header // of each request to the MCP URL
	secrets    []string
	credential bool
	// keptToken is a token that an earlier probe asked for; empty for none.
	keptToken string

	ids     atomic.Int64
	replies atomic.Int32
	// moved: the server told, beside an answer, that a list has changed.
	moved atomic.Bool
	// background counts requests that may outlive the result: replies to the
	// server and an initialize that is under way.
	background sync.WaitGroup
	// life ends with the exchange: what is still said to the server is cut
	// off then, but for the end of its sessions.
	life context.Context
	stop context.CancelFunc

	// link is set where one connection brings all that the server says.
	link *link

	mu       sync.Mutex
	url      *url.URL // where the MCP URL leads, redirects followed
	evident  bool     // some answer showed that it is MCP
	sessions []session
	steps    []StepTiming
}

// session is one that the server opened and that has to be ended; version is
// empty while none is agreed on.
type session struct{ id, version string }

// newExchange checks t and prepares its exchange.
func newExchange(ctx context.Context, c *Client, t Target) (*exchange, *failure) {
	u, problem := checkURL(t.URL, t.Transport)
	if problem == "" && t.DialAddress != "" {
		if _, err := netip.ParseAddrPort(t.DialAddress); err != nil {
			problem = "dial address"
		}
	}
	if problem != "" {
		return nil, &failure{outcome: InvalidTarget, step: StepDial, cause: problem}
	}
	if addr, err := netip.ParseAddr(u.Hostname()); err == nil && t.DialAddress == "" && t.Dial == nil && !c.opts.Policy.Allows(addr) {
		// Said here too, since a proxy would dial it out of sight.
		return nil, &failure{outcome: ProbeDenied, step: StepDial}
	}
	tr, err := c.newTransport(t, dialInstead(t.DialAddress))
	if err != nil {
		return nil, &failure{outcome: InvalidTarget, step: StepTLS, cause: err.Error()}
	}
	e := &exchange{
		client: c, target: t, bounds: c.opts.Bounds, transport: tr,
		total: &budget{limit: c.opts.Bounds.TotalBytes, slots: c.heavy}, url: u,
	}
	if f := e.setHeaders(ctx); f != nil {
		return nil, f
	}
	e.life, e.stop = context.WithCancel(context.WithoutCancel(ctx))
	return e, nil
}

// checkURL parses an endpoint's URL and names what is wrong with it. ws and
// wss stand for http and https where a WebSocket is spoken to.
func checkURL(raw string, transport Transport) (*url.URL, string) {
	u, err := url.Parse(raw)
	if err == nil && transport == TransportWebSocket {
		switch u.Scheme {
		case "ws":
			u.Scheme = "http"
		case "wss":
			u.Scheme = "https"
		}
	}
	switch {
	case err != nil:
		return nil, "url"
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, "scheme"
	case u.Hostname() == "":
		return nil, "host"
	case u.User != nil:
		return nil, "user information in the url"
	}
	u.Fragment = ""
	return u, ""
}

// setHeaders prepares what every request carries.
func (e *exchange) setHeaders(ctx context.Context) *failure {
	invalid := &failure{outcome: InvalidTarget, step: StepDial, cause: "header"}
	e.header = http.Header{}
	var values []string
	for _, h := range e.target.Headers {
		if !validHeader(h.Name, h.Value) {
			return invalid
		}
		e.header.Add(h.Name, h.Value)
		e.credential = e.credential || h.Credential
		values = append(values, h.Value)
	}
	if e.header.Get("Authorization") == "" {
		token, f := e.token(ctx)
		if f != nil {
			return f
		}
		if token != "" {
			e.header.Set("Authorization", "Bearer "+token)
			e.credential = true
			values = append(values, token)
		}
	}
	e.credential = e.credential || len(e.target.TLS.CertPEM) > 0
	e.secrets = secretsOf(values...)
	e.header.Set("Content-Type", typeJSON)
	e.header.Set("Accept", typeJSON+", "+typeSSE)
	e.header.Set("Accept-Encoding", "identity")
	e.header.Set("User-Agent", userAgent(e.client))
	tracing.IntoHeader(ctx, e.header)
	return nil
}

func userAgent(c *Client) string { return "espalier-probe/" + c.opts.Version }

// validHeader says whether net/http will send it, and it is not one that the
// transport or the protocol owns.
func validHeader(name, value string) bool {
	switch http.CanonicalHeaderKey(name) {
	case "", "Host", "Content-Length", "Transfer-Encoding", "Connection", "Upgrade", "Trailer", "Te":
		return false
	}
	for _, c := range []byte(name) {
		if !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			return false
		}
	}
	for _, c := range []byte(value) {
		if (c < ' ' && c != '\t') || c == 0x7f {
			return false
		}
	}
	return true
}

// send makes one HTTP request and follows redirects to the same origin that
// keep the method. The caller closes the body.
func (e *exchange) send(ctx context.Context, step Step, method string, body []byte, header http.Header, at *atomic.Int32) (*http.Response, *failure) {
	for hop := 0; ; hop++ {
		u := e.currentURL()
		req, err := http.NewRequestWithContext(ctx, method, u.String(), bytes.NewReader(body))
		if err != nil {
			return nil, &failure{outcome: InvalidTarget, step: step}
		}
		req.Header = header.Clone()
		if e.target.Host != "" {
			req.Host = e.target.Host
		}
		resp, err := e.roundTrip(req, step, at)
		if err != nil {
			f := networkFailure(ctx, err, step, phase(at.Load()), u.Scheme == "http" && e.transport.sawTLS.Load(), e.bounds.HeaderBytes)
			if f.outcome == ConnectionLost && e.transport.refusesCert() {
				f.outcome, f.step = TLSClientCertificate, StepTLS
			}
			return nil, f
		}
		if resp.StatusCode < 300 || resp.StatusCode > 399 || resp.Header.Get("Location") == "" {
			return resp, nil
		}
		resp.Body.Close()
		next, ok := redirect(u, resp)
		if !ok || hop >= e.bounds.Redirects {
			return nil, &failure{outcome: Redirected, step: step, status: resp.StatusCode}
		}
		e.setURL(next)
	}
}

// roundTrip makes one request, and once again where it went over a connection
// that the server had closed: some close each after its answer and do not say
// so. initialize must not be repeated, since the server may have made a
// session: it goes over a connection of its own.
func (e *exchange) roundTrip(req *http.Request, step Step, at *atomic.Int32) (*http.Response, error) {
	if step == StepInitialize {
		e.transport.CloseIdleConnections()
	}
	var reused atomic.Bool
	ctx := tracked(req.Context(), at, &reused)
	resp, err := e.transport.RoundTrip(req.WithContext(ctx))
	if err == nil || step == StepInitialize || !reused.Load() || ctx.Err() != nil || !closedBefore(err) {
		return resp, err
	}
	e.transport.CloseIdleConnections()
	again := req.WithContext(ctx)
	if again.Body, err = req.GetBody(); err != nil {
		return nil, err
	}
	return e.transport.RoundTrip(again)
}

// redirect gives where a redirect leads when it may be followed: it keeps
// method and origin. Any other would carry credentials away, or turn the
// request into a GET.
func redirect(from *url.URL, resp *http.Response) (*url.URL, bool) {
	if resp.StatusCode != http.StatusTemporaryRedirect && resp.StatusCode != http.StatusPermanentRedirect {
		return nil, false
	}
	to, err := from.Parse(resp.Header.Get("Location"))
	if err != nil || to.Scheme != from.Scheme || to.User != nil || !strings.EqualFold(to.Hostname(), from.Hostname()) || portOf(to) != portOf(from) {
		return nil, false
	}
	to.Fragment = ""
	return to, true
}

func portOf(u *url.URL) string {
	if port := u.Port(); port != "" {
		return port
	}
	if u.Scheme == "https" {
		return "443"
	}
	return "80"
}

func (e *exchange) currentURL() *url.URL {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.url
}

func (e *exchange) setURL(u *url.URL) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.url = u
}

// closeBody ends with a response. A short rest that is already announced is
// read for a moment, so that the connection can be used again; nothing else
// is waited for.
func closeBody(resp *http.Response, cancel context.CancelFunc) {
	const short, moment = 4096, 100 * time.Millisecond
	if resp.ContentLength > 0 && resp.ContentLength <= short {
		timer := time.AfterFunc(moment, cancel)
		io.CopyN(io.Discard, resp.Body, short) //nolint:errcheck // nothing follows from it
		timer.Stop()
	}
	resp.Body.Close()
}

// took notes how long a step took.
func (e *exchange) took(step Step, began time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.steps = append(e.steps, StepTiming{Step: step, Duration: time.Since(began)})
}

// opened notes a session that a response opened.
func (e *exchange) opened(header http.Header, version string) string {
	id := header.Get(mcp.HeaderSessionID)
	if id == "" || len(id) > 1024 {
		return ""
	}
	for _, c := range []byte(id) {
		if c < 0x21 || c > 0x7e {
			return ""
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range e.sessions {
		if s.id == id {
			return id
		}
	}
	e.sessions = append(e.sessions, session{id: id, version: version})
	return id
}

// agreed notes the version that the session goes on with, and those that were
// opened before one was agreed on.
func (e *exchange) agreed(id, version string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range e.sessions {
		if e.sessions[i].id == id || e.sessions[i].version == "" {
			e.sessions[i].version = version
		}
	}
}

func (e *exchange) isEvident() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.evident
}

func (e *exchange) setEvident() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.evident = true
}

// close cuts off what is still said, ends the sessions behind the caller's
// back, and then closes the connections.
func (e *exchange) close() {
	e.stop()
	e.total.release()
	e.client.ending.Go(func() {
		defer e.transport.close()
		if e.link != nil {
			e.link.close()
		}
		// An initialize that was under way is given EndTime to tell its session.
		e.background.Wait()
		e.total.release() // which it may have taken again
		for _, s := range e.sessions {
			e.end(s)
		}
	})
}

// end sends one DELETE. Whatever it is answered is fine.
func (e *exchange) end(s session) {
	header := e.header.Clone()
	header.Set(mcp.HeaderSessionID, s.id)
	if sendsVersion(s.version) {
		header.Set(mcp.HeaderProtocolVersion, s.version)
	}
	header.Del("Content-Type")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(e.life), e.bounds.EndTime)
	defer cancel()
	if resp, f := e.send(ctx, StepDone, http.MethodDelete, nil, header, new(atomic.Int32)); f == nil {
		resp.Body.Close()
	}
}

// sendsVersion: revisions before 2025-06-18 know no version header, and some
// servers of them refuse it.
func sendsVersion(version string) bool {
	return version >= mcp.Version20250618
}
