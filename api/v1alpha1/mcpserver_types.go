// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MCPServerType says what runs behind an MCPServer.
//
// +kubebuilder:validation:Enum=Tools;Stdio;Container;External
type MCPServerType string

// What may run behind an MCPServer.
const (
	// TypeTools: the shared server image serves the MCPTools that name it.
	TypeTools MCPServerType = "Tools"
	// TypeStdio: a program in an image of the user's that speaks MCP over
	// stdin and stdout, behind the shared server.
	TypeStdio MCPServerType = "Stdio"
	// TypeContainer: an image of the user's that speaks MCP over HTTP.
	TypeContainer MCPServerType = "Container"
	// TypeExternal: a server elsewhere. It is probed and reported.
	TypeExternal MCPServerType = "External"
)

// MCPServer is an MCP server: what it serves, how it runs, and whether it
// was proved to work.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=mcps,categories=mcp
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Tools",type=integer,JSONPath=`.status.toolCount`,description="Tools proved on the wire; blank is unknown"
// +kubebuilder:printcolumn:name="Replicas",type=integer,JSONPath=`.status.replicas`
// +kubebuilder:printcolumn:name="Healthy",type=integer,JSONPath=`.status.healthyReplicas`,description="Replicas that were proved"
// +kubebuilder:printcolumn:name="URL",type=string,JSONPath=`.status.url`
// +kubebuilder:printcolumn:name="Protocol",type=string,priority=1,JSONPath=`.status.server.protocolVersion`
// +kubebuilder:printcolumn:name="Transports",type=string,priority=1,JSONPath=`.status.transports`
// +kubebuilder:printcolumn:name="Server",type=string,priority=1,JSONPath=`.status.server.name`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 50 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name begins with a letter, holds only a-z, 0-9 and '-', and has at most 50 characters: it names the Service NAME-mcp"
type MCPServer struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is what is wanted.
	// +required
	Spec MCPServerSpec `json:"spec,omitempty,omitzero"`

	// status is what was observed.
	// +optional
	// +default={"observedGeneration":-1}
	Status MCPServerStatus `json:"status,omitempty,omitzero"`
}

// MCPServerList is a list of MCPServers.
//
// +kubebuilder:object:root=true
type MCPServerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MCPServer `json:"items"`
}

