// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package serverconfig is the contract from the operator down to a pod of the
// shared server: the catalog file. One Go struct, written by the operator and
// read by the server, versioned and additive: a reader ignores fields it does
// not know, and what must not be ignored (an access rule, say) is named in
// Config.Requires, so that an older server keeps its catalog and says so.
package serverconfig

import "encoding/json"

// Version of the file's shape. It grows only when an old reader could not
// even tell what it lacks.
const Version = 1

// Features that a catalog may require. A server that lacks one keeps its old
// catalog: it must not serve without a rule that it does not understand.
const (
	// FeatureAuth: Config.Auth.
	FeatureAuth = "auth"
	// FeatureAccess: Config.Access.
	FeatureAccess = "access"
	// FeatureLimitRules: Limits.Budget and Limits.Rules.
	FeatureLimitRules = "limits.rules"
	// FeatureTransports: transports beside streamable HTTP. A server that does
	// not know them would not offer what status says.
	FeatureTransports = "transports"
	// FeatureContract: Config.Contract with Hide.
	FeatureContract = "contract"
)

// Features are the values of Config.Requires that this build understands.
var Features = []string{
	FeatureUpstreams, FeatureStdio, FeaturePerClient, FeatureOpenAPI, FeatureAuth, FeatureAccess, FeatureLimitRules, FeatureContract,
	FeatureUpstreamsWhen, FeatureUpstreamHandler, FeatureRetrieve, FeatureTransports, FeatureConnectionAuth, FeatureTLS,
}

// Config is all that one shared server serves. Its canonical JSON (Encode) is
// what the catalog digest is taken of; nothing in it may depend on time, map
// order or metadata.generation.
type Config struct {
	Version  int      `json:"version"`
	Requires []string `json:"requires,omitempty"`

	Server ServerInfo `json:"server"`
	// Transports that the server offers; each has its own path.
	Transports []Transport `json:"transports"`
	// AllowedOrigins are exact values of the Origin header that may pass,
	// the origin of publicURL included. A request without Origin passes.
	AllowedOrigins []string `json:"allowedOrigins,omitempty"`
	// CacheSeconds is the ttl of lists and discover.
	CacheSeconds int32  `json:"cacheSeconds"`
	Limits       Limits `json:"limits"`
	// Sessions of legacy clients; the server's defaults when nil.
	Sessions *Sessions `json:"sessions,omitempty"`
	// Probe is whom the server lets read its report.
	Probe ProbeTrust `json:"probe"`
	// Auth says who may call; nil is everybody. Requires FeatureAuth.
	Auth *Auth `json:"auth,omitempty"`
	// Access says who sees and calls what; nil is everybody everything.
	// Requires FeatureAccess.
	Access *Access `json:"access,omitempty"`
	// TLS of the port that clients call; nil is plain HTTP. Requires FeatureTLS.
	TLS *ServingTLS `json:"tls,omitempty"`
	// Extensions that are declared in the capabilities.
	Extensions []Extension `json:"extensions,omitempty"`

	Tools []Tool `json:"tools,omitempty"`
	// Resources have a URI, Templates a URI template each.
	Resources []Resource `json:"resources,omitempty"`
	Templates []Resource `json:"templates,omitempty"`
	Prompts   []Prompt   `json:"prompts,omitempty"`

	// Upstreams whose tools are served beside Tools, and what is done with
	// them. Policy is set when there are upstreams.
	Upstreams []Upstream   `json:"upstreams,omitempty"`
	Policy    *ToolsPolicy `json:"policy,omitempty"`
	// Retrieve: the server serves the tool RetrieveTool as well.
	Retrieve bool `json:"retrieve,omitempty"`
	// Contract that tools of upstreams are held to; nil is none. With Hide it
	// requires FeatureContract. Declared tools were held to it before.
	Contract *Contract `json:"contract,omitempty"`
	// CacheScope of lists. The server sets it from what upstreams say.
	CacheScope CacheScope `json:"cacheScope,omitempty"`
	// Readers are the upstreams that are asked, in this order, for resources
	// that nothing else serves. The server sets them.
	Readers []UpstreamResource `json:"-"`
}

// ServerInfo is what discover and initialize say of the server.
type ServerInfo struct {
	Name         string `json:"name"`
	Title        string `json:"title,omitempty"`
	Version      string `json:"version"`
	Instructions string `json:"instructions,omitempty"`
}

// TransportType names a transport as the API does.
type TransportType string

// Transports. Any but streamable HTTP requires FeatureTransports.
const (
	// TransportStreamableHTTP is streamable HTTP, both eras on one URL.
	TransportStreamableHTTP TransportType = "StreamableHTTP"
	// TransportSSE is HTTP with server-sent events, of the legacy era alone.
	TransportSSE TransportType = "SSE"
	// TransportWebSocket is one message per text frame, both eras.
	TransportWebSocket TransportType = "WebSocket"
)

// Transport is one way in.
type Transport struct {
	Type TransportType `json:"type"`
	Path string        `json:"path"`
}

