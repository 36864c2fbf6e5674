// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpprobe

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/espalier-dev/espalier/internal/contract"
	"github.com/espalier-dev/espalier/internal/podreport"
)

// Report is what one probe saw. Every string in it but those of Diagnostics
// is either ours, or well formed, or escaped and bounded, and may stand in a
// status, an event or a log.
type Report struct {
	Outcome Outcome
	// Step at which it ended; StepDone when Proved.
	Step Step
	// Flaw, with outcome NotMCP.
	Flaw Flaw
	// HTTPStatus of the last answer that was judged; 0 when there was none.
	HTTPStatus int
	// RPCCode is the code of the JSON-RPC error that was judged; 0 when there
	// was none.
	RPCCode int
	// MediaType of that answer: lower case without parameters, "none" when
	// absent, "malformed" when not well formed, "other" when not a known one.
	MediaType string
	// Encoding, with outcome UnsupportedEncoding: a known encoding's name or "other".
	Encoding string
	// Limit in bytes, with outcome ResponseTooLarge.
	Limit int64

	// Era to hint at next time; unknown until one handshake held.
	Era Era
	// Transport over which the handshake held; empty until one did.
	Transport Transport
	// ProtocolVersion in use, well formed.
	ProtocolVersion string
	// Offered are the versions that the peer named when none was agreed on;
	// well formed, sorted, at most 16.
	Offered []string
	// Server as it named itself.
	Server ServerInfo
	// Capabilities that are declared: sorted keys, at most 32.
	Capabilities []string
	// CatalogDigest as discover or initialize carried it in _meta; empty for
	// servers that are not ours and for what is not a digest.
	CatalogDigest string
	// Instructions is the digest, as of contract.OfText, of the instructions
	// that the server gives; empty without.
	Instructions string

	// Tools tells an unknown list from one not declared and from an empty one.
	Tools ToolList
	// Resources, Templates and Prompts, as far as they are known.
	Resources, Templates, Prompts EntryList
	// ResourceCount and PromptCount are nil when unknown, 0 when not declared.
	ResourceCount *int
	PromptCount   *int
	// Truncated: some list was cut at a bound (Warnings say which); its count
	// is of what was read.
	Truncated bool
	// Warnings, sorted, at most 64; WarningsOmitted counts the rest.
	Warnings        []Warning
	WarningsOmitted int

	// TTL is for how long the server says its lists may be kept; nil when it
	// does not say. ListChanged: it declares to announce changes. ListsMoved:
	// it announced one while its lists were read. ListsKept: the lists were
	// not read, they are those of Target.Kept. These are hints and no facts.
	TTL         *time.Duration
	ListChanged bool
	ListsMoved  bool
	ListsKept   bool

	// Pod is the pod's own report; nil when not asked for or not got.
	Pod *podreport.Report
	// PodOutcome of asking for it: empty when not asked, Proved when got.
	PodOutcome Outcome
	// PodStatus is the HTTP status of that answer; 0 when there was none.
	PodStatus int

	// Latency of the exchange on the MCP URL, from the first dial to the last
	// list; of the report with Target.ReportOnly.
	Latency time.Duration
	// Handshake is the part of Latency until the server had agreed, or
	// refused; 0 when nothing was dialled.
	Handshake time.Duration
	// Steps that were taken, in order, with their durations.
	Steps []StepTiming

	// Diagnostics are for the eyes of a person who probed by hand only. They
	// never enter a status, an event, a log or a metric.
	Diagnostics Diagnostics
}

// ServerInfo is the name and version a server gives itself, escaped, at most
// 128 bytes each.
type ServerInfo struct {
	Name    string
	Version string
}

// ToolsState says what is known of a server's tools.
type ToolsState string

const (
	// ToolsUnknown: the list was not read.
	ToolsUnknown ToolsState = ""
	// ToolsNotDeclared: the server declares that it has none.
	ToolsNotDeclared ToolsState = "NotDeclared"
	// ToolsListed: the list was read; it may be empty.
	ToolsListed ToolsState = "Listed"
)

// ToolList is a server's tools.
type ToolList struct {
	State ToolsState
	// Tools, sorted by name, one for each name.
	Tools []Tool
}

// Count of tools; nil when unknown, 0 when not declared.
func (l ToolList) Count() *int {
	if l.State == ToolsUnknown {
		return nil
	}
	n := len(l.Tools)
	return &n
}

// Tool is one listed tool.
type Tool struct {
	// Name escaped by EscapeName: unique, printable, at most MaxNameBytes.
	Name string
	// Digest and Fields as in contract.Tool (of the name as it is on the
	// wire); empty with WarnNoDigest.
	Digest string
	Fields contract.Fields
}

// Warning is something odd. Name is an escaped name or the method of a list.
type Warning struct {
	Code WarningCode
	Name string
}

// StepTiming is the time one step took.
type StepTiming struct {
	Step     Step
	Duration time.Duration
}

// Diagnostics keep the peer's own words: escaped, bounded and with the
// target's secret values struck out, but foreign.
type Diagnostics struct {
	// PeerWords is the message of a JSON-RPC error or the beginning of a
	// body, at most 200 bytes before escaping.
	PeerWords string
	// Cause is the text of a network error, at most 200 bytes.
	Cause string
	// SessionID is that of the session that the server opened last, at most
	// 200 bytes; empty for none.
	SessionID string
}

// Facts is a digest of what a status may say of the report: two reports with
// equal facts need no second write. Times, hints and diagnostics are no facts.
func (r *Report) Facts() string {
	facts := *r
	facts.TTL, facts.Latency, facts.Handshake, facts.Steps, facts.Diagnostics = nil, 0, 0, nil, Diagnostics{}
	facts.ListChanged, facts.ListsMoved, facts.ListsKept = false, false, false
	// All of Report marshals; map-free, so the encoding is deterministic.
	encoded, err := json.Marshal(facts)
	if err != nil {
		return "unencodable"
	}
	sum := sha256.Sum256(encoded)
	return hex.EncodeToString(sum[:])
}
