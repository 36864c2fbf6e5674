// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpprobe

// Outcome says how a probe ended. The set is closed: Outcomes lists it.
type Outcome string

const (
	// Proved: the handshake held and every list that makes the server usable
	// was read, perhaps cut at a bound (Report.Truncated).
	Proved Outcome = "Proved"

	// Canceled: the caller gave up before the probe had an outcome. It says
	// nothing about the server and is never a fact for a status.
	Canceled Outcome = "Canceled"
	// InvalidTarget: the URL, CA or client certificate cannot be used;
	// nothing was dialled.
	InvalidTarget Outcome = "InvalidTarget"
	// ProbeDenied: the address is one that the probe's policy refuses
	// (loopback, link-local, metadata, --probe-deny-cidrs).
	ProbeDenied Outcome = "ProbeDenied"

	// DNSFailed: the host name did not resolve.
	DNSFailed Outcome = "DNSFailed"
	// ConnectionRefused: nothing listens on the port.
	ConnectionRefused Outcome = "ConnectionRefused"
	// Unreachable: the network refused (no route, host or network down).
	Unreachable Outcome = "Unreachable"
	// ConnectionLost: the connection broke before an answer was complete.
	ConnectionLost Outcome = "ConnectionLost"
	// Timeout: no answer within the time allowed; Step says to what. At
	// StepDial no connection was made at all.
	Timeout Outcome = "Timeout"

	// TLSUntrusted: the certificate is signed by nobody trusted here.
	TLSUntrusted Outcome = "TLSUntrusted"
	// TLSExpired: the certificate is expired or not valid yet.
	TLSExpired Outcome = "TLSExpired"
	// TLSWrongName: the certificate is for other names.
	TLSWrongName Outcome = "TLSWrongName"
	// TLSClientCertificate: the server wants a client certificate, or not the
	// one given.
	TLSClientCertificate Outcome = "TLSClientCertificate"
	// TLSNotOffered: the URL says https and the server speaks plain HTTP.
	TLSNotOffered Outcome = "TLSNotOffered"
	// TLSExpected: the URL says http and the server speaks TLS.
	TLSExpected Outcome = "TLSExpected"
	// TLSFailed: the TLS handshake failed otherwise.
	TLSFailed Outcome = "TLSFailed"

	// Redirected: the server sends elsewhere, to another origin or in a way
	// that would turn a POST into a GET.
	Redirected Outcome = "Redirected"
	// UnexpectedStatus: an HTTP status that is no MCP answer; HTTPStatus has it.
	UnexpectedStatus Outcome = "UnexpectedStatus"
	// NotMCP: an answer that is not MCP; Flaw says in what way.
	NotMCP Outcome = "NotMCP"
	// UnsupportedEncoding: the body is compressed in a way that was not asked
	// for and is not understood; Encoding names it.
	UnsupportedEncoding Outcome = "UnsupportedEncoding"
	// ResponseTooLarge: an answer is larger than the probe reads.
	ResponseTooLarge Outcome = "ResponseTooLarge"
	// StreamEnded: an event stream ended before the answer came.
	StreamEnded Outcome = "StreamEnded"

	// AuthRequired: the server wants a credential, none was given, and it is
	// evidently an MCP server or its gateway.
	AuthRequired Outcome = "AuthRequired"
	// AuthUnverified: the server wants a credential, none was given, and
	// nothing shows that it is an MCP server.
	AuthUnverified Outcome = "AuthUnverified"
	// AuthRejected: a credential was given and refused.
	AuthRejected Outcome = "AuthRejected"
	// TokenFailed: the token endpoint of Target.OAuth gave no token; HTTPStatus
	// is that of its answer, 0 when there was none.
	TokenFailed Outcome = "TokenFailed"
	// HostRejected: the server refuses the Host header (421, or 403 that says so).
	HostRejected Outcome = "HostRejected"

	// UnsupportedProtocol: the server speaks no revision that is spoken here.
	UnsupportedProtocol Outcome = "UnsupportedProtocol"
	// HandshakeRejected: the server answered the handshake with a JSON-RPC error.
	HandshakeRejected Outcome = "HandshakeRejected"
	// SessionLost: the server forgot its session between two requests.
	SessionLost Outcome = "SessionLost"
	// ListFailed: a list was answered with an error or with something that is
	// no list.
	ListFailed Outcome = "ListFailed"

	// ReportInvalid: the pod's report could not be decoded.
	ReportInvalid Outcome = "ReportInvalid"
)

