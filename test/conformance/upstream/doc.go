// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package upstream is the part of the conformance suite's fixtures that needs
// a program: tools that report progress, log, ask their caller, or change the
// lists. In the tests it stands behind the shared server. Names and texts are
// the suite's.
package upstream
