// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package call

import (
	"strings"

	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
)

// A call that waits for its caller's answer waits in one replica. The raw
// requestState that the caller hands back names that replica and the call:
// statePrefix, the replica's hash, a dot, an id that cannot be guessed.
const (
	statePrefix = "espalier1."
	maxState    = 256
)

// ParkedState is the raw requestState of a call that waits in the replica with
// this hash, which has no dot in it.
func ParkedState(owner, id string) []byte {
	return wire.AppendString(nil, statePrefix+owner+"."+id)
}

// ParkedIn tells of a raw requestState which replica the call waits in, and
// its id; ok is false for a state that is somebody else's. The caller made it
// what it is: neither part may be trusted.
func ParkedIn(state []byte) (owner, id string, ok bool) {
	if len(state) > maxState {
		return "", "", false
	}
	text, _ := wire.Text(state)
	rest, ours := strings.CutPrefix(text, statePrefix)
	if !ours {
		return "", "", false
	}
	return strings.Cut(rest, ".")
}

// IsParked reports whether a raw requestState has the form of ParkedState.
func IsParked(state []byte) bool {
	_, _, ok := ParkedIn(state)
	return ok
}