// MCPServerSpec is what is wanted of an MCP server.
//
// +kubebuilder:validation:XValidation:rule="(self.type == 'Container') == has(self.container)",message="container is for type Container, and needed there"
// +kubebuilder:validation:XValidation:rule="(self.type == 'Stdio') == has(self.stdio)",message="stdio is for type Stdio, and needed there"
// +kubebuilder:validation:XValidation:rule="(self.type == 'External') == has(self.external)",message="external is for type External, and needed there"
// +kubebuilder:validation:XValidation:rule="self.type in ['Tools', 'Stdio'] || !(has(self.tools) || has(self.limits) || has(self.cacheSeconds) || has(self.cors) || has(self.publicURL) || has(self.serverInfo))",message="tools, limits, cacheSeconds, cors, publicURL and serverInfo need type Tools or Stdio: Espalier does not stand in front of a Container or an External server"
// +kubebuilder:validation:XValidation:rule="self.type in ['Tools', 'Stdio'] || !(has(self.auth) || has(self.access) || has(self.accessDefault) || has(self.extensions) || has(self.tls))",message="auth, access, accessDefault, extensions and tls need type Tools or Stdio: a Container or an External server decides by itself who may call it, and how"
// +kubebuilder:validation:XValidation:rule="self.type in ['Tools', 'Stdio'] || !has(self.sessions)",message="sessions needs type Tools or Stdio: a Container or an External server has its sessions to itself"
// +kubebuilder:validation:XValidation:rule="self.type in ['Tools', 'Stdio'] || !has(self.transports)",message="transports is for types Tools and Stdio: a Container has container.path, an External server has external.url"
// +kubebuilder:validation:XValidation:rule="!has(self.transports) || self.transports.all(a, self.transports.exists_one(b, (has(a.path) ? a.path : a.type == 'SSE' ? '/sse' : a.type == 'WebSocket' ? '/ws' : '/mcp') == (has(b.path) ? b.path : b.type == 'SSE' ? '/sse' : b.type == 'WebSocket' ? '/ws' : '/mcp')))",message="two transports cannot share a path (the defaults are /mcp, /sse and /ws)"
// +kubebuilder:validation:XValidation:rule="self.type != 'External' || !(has(self.workload) || has(self.networkPolicy) || has(self.suspend) || has(self.startupTimeoutSeconds) || has(self.terminationGracePeriodSeconds))",message="workload, networkPolicy, suspend, startupTimeoutSeconds and terminationGracePeriodSeconds need pods, and type External has none"
// +kubebuilder:validation:XValidation:rule="self.type != 'External' || !has(self.probe) || !(has(self.probe.gateReadiness) || has(self.probe.via))",message="probe.gateReadiness and probe.via need pods, and type External has none"
// +kubebuilder:validation:XValidation:rule="!has(self.external) || !has(self.external.auth) || !has(self.external.headers) || self.external.headers.all(h, h.name.lowerAscii() != 'authorization')",message="external.auth sets the header Authorization: leave it out of external.headers"
// +kubebuilder:validation:XValidation:rule="!has(self.upstreams) || has(self.auth) && (has(self.auth.jwt) || has(self.auth.serviceAccounts)) || self.upstreams.all(u, (!has(u.auth) || !has(u.auth.oauthTokenExchange)) && (!has(u.openAPI) || !has(u.openAPI.auth) || !has(u.openAPI.auth.oauthTokenExchange)))",message="oauthTokenExchange exchanges the callers' own tokens: set auth.jwt or auth.serviceAccounts"
// +kubebuilder:validation:XValidation:rule="!has(self.external) || !has(self.external.headers) || self.external.headers.all(h, !has(h.expression))",message="external.headers cannot use expression, which needs a call: use value, secretKeyRef or configMapKeyRef"
// +kubebuilder:validation:XValidation:rule="self.type in ['Tools', 'Stdio'] || !has(self.contract) || !(has(self.contract.onDrift) && self.contract.onDrift == 'Hide')",message="contract.onDrift Hide needs type Tools or Stdio: Espalier does not stand in front of a Container or an External server and can withhold nothing of it"
// +kubebuilder:validation:XValidation:rule="self.type in ['Tools', 'Stdio'] || !has(self.contract) || !has(self.contract.tools) || self.contract.tools.all(t, !has(t.upstreamDigest))",message="contract.tools[].upstreamDigest needs type Tools or Stdio: only those have upstreams"
// +kubebuilder:validation:XValidation:rule="self.type in ['Tools', 'Stdio'] || !has(self.upstreams)",message="upstreams needs type Tools or Stdio: Espalier does not stand in front of a Container or an External server"
// +kubebuilder:validation:XValidation:rule="self.type in ['Tools', 'Stdio'] || !has(self.networkPolicy) || !has(self.networkPolicy.egress) || !has(self.networkPolicy.egress.upstreams)",message="networkPolicy.egress.upstreams needs type Tools or Stdio: nobody knows what the image of a Container connects to. Use namespaces and cidrs"
type MCPServerSpec struct {
	// type says what runs behind the server. The member of that name is set,
	// and no other.
	// +optional
	// +default="Tools"
	Type MCPServerType `json:"type,omitempty"`

	// stdio is a program that speaks MCP over stdin and stdout.
	// +optional
	Stdio *StdioSource `json:"stdio,omitempty"`

	// container is an image that speaks MCP over streamable HTTP, or over HTTP
	// with SSE.
	// +optional
	Container *ContainerSource `json:"container,omitempty"`

	// external is a server that runs elsewhere.
	// +optional
	External *Connection `json:"external,omitempty"`

	// serverInfo is what the server says of itself.
	// +optional
	ServerInfo *ServerInfo `json:"serverInfo,omitempty"`

	// transports that clients may use, all on the Service's one port. Naming
	// one replaces the default, which is StreamableHTTP at /mcp.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	Transports []Transport `json:"transports,omitempty"`

	// cors names the web origins that may call the server from a browser.
	// +optional
	CORS *CORS `json:"cors,omitempty"`

	// publicURL is the MCP endpoint as clients outside the cluster write it. A
	// browser's Origin is checked against it, and auth.jwt names it as the
	// protected resource. Defaults to the Service's URL there.
	// +optional
	// +kubebuilder:validation:MinLength=8
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^https?://[A-Za-z0-9.\[\]:_-]+(/[^?#\s]*)?$`
	PublicURL string `json:"publicURL,omitempty"`

	// tools says which tools are served, and how conflicts end.
	// +optional
	Tools *ToolsPolicy `json:"tools,omitempty"`

	// upstreams are other MCP servers whose tools are served beside the
	// MCPTools that name this server. A declared tool wins over one of an
	// upstream; among upstreams tools.conflictPolicy decides.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Upstreams []Upstream `json:"upstreams,omitempty"`

	// limits of what callers may use.
	// +optional
	Limits *Limits `json:"limits,omitempty"`

	// sessions of clients that speak a revision of the protocol before
	// 2026-07-28. A session is held by one replica; any replica passes its
	// requests on to that one.
	// +optional
	Sessions *Sessions `json:"sessions,omitempty"`

	// auth says who may call. Absent is everybody.
	// +optional
	Auth *Auth `json:"auth,omitempty"` //nolint:kubeapilinter // Its rule says in words that it cannot be empty.

	// access says which entries a caller sees and calls. All rules that match
	// an entry must be true.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Access []AccessRule `json:"access,omitempty"`

	// accessDefault says what happens to an entry that no rule of access
	// matches. Defaults to Allow.
	// +optional
	AccessDefault AccessDefault `json:"accessDefault,omitempty"`

	// extensions of the protocol that the server declares in its
	// capabilities: an object for each name, such as
	// com.example/notes: {version: "1"}. What they mean is between the tools
	// and their clients.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	Extensions *JSON `json:"extensions,omitempty"`

	// contract is what clients were promised: digests of tools and of the
	// instructions. The condition ContractMet tells whether it is kept.
	// +optional
	Contract *Contract `json:"contract,omitempty"` //nolint:kubeapilinter // Its rule says in words that it cannot be empty.

	// cacheSeconds is how long clients may keep lists. Defaults to 5.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3600
	CacheSeconds *int32 `json:"cacheSeconds,omitempty"`

	// probe is how the operator proves that the server works.
	// +optional
	Probe *Probe `json:"probe,omitempty"`

	// replicas is the number of pods. HorizontalPodAutoscaler and KEDA target
	// the MCPServer, which has the scale subresource.
	// +optional
	// +default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Replicas *int32 `json:"replicas,omitempty"`

	// suspend stops all pods and keeps replicas as it is.
	// +optional
	Suspend *bool `json:"suspend,omitempty"`

	// startupTimeoutSeconds is how long a pod may take until it answers.
	// Defaults to 120.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	StartupTimeoutSeconds *int32 `json:"startupTimeoutSeconds,omitempty"`

	// terminationGracePeriodSeconds is how long a pod may take to finish its
	// calls when it ends. Defaults to 60.
	// +optional
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=3600
	TerminationGracePeriodSeconds *int32 `json:"terminationGracePeriodSeconds,omitempty"`

	// tls makes the Service's port speak TLS, and nothing else. status.url is
	// https then.
	// +optional
	TLS *ServerTLS `json:"tls,omitempty"`

	// networkPolicy limits who may connect to the pods, and where they may
	// connect to. Absent, there is no NetworkPolicy of Espalier's.
	// +optional
	NetworkPolicy *NetworkPolicy `json:"networkPolicy,omitempty"`

	// workload is how the pods run.
	// +optional
	Workload *Workload `json:"workload,omitempty"`
}

// ContainerSource is an image that speaks MCP over streamable HTTP, or over
// HTTP with SSE.
type ContainerSource struct {
	// image to run.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^[^\s]+$`
	Image string `json:"image,omitempty"`

	// port that the container listens on. Defaults to 8080. The Service's
	// port is 8080 whatever this is.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port *int32 `json:"port,omitempty"`

	// path of the MCP endpoint. Defaults to /mcp.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^/[^?#\s]*$`
	Path string `json:"path,omitempty"`

	// command replaces the image's entrypoint.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=0
	// +kubebuilder:validation:items:MaxLength=4096
	Command []string `json:"command,omitempty"`

	// args replace the image's arguments.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MinLength=0
	// +kubebuilder:validation:items:MaxLength=4096
	Args []string `json:"args,omitempty"`
}