// Limits bound what a caller may use of one replica.
type Limits struct {
	// RequestsPerSecond per replica; 0 is no limit. Burst is at least 1 with it.
	RequestsPerSecond int32 `json:"requestsPerSecond,omitempty"`
	Burst             int32 `json:"burst,omitempty"`
	// Concurrency of calls per replica.
	Concurrency int32 `json:"concurrency"`
	// Streams open at once per replica (listen).
	Streams int32 `json:"streams"`
	// CallTimeoutSeconds bounds one call.
	CallTimeoutSeconds int32 `json:"callTimeoutSeconds"`
	// MaxMessageBytes bounds every hop and frame.
	MaxMessageBytes int64 `json:"maxMessageBytes"`
	// Budget of each caller for all calls, and Rules for some. Both require
	// FeatureLimitRules.
	Budget *Budget     `json:"budget,omitempty"`
	Rules  []LimitRule `json:"rules,omitempty"`
}

// Sessions bound the sessions of legacy clients; 0 is the server's default.
type Sessions struct {
	// Max sessions of one replica.
	Max int32 `json:"max,omitempty"`
	// IdleSeconds after which a session ends in which nothing is open.
	IdleSeconds int32 `json:"idleSeconds,omitempty"`
}

// ProbeTrust is what the server needs to recognise the operator's probe.
type ProbeTrust struct {
	// Audience that the token must name: NAMESPACE/NAME of the server.
	Audience string `json:"audience,omitempty"`
	// Keys are Ed25519 public keys, standard base64. More than one while a
	// key is being replaced.
	Keys []string `json:"keys,omitempty"`
}

// Tool is one tool.
type Tool struct {
	// Name on the wire.
	Name string `json:"name"`
	// Definition is the tool's whole object as it is listed, name included.
	// It is never decoded into a closed type on its way to the wire.
	Definition json.RawMessage `json:"definition"`
	// Source says where it was declared, for example mcptool/NAME.
	Source string `json:"source"`
	// Metadata classifies the tool and never reaches the wire.
	Metadata map[string]string `json:"metadata,omitempty"`

	// At most one handler; none answers "no executor configured".
	HTTP       *HTTP         `json:"http,omitempty"`
	Expression *Result       `json:"expression,omitempty"`
	Upstream   *UpstreamTool `json:"upstream,omitempty"`
	// When is that of its upstream. The server sets it.
	When string `json:"-"`
}

// HTTP calls an HTTP endpoint.
type HTTP struct {
	Connection
	Method string `json:"method"`
	// Path gives the values of URL placeholders that are not simply the
	// argument of the same name.
	Path []Value `json:"path,omitempty"`
	// Query replaces the default query when QuerySet.
	Query    []Value `json:"query,omitempty"`
	QuerySet bool    `json:"querySet,omitempty"`
	// Body replaces the default body.
	Body           *Body   `json:"body,omitempty"`
	TimeoutSeconds int32   `json:"timeoutSeconds"`
	Retries        int32   `json:"retries,omitempty"`
	Result         *Result `json:"result,omitempty"`
}

// Body of a request: an expression over args and principal.
type Body struct {
	Expression string `json:"expression"`
	// MediaType is application/json (default), application/x-www-form-urlencoded
	// (the expression gives a map) or any other (it gives a string or bytes).
	MediaType string `json:"mediaType,omitempty"`
}

// Connection is how something is dialled.
type Connection struct {
	// URL whose path may hold {placeholders}.
	URL     string  `json:"url"`
	Headers []Value `json:"headers,omitempty"`
	TLS     *TLS    `json:"tls,omitempty"`
	// Auth gives the header Authorization. Requires FeatureConnectionAuth.
	Auth *OutboundAuth `json:"auth,omitempty"`
}

// TLS of a connection. The files are paths below the credentials folder.
type TLS struct {
	CAFile string `json:"caFile,omitempty"`
	// System: CAFile is added to the system's authorities in place of
	// replacing them.
	System     bool   `json:"system,omitempty"`
	ServerName string `json:"serverName,omitempty"`
	CertFile   string `json:"certFile,omitempty"`
	KeyFile    string `json:"keyFile,omitempty"`
}

// Value is a named value from one of three places.
type Value struct {
	Name string `json:"name"`
	// Prefix goes before the value, for example "Bearer ".
	Prefix string `json:"prefix,omitempty"`
	// Value is literal; Expression is CEL over args and principal; File is a
	// path below the credentials folder. One of them.
	Value      *string `json:"value,omitempty"`
	Expression string  `json:"expression,omitempty"`
	File       string  `json:"file,omitempty"`
}

// Result makes a tool's answer. At most one of Structured, Text and Content.
type Result struct {
	Structured string    `json:"structured,omitempty"`
	Text       string    `json:"text,omitempty"`
	Content    []Content `json:"content,omitempty"`
	IsError    string    `json:"isError,omitempty"`
}

// ContentType is the type of a content block.
type ContentType string

// Content types.
const (
	ContentText             ContentType = "Text"
	ContentImage            ContentType = "Image"
	ContentAudio            ContentType = "Audio"
	ContentEmbeddedResource ContentType = "EmbeddedResource"
	ContentResourceLink     ContentType = "ResourceLink"
)

// Content is one block of an answer. Expression gives a string or bytes:
// Text takes a string; Image and Audio take bytes or base64 text;
// EmbeddedResource takes a string (text) or bytes (blob); ResourceLink takes
// the link's name.
type Content struct {
	Type       ContentType `json:"type"`
	MIMEType   string      `json:"mimeType,omitempty"`
	URI        string      `json:"uri,omitempty"`
	Expression string      `json:"expression,omitempty"`
}
