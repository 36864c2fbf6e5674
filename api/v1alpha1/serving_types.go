// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// ServerInfo is what the server says of itself.
//
// +kubebuilder:validation:MinProperties=1
type ServerInfo struct {
	// name of the server on the wire. Defaults to the MCPServer's name.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Name string `json:"name,omitempty"`

	// title for people.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Title string `json:"title,omitempty"`

	// version of what is served. Defaults to 0.0.0.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Version string `json:"version,omitempty"`

	// instructions tell a model how to use the server.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=16384
	Instructions string `json:"instructions,omitempty"`
}

// TransportType names a transport.
//
// +kubebuilder:validation:Enum=StreamableHTTP;SSE;WebSocket
type TransportType string

// Transports.
const (
	// TransportStreamableHTTP is streamable HTTP, both eras of the protocol on one URL.
	TransportStreamableHTTP TransportType = "StreamableHTTP"
	// TransportSSE is HTTP with server-sent events, as revision 2024-11-05 has
	// it. The protocol deprecates it.
	TransportSSE TransportType = "SSE"
	// TransportWebSocket is one message per text frame, both eras. No revision
	// of the protocol defines it.
	TransportWebSocket TransportType = "WebSocket"
)

// Transport is one way for clients to reach the server.
type Transport struct {
	// type of the transport. StreamableHTTP is what clients of today use. SSE
	// is HTTP with server-sent events as revision 2024-11-05 of the protocol
	// has it, for clients that know nothing newer. WebSocket carries one
	// message per text frame, for clients that want one connection.
	// +required
	Type TransportType `json:"type,omitempty"`

	// path on the Service's port, different for each transport. Defaults to
	// /mcp for StreamableHTTP, /sse for SSE and /ws for WebSocket.
	// +optional
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^/[A-Za-z0-9._~/-]+$`
	Path string `json:"path,omitempty"`
}

// CORS names the web origins that may call the server from a browser.
type CORS struct {
	// allowedOrigins are exact origins, for example https://app.example.com.
	// A request whose Origin header is neither here nor that of publicURL is
	// refused with 403; a request without the header passes.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	// +kubebuilder:validation:items:Pattern=`^https?://[A-Za-z0-9.\[\]:_-]+$`
	AllowedOrigins []string `json:"allowedOrigins,omitempty"`
}

// ConflictPolicy says which of two entries of one name is served.
//
// +kubebuilder:validation:Enum=Oldest;Newest;HideAll
type ConflictPolicy string

// Which of two entries of one name is served.
const (
	// ConflictOldest: the one created first wins, then the first by name.
	ConflictOldest ConflictPolicy = "Oldest"
	// ConflictNewest: the one created last wins. Whoever may create a tool
	// can then replace another's.
	ConflictNewest ConflictPolicy = "Newest"
	// ConflictHideAll: none is served.
	ConflictHideAll ConflictPolicy = "HideAll"
)

// ToolsPolicy says which tools are served.
//
// +kubebuilder:validation:MinProperties=1
type ToolsPolicy struct {
	// max is how many tools of upstreams are served, in the order of
	// upstreams and then of the upstream. Defaults to 100. Tools declared as
	// MCPTools are never cut. status.toolsCut names what is cut.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	Max *int32 `json:"max,omitempty"`

	// include keeps only tools whose name matches one of these globs
	// ('*' any run of characters, '?' one).
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=128
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9_.*?-]+$`
	Include []string `json:"include,omitempty"`

	// exclude drops tools whose name matches one of these globs.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=128
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9_.*?-]+$`
	Exclude []string `json:"exclude,omitempty"`

	// filter is CEL over tool (name, title, description, annotations,
	// metadata) that gives true for what is served. A tool for which it
	// cannot be evaluated is hidden.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Filter string `json:"filter,omitempty"`

	// overrides change tools of upstreams, before include, exclude and filter
	// are asked.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=128
	Overrides []ToolOverride `json:"overrides,omitempty"`

	// conflictPolicy says which of two tools of one name is served, and
	// likewise of two resources of one URI, two templates of one text and two
	// prompts of one name. Defaults to Oldest, which is the first among
	// upstreams.
	// +optional
	ConflictPolicy ConflictPolicy `json:"conflictPolicy,omitempty"`

	// retrieve adds the tool mcp_retrieve, by which clients that know only tools
	// list and read the resources that they may see. Defaults to false.
	// +optional
	Retrieve *bool `json:"retrieve,omitempty"`
}

// Sessions bounds the sessions of clients.
//
// +kubebuilder:validation:MinProperties=1
type Sessions struct {
	// max is how many sessions one replica holds. At the limit the session
	// that was idle longest makes room for a new one if it was so for a
	// minute; else the client is told to come back (HTTP 429). Defaults to
	// 1000.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	Max *int32 `json:"max,omitempty"`

	// idleSeconds after which a session ends that has no open stream and no
	// running request. Its client starts over. Defaults to 1800.
	// +optional
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=604800
	IdleSeconds *int32 `json:"idleSeconds,omitempty"`
}

// Limits of what callers may use of one replica. Nothing is counted over
// replicas: with three of them a caller has up to three times as much.
//
// +kubebuilder:validation:XValidation:rule="!has(self.burst) || has(self.requestsPerSecond)",message="burst needs requestsPerSecond"
// +kubebuilder:validation:MinProperties=1
type Limits struct {
	// requestsPerSecond per replica. Absent is no limit.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	RequestsPerSecond *int32 `json:"requestsPerSecond,omitempty"`

	// burst above requestsPerSecond. Defaults to twice requestsPerSecond.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	Burst *int32 `json:"burst,omitempty"`

	// concurrency is how many calls run at once per replica. Defaults to 64.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	Concurrency *int32 `json:"concurrency,omitempty"`

	// streams is how many long streams are open at once per replica.
	// Defaults to 1024.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	Streams *int32 `json:"streams,omitempty"`

	// callTimeoutSeconds bounds one call. Defaults to 60.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	CallTimeoutSeconds *int32 `json:"callTimeoutSeconds,omitempty"`

	// maxMessageBytes bounds a request and an answer, each hop. Defaults to
	// 10485760 (10 MiB).
	// +optional
	// +kubebuilder:validation:Minimum=1024
	// +kubebuilder:validation:Maximum=104857600
	MaxMessageBytes *int64 `json:"maxMessageBytes,omitempty"`

	// budget of each caller for all calls.
	// +optional
	Budget *Budget `json:"budget,omitempty"`

	// rules limit calls of some tools by some callers. A call keeps to every
	// rule that is about it.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Rules []LimitRule `json:"rules,omitempty"` //nolint:kubeapilinter // One of two fields is needed, as a rule says.
}
