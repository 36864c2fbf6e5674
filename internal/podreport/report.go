// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podreport is the contract from a pod of the shared server up to the
// operator: what GET /report on the pod's internal port answers. It is
// versioned and additive, bounded, and as untrusted by its reader as any
// other answer from a pod.
package podreport

import "time"

const (
	// Version of the report's shape. A reader accepts any version and
	// ignores what it does not know.
	Version = 1
	// Path on the internal port.
	Path = "/report"
	// MaxBytes bounds the encoded report. A writer cuts NotServed, Flagged
	// and Credentials to fit and sets Truncated.
	MaxBytes = 256 << 10
)

// Report is one pod's account of itself.
type Report struct {
	Version int `json:"version"`
	// ServerVersion is the version of the server binary.
	ServerVersion string `json:"serverVersion"`
	// CatalogDigest is the digest of the catalog that lists and calls are
	// answered from; empty until the first one was loaded.
	CatalogDigest string `json:"catalogDigest,omitempty"`
	// CatalogState says how the newest catalog on disk fared.
	CatalogState CatalogState `json:"catalogState"`
	// Missing names the features that the newest catalog requires and this
	// server lacks; set with state Unsupported.
	Missing []string `json:"missing,omitempty"`
	// Credentials are the mounted keys that handlers use.
	Credentials []Credential `json:"credentials,omitempty"`
	// NotServed are the entries of the catalog that are not served, and why.
	NotServed []NotServed `json:"notServed,omitempty"`
	// Flagged are entries that are served, and what is odd about them.
	Flagged []NotServed `json:"flagged,omitempty"`
	// Upstreams in the order of the catalog.
	Upstreams []Upstream `json:"upstreams,omitempty"`
	// Drift are pinned tools that are not what was promised.
	Drift []Drift `json:"drift,omitempty"`
	// Truncated is set when lists above were cut to fit MaxBytes.
	Truncated bool `json:"truncated,omitempty"`
}

// CatalogState is the state of the newest catalog on disk.
type CatalogState string

const (
	// CatalogLoaded: the newest catalog is the one served.
	CatalogLoaded CatalogState = "Loaded"
	// CatalogIncomplete: index and shards do not match yet; the old one is served.
	CatalogIncomplete CatalogState = "Incomplete"
	// CatalogUnsupported: it requires features this server lacks; the old one is served.
	CatalogUnsupported CatalogState = "Unsupported"
	// CatalogInvalid: it cannot be decoded; the old one is served.
	CatalogInvalid CatalogState = "Invalid"
	// CatalogMissing: there is none on disk.
	CatalogMissing CatalogState = "Missing"
)

// Credential is one mounted key. Its value appears nowhere.
type Credential struct {
	// Path below the credentials folder, for example secrets/NAME/KEY.
	Path string `json:"path"`
	// Present is false while the key is not mounted.
	Present bool `json:"present"`
	// LoadedAt is when the bytes in use were first seen.
	LoadedAt *time.Time `json:"loadedAt,omitempty"`
}

// NotServed is an entry of the catalog that is not served.
type NotServed struct {
	// Kind of the entry: tool, resource, template or prompt.
	Kind string `json:"kind"`
	// Name of the entry.
	Name string `json:"name"`
	// Reason in CamelCase.
	Reason string `json:"reason"`
}

// Reasons of NotServed and Flagged that tell of entries of upstreams.
const (
	// ReasonOverMax: tools.max leaves it out.
	ReasonOverMax = "OverMax"
	// ReasonDrifted: it is not what spec.contract promises.
	ReasonDrifted = "Drifted"
	// ReasonConflict: another entry has its name or URI.
	ReasonConflict = "Conflict"
	// ReasonInvalidURI: the URI cannot be served.
	ReasonInvalidURI = "InvalidURI"
	// ReasonInvalidName: no client would take the name.
	ReasonInvalidName = "InvalidName"
	// ReasonTasksUnsupported: it can only be called as a task.
	ReasonTasksUnsupported = "TasksUnsupported"
	// ReasonFilterFailed: the filter cannot be evaluated for it.
	ReasonFilterFailed = "FilterFailed"
	// ReasonSchemaNotChecked (flagged): its schema cannot be compiled here and
	// is passed on; arguments are not checked.
	ReasonSchemaNotChecked = "SchemaNotChecked"
	// ReasonLongName (flagged): some clients refuse names over 64 characters.
	ReasonLongName = "LongName"
)

// UpstreamState says how an upstream fares.
type UpstreamState string

const (
	// UpstreamPending: it has not answered yet.
	UpstreamPending UpstreamState = "Pending"
	// UpstreamReady: it answers.
	UpstreamReady UpstreamState = "Ready"
	// UpstreamUnavailable: it does not answer; its tools stay for a while and
	// are then withdrawn.
	UpstreamUnavailable UpstreamState = "Unavailable"
)

// Upstream is one upstream as a pod sees it. It holds nothing of the peer's
// words.
type Upstream struct {
	Name  string        `json:"name"`
	State UpstreamState `json:"state"`
	// Reason in CamelCase, with UpstreamUnavailable.
	Reason string `json:"reason,omitempty"`
	// Protocol version that is spoken.
	Protocol string `json:"protocol,omitempty"`
	// Tools, Resources (templates included) and Prompts of it that are served.
	Tools     int `json:"tools"`
	Resources int `json:"resources,omitempty"`
	Prompts   int `json:"prompts,omitempty"`
	// Phase says what failed, in CamelCase, and Message and Hint are the fixed
	// texts of Reason, with UpstreamUnavailable.
	Phase   string `json:"phase,omitempty"`
	Message string `json:"message,omitempty"`
	Hint    string `json:"hint,omitempty"`
	// Skipped counts the operations of its OpenAPI document that are not
	// served, and SkippedNames are some of them, at most MaxSkippedNames.
	Skipped      int       `json:"skipped,omitempty"`
	SkippedNames []Skipped `json:"skippedNames,omitempty"`
	// Child is the process that it is, where it is one.
	Child *Child `json:"child,omitempty"`
	// Clients counts sessions, or children, that are for one client each.
	Clients int `json:"clients,omitempty"`
}

// MaxSkippedNames of one upstream.
const MaxSkippedNames = 16

// Skipped is an operation of an OpenAPI document that is not served. Its name
// is what its tool would have, prefix included.
type Skipped struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// Child is a child process.
type Child struct {
	// State is Running or Exited.
	State string `json:"state"`
	// ExitCode, when it ended by itself.
	ExitCode int `json:"exitCode,omitempty"`
	// Signal that ended it, without "SIG".
	Signal string `json:"signal,omitempty"`
	// Restarted, of one that runs, says why the one before it was given up:
	// a reason in CamelCase. ExitCode and Signal are that one's. Empty for
	// the first.
	Restarted string `json:"restarted,omitempty"`
	// StderrTruncated: it wrote more to stderr than was kept.
	StderrTruncated bool `json:"stderrTruncated,omitempty"`
}

// States of a Child.
const (
	ChildRunning = "Running"
	ChildExited  = "Exited"
)
