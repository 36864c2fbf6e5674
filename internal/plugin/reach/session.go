// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/mcpserver/upstream/client"
	"github.com/espalier-dev/espalier/internal/plugin/env"
	"github.com/espalier-dev/espalier/internal/version"
)

// Session opens a session with p, of the era that p speaks. asking is what its
// server may ask; nil for nothing. The error says what to try.
func Session(ctx context.Context, p *Endpoint, asking *client.Asking) (*client.Session, error) {
	session, err := client.Connect(ctx, Options(p, asking))
	return session, Explain(p, err)
}

// Options of a session with p.
func Options(p *Endpoint, asking *client.Asking) client.Options {
	return client.Options{
		URL: p.URL, HTTP: p.HTTP(), Header: p.Header, Credential: p.Credential,
		Version: version.Version, MaxBytes: p.MaxBytes, Asking: asking,
	}
}

// Explain puts an error of a session with p into words for a terminal, with
// what to try. Words of the peer are escaped. Nil for nil.
func Explain(p *Endpoint, err error) error {
	var rpc *client.RPCError
	var known *client.Error
	switch {
	case err == nil, errors.Is(err, context.Canceled), env.HintOf(err) != "" && !errors.As(err, &known):
		return err
	case errors.Is(err, context.DeadlineExceeded):
		return env.Hint(fmt.Errorf("%s did not answer in time", p.Name()), "Give it more with --timeout, or find out why: kubectl mcp why.")
	case errors.As(err, &known):
		return p.explain(known)
	case errors.As(err, &rpc):
		return fmt.Errorf("%s answered with error %d: %s", p.Name(), rpc.Code, p.words(rpc.Message))
	}
	return err
}

func (p *Endpoint) explain(e *client.Error) error {
	// The shared server's word for it tells its upstreams from itself.
	word := strings.TrimPrefix(e.Error(), "Upstream")
	text := fmt.Sprintf("%s: %s (%s)", p.Name(), e.Message(), word)
	hint := hints[e.Reason]
	var rpc *client.RPCError
	if errors.As(e.Cause, &rpc) {
		text += fmt.Sprintf(": error %d: %s", rpc.Code, p.words(rpc.Message))
	} else if e.Cause != nil && isNetwork(e.Reason) {
		text += ": " + p.words(e.Cause.Error())
	}
	if inner := env.HintOf(e); inner != "" {
		hint = inner
	} else if p.unread != nil && (isAuth(e.Reason) || e.Reason == client.TLSFailed) {
		hint = strings.TrimSpace(hint + " " + strings.Join(p.unread, "; ") + ".")
	}
	return env.Hint(errors.New(text), hint)
}

// maxWords is how much of a peer's words is shown, in characters.
const maxWords = 1000

// words of a peer, fit for a terminal and without what was sent to it as a
// secret.
func (p *Endpoint) words(text string) string {
	var values []string
	for _, header := range p.Header {
		values = append(values, header...)
	}
	return env.Cut(env.Line(mcpprobe.Strike(text, values...)), maxWords)
}

func isAuth(reason client.Reason) bool {
	return reason == client.AuthRequired || reason == client.AuthRejected
}

// isNetwork: the cause is an error of this machine, not words of the peer.
func isNetwork(reason client.Reason) bool {
	switch reason {
	case client.DNSFailed, client.ConnectionRefused, client.ConnectionLost, client.TLSFailed, client.Timeout, client.TokenFailed:
		return true
	}
	return false
}

// hints are for who sits at a terminal.
var hints = map[client.Reason]string{
	client.AuthRequired:        "Give a credential: --header 'Name: value', or --token-file FILE for a bearer token.",
	client.AuthRejected:        "Check the credential that was given with --header or --token-file, or that the server's spec names.",
	client.DNSFailed:           "An External server is dialled from this machine: check that its host name means something here.",
	client.ConnectionRefused:   "Read why: kubectl mcp why.",
	client.ConnectionLost:      "Read the server's log, and try again.",
	client.TLSFailed:           "Name the authority's certificate with --server-ca FILE, or check spec.tls.",
	client.Timeout:             "Give it more time with --timeout, or find out why: kubectl mcp why.",
	client.Redirected:          "Name the place that it redirects to as the URL.",
	client.UnexpectedStatus:    "Check the path of the URL. \"kubectl mcp probe\" shows what the server says.",
	client.NotMCP:              "Check that the URL is that of an MCP endpoint. \"kubectl mcp probe\" shows what the server says.",
	client.TooLarge:            "A message may be 10 MiB large.",
	client.UnsupportedProtocol: "Update the server, or this plugin.",
	client.HandshakeRejected:   "\"kubectl mcp probe\" shows what the server says.",
	client.SessionLost:         "Try again: the server forgot the session.",
}
