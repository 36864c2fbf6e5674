// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"net/http"
)

// Transport is what a server speaks at an address.
type Transport string

// Transports.
const (
	StreamableHTTP Transport = "StreamableHTTP"
	SSE            Transport = "SSE"
	WebSocket      Transport = "WebSocket"
)

// Way leads to the server behind.
type Way struct {
	// URL of its endpoint; with http or https for a WebSocket, too.
	URL       string
	Transport Transport
	// HTTP reaches it. Its connections are the way's own.
	HTTP *http.Client
}

// take is called with what comes of a message, in order.
type take func(packet)

// link is a way in use; in the legacy era, of one session. Its methods may be
// called at the same time.
type link interface {
	// exchange sends a request and hands on what comes of it. It returns when
	// all of it is answered, or why not. patience ends when the server must
	// have been reached.
	exchange(ctx, patience context.Context, m *message, to take) *fault
	// say sends what wants no answer.
	say(ctx context.Context, m *message) *fault
	// abandon says that nobody waits for the answer to a request any more, in
	// the client's own words. Where an aborted exchange says that, it is
	// nothing.
	abandon(ctx context.Context, note *message)
	// agree says which revision of the legacy era is spoken from now on.
	agree(version string)
	// stand hands on what the server says by itself, until ctx ends or there
	// is no more to come: nil where the server has nothing to say so.
	stand(ctx context.Context, to take) *fault
	// close ends the session in good order; drop lets go of one that is lost.
	close(ctx context.Context)
	drop()
}