// Outcomes are all outcomes, in the order of their declaration.
var Outcomes = []Outcome{
	Proved, Canceled, InvalidTarget, ProbeDenied,
	DNSFailed, ConnectionRefused, Unreachable, ConnectionLost, Timeout,
	TLSUntrusted, TLSExpired, TLSWrongName, TLSClientCertificate, TLSNotOffered, TLSExpected, TLSFailed,
	Redirected, UnexpectedStatus, NotMCP, UnsupportedEncoding, ResponseTooLarge, StreamEnded,
	AuthRequired, AuthUnverified, AuthRejected, TokenFailed, HostRejected,
	UnsupportedProtocol, HandshakeRejected, SessionLost, ListFailed, ReportInvalid,
}

// Connected reports whether a connection must have been made for this outcome
// at this step: the network lets the probe through.
func (o Outcome) Connected(at Step) bool {
	switch o {
	case "", Canceled, InvalidTarget, ProbeDenied, DNSFailed, Unreachable:
		return false
	case ConnectionRefused:
		// Something answered the SYN: the way is open, the port is not.
		return true
	}
	return at != StepDial && at != StepToken
}

// Answered reports whether an MCP server, or a gateway in front of one,
// evidently answered, whatever it said.
func (o Outcome) Answered() bool {
	switch o {
	case Proved, AuthRequired, UnsupportedProtocol, HandshakeRejected, SessionLost, ListFailed:
		return true
	}
	return false
}

// Step is the part of an exchange at which it ended.
type Step string

// The steps in their order. A step that is not a request to the server (token, dial,
// TLS) is named only when it failed.
const (
	StepReport      Step = "report"
	StepToken       Step = "token"
	StepDial        Step = "dial"
	StepTLS         Step = "tls"
	StepStream      Step = "the event stream"
	StepUpgrade     Step = "the WebSocket upgrade"
	StepDiscover    Step = "server/discover"
	StepInitialize  Step = "initialize"
	StepInitialized Step = "notifications/initialized"
	StepTools       Step = "tools/list"
	StepResources   Step = "resources/list"
	StepTemplates   Step = "resources/templates/list"
	StepPrompts     Step = "prompts/list"
	StepDone        Step = "done"
)

// Flaw says in what way an answer is not MCP.
type Flaw string

const (
	// FlawMediaType: neither JSON nor an event stream; MediaType has it.
	FlawMediaType Flaw = "MediaType"
	// FlawNotHTTP: the bytes are no HTTP.
	FlawNotHTTP Flaw = "NotHTTP"
	// FlawEmpty: no body.
	FlawEmpty Flaw = "Empty"
	// FlawNotJSON: the body is not JSON.
	FlawNotJSON Flaw = "NotJSON"
	// FlawNotJSONRPC: JSON, but no JSON-RPC 2.0 response.
	FlawNotJSONRPC Flaw = "NotJSONRPC"
	// FlawWrongID: a response, but to another request.
	FlawWrongID Flaw = "WrongID"
	// FlawMissingFields: a response to this request that lacks what its
	// result must have.
	FlawMissingFields Flaw = "MissingFields"
)

// Era of the protocol.
type Era string

const (
	// EraUnknown: not found out yet.
	EraUnknown Era = ""
	// EraModern: stateless, 2026-07-28 on.
	EraModern Era = "Modern"
	// EraLegacy: opened by initialize, up to 2025-11-25.
	EraLegacy Era = "Legacy"
)

// WarningCode says what is odd about a server that can be used all the same.
type WarningCode string

const (
	// WarnNameOutsideAdvice: a tool's name is not 1 to 128 of letters,
	// digits, underscore, hyphen and dot.
	WarnNameOutsideAdvice WarningCode = "NameOutsideAdvice"
	// WarnNameTooLongForClients: a name within the advice, but longer than 64.
	WarnNameTooLongForClients WarningCode = "NameTooLongForClients"
	// WarnDuplicateName: a name is listed more than once; the definition with
	// the smallest digest is kept.
	WarnDuplicateName WarningCode = "DuplicateName"
	// WarnMalformedEntry: an entry without a string for a name was left out.
	WarnMalformedEntry WarningCode = "MalformedEntry"
	// WarnSchemaNotObject: a tool's inputSchema is missing or no object.
	WarnSchemaNotObject WarningCode = "SchemaNotObject"
	// WarnNoDigest: a definition is too large or has no canonical form, so
	// that no digest of it exists.
	WarnNoDigest WarningCode = "NoDigest"
	// WarnCursorLoop: pages went on without bringing anything new.
	WarnCursorLoop WarningCode = "CursorLoop"
	// WarnListCut: a list was cut at a bound of the probe; the name is the list's.
	WarnListCut WarningCode = "ListCut"
	// WarnListFailed: a list that was declared, yet is not needed for tools to
	// work, could not be read; the name is the list's.
	WarnListFailed WarningCode = "ListFailed"
	// WarnNullList: a list was null instead of empty; the name is the list's.
	WarnNullList WarningCode = "NullList"
)
