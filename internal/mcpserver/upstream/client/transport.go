// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
)

// errNotOffered: the server has no stream of its own messages, which is its
// right.
var errNotOffered = errors.New("no stream is offered")

// carrier takes messages to a peer and back.
type carrier interface {
	// request sends m and gives the raw result of its response.
	request(ctx context.Context, m *message) ([]byte, error)
	// notify sends a notification.
	notify(ctx context.Context, m *message) error
	// agree says what revision is spoken from now on.
	agree(r revision)
	// stream reads what a legacy server says by itself until ctx ends or the
	// stream does; standing is called when it stands. errNotOffered: there is
	// none.
	stream(ctx context.Context, standing func()) error
	// close ends the session in good order and awaits what runs behind; abort
	// ends it at once. Both abort what is pending.
	close(ctx context.Context)
	abort()
}

// standUntil is the stream of a carrier whose one connection brings what a
// server says by itself anyway: it stands at once, and ends with that.
func standUntil(ctx context.Context, ended <-chan struct{}, standing func()) error {
	standing()
	select {
	case <-ended:
		return &Error{Reason: ConnectionLost}
	case <-ctx.Done():
		return ctx.Err()
	}
}
