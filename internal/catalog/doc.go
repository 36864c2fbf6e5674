// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package catalog decides what an MCPServer serves. It is pure: an MCPServer
// and its registrations go in, the catalog file and a verdict per
// registration come out, the same bytes for the same input.
//
// Each registration is compiled alone (Compile), a costly step that
// depends on its spec only and may be kept; Build joins them.
package catalog
