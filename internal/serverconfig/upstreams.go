// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package serverconfig

import (
	"encoding/json"
	"strings"
)

// FeatureUpstreams is required by a catalog that names upstreams.
const FeatureUpstreams = "upstreams"

// FeatureUpstreamsWhen is required by a catalog with an upstream that serves
// some callers only.
const FeatureUpstreamsWhen = "upstreams.when"

// FeatureUpstreamHandler is required by a catalog with a declared tool that an
// upstream answers.
const FeatureUpstreamHandler = "upstreamHandler"

// FeatureRetrieve is required by a catalog with the tool mcp_retrieve.
const FeatureRetrieve = "retrieve"

// RetrieveTool is the name of the tool that reads resources.
const RetrieveTool = "mcp_retrieve"

// FeatureStdio is required by a catalog with a child process.
const FeatureStdio = "stdio"

// FeatureOpenAPI is required by a catalog with an upstream that is an OpenAPI
// document.
const FeatureOpenAPI = "openapi"

// FeaturePerClient is required by a catalog with a child per client: a server
// that does not know it would let clients share one.
const FeaturePerClient = "stdio-per-client"

// StdioUpstream is the name of the upstream that a server of type Stdio wraps.
// No upstream of a spec can have it.
const StdioUpstream = "Stdio"

// Protocol says which era an upstream is spoken to in.
type Protocol string

// Eras of an upstream.
const (
	ProtocolAuto   Protocol = "Auto"
	ProtocolModern Protocol = "Modern"
	ProtocolLegacy Protocol = "Legacy"
)

// Upstream is another MCP server whose tools, resources and prompts are served
// here.
type Upstream struct {
	// Name is unique in its catalog.
	Name string `json:"name"`
	// Connection to its MCP endpoint. Headers have no expressions: the
	// connection is shared by all callers.
	Connection
	// Stdio, if set, is a child process in place of the connection.
	Stdio *Stdio `json:"stdio,omitempty"`
	// OpenAPI, if set, is an API in place of an MCP server. The connection is
	// to the API then; its URL may be empty.
	OpenAPI  *OpenAPI `json:"openAPI,omitempty"`
	Protocol Protocol `json:"protocol,omitempty"`
	// Include and Exclude are globs of the upstream's own names of tools,
	// resources, templates and prompts.
	Include []string `json:"include,omitempty"`
	Exclude []string `json:"exclude,omitempty"`
	// When, if set, is CEL over principal that gives true for the callers that
	// it serves.
	When string `json:"when,omitempty"`
	// Prefix goes before each name. URIs stay as they are.
	Prefix string `json:"prefix,omitempty"`
	// Metadata of each of its entries; it never reaches the wire.
	Metadata map[string]string `json:"metadata,omitempty"`
}

// OpenAPI is an API by its OpenAPI document, from one of two places.
type OpenAPI struct {
	// DocumentURL is fetched again from time to time.
	DocumentURL string `json:"documentURL,omitempty"`
	// DocumentFile is a path below the credentials folder, read live.
	DocumentFile string `json:"documentFile,omitempty"`
}

// Stdio is a child process that speaks over stdin and stdout.
type Stdio struct {
	// Command and its arguments. There is no shell.
	Command    []string `json:"command"`
	WorkingDir string   `json:"workingDir,omitempty"`
	// Env names variables of the pod that the child gets beside the safe ones.
	Env []string `json:"env,omitempty"`
	// StartupTimeoutSeconds bounds the first handshake, HandshakeTimeoutSeconds
	// later ones.
	StartupTimeoutSeconds   int32 `json:"startupTimeoutSeconds"`
	HandshakeTimeoutSeconds int32 `json:"handshakeTimeoutSeconds"`
	MaxMessageBytes         int64 `json:"maxMessageBytes"`
	MaxStderrBytes          int32 `json:"maxStderrBytes"`
	// PerClient: each client has a child of its own, beside the one that
	// answers lists. At most MaxProcesses of them run, and each ends after
	// IdleSeconds without a call.
	PerClient    bool  `json:"perClient,omitempty"`
	MaxProcesses int32 `json:"maxProcesses,omitempty"`
	IdleSeconds  int32 `json:"idleSeconds,omitempty"`
	// Forward names what the child may ask of clients.
	Forward []Ask `json:"forward,omitempty"`
}

