// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"cmp"
	"os"
)

// Images that the tests' pods run. IMAGE_REGISTRY says where they lie.
var (
	BackendImage    = registry() + "/example-backend:dev"
	EverythingImage = registry() + "/example-everything:dev"
	FakeMCPImage    = registry() + "/fakemcp:dev"
)

func registry() string { return cmp.Or(os.Getenv("IMAGE_REGISTRY"), "ghcr.io/espalier-dev") }
