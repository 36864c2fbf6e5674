// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package mcpprobe is an MCP client made to distrust. One Probe is one bounded
// exchange with one endpoint: find out the era, shake hands, read the lists,
// end the session, and say in a Report what was seen. It calls no tool and
// leaves nothing behind at the server.
//
// Nothing a peer says is believed further than it is checked, and nothing a
// peer says reaches a Report as it was said, except in Diagnostics: names are
// escaped and bounded, versions and media types are kept only when well
// formed, bodies and error texts are not kept at all.
//
// # What one probe sends
//
// At most: one GET of the pod's report (another port); two server/discover
// (the second only when the server refused the version and named one that is
// spoken here); two initialize (likewise); one notifications/initialized;
// MaxPages list requests over all lists; ten answers to requests of the
// server; one DELETE of the session. With Target.Kept a modern server that has
// not changed is asked for no list. Redirects to the same origin repeat a
// request, three times at most; a connection that the server had closed
// repeats it once, but not initialize. A GET is sent to the MCP URL where HTTP with
// SSE or a WebSocket is spoken there, which both begin with one, or where
// streamable HTTP was refused as servers do that know HTTP with SSE alone; a
// HEAD never.
package mcpprobe
