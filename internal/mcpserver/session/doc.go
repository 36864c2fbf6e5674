// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package session holds the sessions of legacy clients: what a client declared
// and subscribed to, what it is asked and told, and which of its requests run.
// It knows no transport.
//
// A transport opens a session in the Registry (or lets initialize do so), hands
// it to the engine with each request, gives it the client's responses (Answer),
// and serves its standing stream (Serve): the GET stream of streamable HTTP,
// the stream of the SSE transport, or a connection that carries all. Whatever
// is to be said outside of an answer goes there. The answer to one request may
// be a stream of its own (Channel), which can be taken up again when its
// connection breaks.
package session

import "time"

// Stream carries messages to a client. It must be safe for concurrent use
// where more than the session writes to it, as on a connection that carries
// answers too.
type Stream interface {
	// Send sends one message. It returns an error when the client is gone.
	Send(message []byte) error
	// KeepAlive shows that the stream lives.
	KeepAlive() error
}

// Numbered is a Stream that tells its client the ids of events, so that it can
// be taken up again after one of them.
type Numbered interface {
	Stream
	// SendEvent sends one message; an empty one only tells the id.
	SendEvent(id string, message []byte) error
}

// KeepAlive is how often a silent stream shows that it lives.
const KeepAlive = 15 * time.Second
