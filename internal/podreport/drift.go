// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package podreport

// Drift is a tool that is not what the contract promises, as far as only the
// pod can tell: it is withheld, or its upstream's definition is pinned.
type Drift struct {
	// Name of the tool.
	Name string `json:"name"`
	// Digest of what would be served, as in contract.Tool.
	Digest string `json:"digest,omitempty"`
	// Parts that differ from what is pinned, as far as that is known.
	Parts []string `json:"parts,omitempty"`
	// UpstreamDigest of what the upstream gives, when that is pinned and
	// differs.
	UpstreamDigest string `json:"upstreamDigest,omitempty"`
	// Hidden: the tool is withheld.
	Hidden bool `json:"hidden,omitempty"`
}
