// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package mcp holds the words of the Model Context Protocol that the probe
// and the shared server have in common: revisions, methods, error codes,
// header and metadata names. It knows no transport and no policy.
//
// The protocol has two eras. A "modern" revision (2026-07-28) is stateless:
// no initialize, no session, every request carries its version. The "legacy"
// revisions open with initialize. Rules cited below are those of the
// specification text of 2026-07-28 unless said otherwise.
package mcp

import "slices"

// Revisions of the protocol, newest first.
const (
	Version20260728 = "2026-07-28"
	Version20251125 = "2025-11-25"
	Version20250618 = "2025-06-18"
	Version20250326 = "2025-03-26"
	Version20241105 = "2024-11-05"
)

var (
	// ModernVersions are the stateless revisions spoken here, newest first.
	ModernVersions = []string{Version20260728}
	// LegacyVersions are the revisions with an initialize handshake, newest first.
	LegacyVersions = []string{Version20251125, Version20250618, Version20250326, Version20241105}
)

// AllVersions are the revisions spoken here, newest first.
func AllVersions() []string { return slices.Concat(ModernVersions, LegacyVersions) }

// IsModern reports whether version is a stateless revision spoken here.
func IsModern(version string) bool { return slices.Contains(ModernVersions, version) }

// IsLegacy reports whether version is a revision with a handshake spoken here.
func IsLegacy(version string) bool { return slices.Contains(LegacyVersions, version) }

// WellFormedVersion reports whether s looks like a revision (a date). Only
// such strings may be copied from a peer into a status or a log.
func WellFormedVersion(s string) bool {
	if len(s) != len("2006-01-02") {
		return false
	}
	for i, c := range []byte(s) {
		if i == 4 || i == 7 {
			if c != '-' {
				return false
			}
		} else if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// Methods.
const (
	MethodDiscover            = "server/discover" // modern only
	MethodInitialize          = "initialize"      // legacy only
	MethodPing                = "ping"            // legacy only
	MethodToolsList           = "tools/list"
	MethodToolsCall           = "tools/call"
	MethodResourcesList       = "resources/list"
	MethodResourceTemplates   = "resources/templates/list"
	MethodResourcesRead       = "resources/read"
	MethodPromptsList         = "prompts/list"
	MethodPromptsGet          = "prompts/get"
	MethodComplete            = "completion/complete"
	MethodSubscriptionsListen = "subscriptions/listen"  // modern only
	MethodSetLevel            = "logging/setLevel"      // legacy only
	MethodSubscribe           = "resources/subscribe"   // legacy only
	MethodUnsubscribe         = "resources/unsubscribe" // legacy only

	// What a server asks of a client: as requests in the legacy era, in
	// inputRequests in the modern one.
	MethodElicit        = "elicitation/create"
	MethodCreateMessage = "sampling/createMessage"
	MethodListRoots     = "roots/list"

	NotificationRootsChanged = "notifications/roots/list_changed" // legacy only
	NotificationInitialized  = "notifications/initialized"        // legacy only
	NotificationCancelled    = "notifications/cancelled"
	NotificationProgress     = "notifications/progress"
	NotificationToolsChanged = "notifications/tools/list_changed"
	NotificationResources    = "notifications/resources/list_changed"
	NotificationPrompts      = "notifications/prompts/list_changed"
	NotificationUpdated      = "notifications/resources/updated"
	NotificationMessage      = "notifications/message"
	NotificationAcknowledged = "notifications/subscriptions/acknowledged" // modern only
	// NotificationElicitationComplete tells that what was asked by a URL is done.
	NotificationElicitationComplete = "notifications/elicitation/complete"
)

// AsksClient reports whether method is one that a server asks of a client.
func AsksClient(method string) bool {
	return method == MethodElicit || method == MethodCreateMessage || method == MethodListRoots
}

// HTTP headers. Names are in canonical MIME form.
const (
	HeaderProtocolVersion = "Mcp-Protocol-Version"
	HeaderSessionID       = "Mcp-Session-Id" // legacy only
	HeaderMethod          = "Mcp-Method"     // modern only
	HeaderName            = "Mcp-Name"       // modern only: tools/call, prompts/get, resources/read
	HeaderParamPrefix     = "Mcp-Param-"     // modern only
)

// MirroredName is the parameter of a method that Mcp-Name mirrors, empty for
// none.
func MirroredName(method string) string {
	switch method {
	case MethodToolsCall, MethodPromptsGet:
		return "name"
	case MethodResourcesRead:
		return "uri"
	}
	return ""
}

// Keys of _meta that the modern revision defines.
const (
	MetaProtocolVersion    = "io.modelcontextprotocol/protocolVersion"
	MetaClientCapabilities = "io.modelcontextprotocol/clientCapabilities"
	MetaClientInfo         = "io.modelcontextprotocol/clientInfo"
	MetaServerInfo         = "io.modelcontextprotocol/serverInfo"
	MetaLogLevel           = "io.modelcontextprotocol/logLevel"
	MetaSubscriptionID     = "io.modelcontextprotocol/subscriptionId"
	// MetaCatalogDigest is Espalier's own: the digest of the catalog that an
	// answer of discover or initialize was made from.
	MetaCatalogDigest = "mcp.espalier.dev/catalog-digest"
	// MetaHops is Espalier's own: through how many shared servers a call came.
	MetaHops = "mcp.espalier.dev/hops"
	// MetaReason is Espalier's own: why a call has an isError result, as a
	// word in CamelCase, where the server (not the tool) says so.
	MetaReason = "mcp.espalier.dev/reason"
)

// JSON-RPC error codes.
const (
	CodeParseError     = -32700
	CodeInvalidRequest = -32600
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternalError  = -32603

	// CodeResourceNotFound is for legacy clients only; the modern revision has
	// CodeInvalidParams.
	CodeResourceNotFound = -32002

	// CodeURLElicitationRequired is for legacy clients only; a modern one is
	// asked by an input_required result.
	CodeURLElicitationRequired = -32042

	CodeHeaderMismatch                  = -32020 // HTTP 400
	CodeMissingRequiredClientCapability = -32021 // HTTP 400
	CodeUnsupportedProtocolVersion      = -32022 // HTTP 400, data.supported

	// Espalier's own codes lie outside -32768..-32000, which the
	// specification reserves. data.reason says which rule refused.
	CodeForbidden       = -31001 // HTTP 403
	CodeTooManyRequests = -31002 // HTTP 429
	CodeTooLarge        = -31003 // HTTP 413
	CodeUnavailable     = -31004 // HTTP 503: no catalog yet, or draining
	CodeUnauthorized    = -31005 // HTTP 401
)

// MaxToolName is the longest name that the specification recommends, in bytes.
const MaxToolName = 128

// MaxClientToolName is the longest name that widespread clients accept. A
// longer one is flagged, never dropped.
const MaxClientToolName = 64

// ValidToolName reports whether name keeps to the specification's advice:
// 1 to 128 of letters, digits, underscore, hyphen and dot.
func ValidToolName(name string) bool {
	if name == "" || len(name) > MaxToolName {
		return false
	}
	for _, c := range []byte(name) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-', c == '.':
		default:
			return false
		}
	}
	return true
}

// LogLevels are the words for the severity of log messages, the least severe
// first.
var LogLevels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}
