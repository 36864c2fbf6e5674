// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"cmp"
	"os"
)

// Images that the tests' pods run. IMAGE_REGISTRY says where they lie.
var (
	BackendImage    = Registry() + "/example-backend:dev"
	BadChildImage   = Registry() + "/badchild:dev"
	CollectorImage  = Registry() + "/collector:dev"
	EverythingImage = Registry() + "/example-everything:dev"
	FakeMCPImage    = Registry() + "/fakemcp:dev"
	NPMImage        = Registry() + "/example-npm:dev"
)

// Registry is where the images of pods are pulled from.
func Registry() string { return cmp.Or(os.Getenv("IMAGE_REGISTRY"), "ghcr.io/espalier-dev") }