// Ask is something that a server asks of a client.
type Ask string

// What a server asks.
const (
	AskElicitation Ask = "Elicitation"
	AskSampling    Ask = "Sampling"
	AskRoots       Ask = "Roots"
)

// ToolsPolicy is what is done with tools of upstreams; Conflicts is for what
// else they bring as well. Declared entries went through it before they came
// into the catalog.
type ToolsPolicy struct {
	// Max tools of upstreams are served, in the order of Config.Upstreams and
	// then of the upstream.
	Max int32 `json:"max"`
	// Overrides by the name with its prefix.
	Overrides []Override `json:"overrides,omitempty"`
	// Include, Exclude (globs) and Filter (CEL over tool) are of final names.
	Include []string `json:"include,omitempty"`
	Exclude []string `json:"exclude,omitempty"`
	Filter  string   `json:"filter,omitempty"`
	// Conflicts between entries of upstreams: "Oldest" (the first upstream
	// wins), "Newest" (the last) or "HideAll". Declared tools always win.
	Conflicts string `json:"conflicts,omitempty"`
	// Reserved names are not served: declared tools that hide one another
	// have them.
	Reserved []string `json:"reserved,omitempty"`
	// ReservedPrompts (names) and ReservedResources (URIs and URI templates)
	// are the same of the other lists.
	ReservedPrompts   []string `json:"reservedPrompts,omitempty"`
	ReservedResources []string `json:"reservedResources,omitempty"`
}

// Override changes one tool of an upstream. Empty fields change nothing.
type Override struct {
	// Name with the upstream's prefix.
	Name        string            `json:"name"`
	Rename      string            `json:"rename,omitempty"`
	Title       string            `json:"title,omitempty"`
	Description string            `json:"description,omitempty"`
	Annotations json.RawMessage   `json:"annotations,omitempty"`
	Metadata    map[string]string `json:"metadata,omitempty"`
}

// UpstreamTool is the handler that calls one tool of an upstream.
type UpstreamTool struct {
	// Upstream by its name in Config.Upstreams.
	Upstream string `json:"upstream"`
	// Tool by the upstream's own name.
	Tool string `json:"tool"`
	// Listed: the entry is the upstream's own, adapted; no catalog says that.
	Listed bool `json:"-"`
}

// UpstreamResource is the source of what an upstream reads.
type UpstreamResource struct {
	// Upstream by its name in Config.Upstreams.
	Upstream string
	// Hidden are URIs and URI templates that the upstream lists and that are
	// not served: what they name is not read either.
	Hidden []string
	// When is that of the upstream, of Config.Readers.
	When string
}

// UpstreamPrompt is the source of a prompt of an upstream.
type UpstreamPrompt struct {
	// Upstream by its name in Config.Upstreams.
	Upstream string
	// Prompt by the upstream's own name.
	Prompt string
}

// sourceUpstream goes before the name of an upstream in the source of what it
// brings.
const sourceUpstream = "upstream/"

// SourceOf is the source of all that an upstream brings.
func SourceOf(upstream string) string { return sourceUpstream + upstream }

// FromUpstream reports whether an entry of this source was brought by an
// upstream and not declared.
func FromUpstream(source string) bool { return strings.HasPrefix(source, sourceUpstream) }

// CacheScope says who may keep lists.
type CacheScope string

// CachePrivate is for lists of which something came from an upstream that
// says so. Empty is public.
const CachePrivate CacheScope = "private"
