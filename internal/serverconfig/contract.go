// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package serverconfig

import "github.com/espalier-dev/espalier/internal/contract"

// Contract is what clients were promised.
type Contract struct {
	// Hide withholds what differs; it is reported in any case.
	Hide  bool           `json:"hide,omitempty"`
	Tools []contract.Pin `json:"tools"`
}
