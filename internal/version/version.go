// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package version says which build this is.
package version

// Version of the build; set with -ldflags "-X .../internal/version.Version=".
var Version = "dev"
