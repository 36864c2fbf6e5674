// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package client is an MCP client session for the shared server: it speaks
// both eras to one upstream, over one connection that many callers share. It
// declares no capability, so a server may ask it nothing; every request has an
// id and a progress token of its own, so that nothing of one caller reaches
// another. What a peer says is bounded, and passes as the bytes it came in.
package client
