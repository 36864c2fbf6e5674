// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bridge is "kubectl mcp connect": a desktop client starts it as an
// MCP server over stdio, and it carries each message to a server in the
// cluster and back.
//
// It is transparent. Messages pass as the bytes they are, and the server's
// identity, capabilities and answers are its own. The era is the client's
// choice: a request whose _meta names a revision goes out as the modern era
// has it, any other as the legacy one. What the bridge adds is what HTTP wants
// of a client (headers, the session, its streams) and that the client does not
// notice when a pod is replaced:
//
//   - A request that certainly did not arrive is sent again until a replica is
//     ready, for as long as Options.Wait.
//   - One that arrived, perhaps, is sent again only when that changes nothing
//     (lists, reads, ping). Any other is answered with an error that says so.
//   - A lost session is opened again with the client's own initialize, and what
//     the client had set (log level, subscriptions) is set again. Listen streams
//     of the modern era are opened again as well. Then the client is told that
//     lists changed, since those of the new pod may be others.
package bridge
