// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package upstream keeps the connections to other MCP servers and adapts
// their tools: a Manager holds one source per upstream of the catalog, which
// connects, reads the list, watches it and the peer's health, and connects
// again when the peer is lost; Compose makes entries of the catalog from the
// lists; Manager.Handler passes calls on.
package upstream
