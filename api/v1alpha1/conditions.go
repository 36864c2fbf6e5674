// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Condition types of an MCPServer. All are present from the first pass on
// and Unknown until known; Reconciling and Stalled (kstatus) only when True.
const (
	// ConditionReady: a client can use this server now.
	//
	// True: Proved, ScaledToZero, Suspended, AuthRequired.
	// False: the reason of the condition that stands in the way, or
	// StartupTimedOut, ChildExited, or UpstreamsUnavailable where all entries are gone with
	// their upstreams.
	// Unknown: Stale, ProbeBlocked.
	ConditionReady = "Ready"

	// ConditionAccepted: the spec is sound.
	//
	// True: Accepted; on an MCPTool also NoExecutor. False: InvalidFilter,
	// InvalidAuth, InvalidAccess, InvalidLimits, InvalidExtensions,
	// InvalidUpstream, InvalidContract, InvalidPodTemplate,
	// PodSecurityViolation; on an MCPTool, MCPResource or MCPPrompt
	// InvalidInputSchema, InvalidOutputSchema, InvalidExpression, InvalidMeta,
	// InvalidURL, InvalidURI, InvalidAuth, Conflict, ServerNotFound, NoServers,
	// ServerNotFronted, Suspended, Filtered, Drifted.
	ConditionAccepted = "Accepted"

	// ConditionResolvedRefs: the Secrets, ConfigMaps and MCPServers that are named exist.
	//
	// True: ResolvedRefs. False: SecretNotFound, SecretKeyNotFound,
	// ConfigMapNotFound, ConfigMapKeyNotFound, ServerNotFound,
	// ClusterKeysUnavailable, Forbidden; on an MCPTool also UpstreamNotFound,
	// UpstreamCycle, UpstreamAuthRequired, InvalidAuth. Unknown: Pending.
	ConditionResolvedRefs = "ResolvedRefs"

	// ConditionAvailable: the pods run.
	//
	// True: Available, NotApplicable, ScaledToZero, Suspended. False: Starting,
	// RollingOut, ImagePullFailed, ContainerConfigInvalid, CrashLoopBackOff,
	// ContainerExited, Unschedulable, PodsNotCreated, NotReady, ForeignObject,
	// Forbidden, ApplyFailed.
	ConditionAvailable = "Available"

	// ConditionHealthy: the replicas that take traffic answered as MCP
	// servers within the threshold.
	//
	// True: Proved. False: the outcome of the probe. Unknown: Pending,
	// ScaledToZero, Suspended, AuthRequired, Stale, ProbeBlocked.
	ConditionHealthy = "Healthy"

	// ConditionSynced: they report and list the wanted catalog.
	//
	// True: Synced, NotApplicable, ScaledToZero, Suspended. False:
	// CatalogPending, RolloutForCredentials, CatalogNotLoaded,
	// CatalogTooLarge, CatalogUnsupported, ListMismatch. Unknown: Pending.
	ConditionSynced = "Synced"

	// ConditionUpstreamsReady: the upstreams answer.
	//
	// True: UpstreamsReady, NotApplicable. False: UpstreamsUnavailable,
	// ChildExited, InvalidDocument, ServerNotFound, UpstreamCycle,
	// UpstreamAuthRequired, InvalidAuth; the message names the upstreams.
	// Unknown: Pending, ScaledToZero, Suspended.
	ConditionUpstreamsReady = "UpstreamsReady"

	// ConditionContractMet: the tools and instructions that the replicas give
	// are those of the contract.
	//
	// True: ContractMet, NotApplicable. False: Drifted. Unknown: Pending,
	// ScaledToZero, Suspended.
	ConditionContractMet = "ContractMet"

	// ConditionServed, of an MCPTool, MCPResource or MCPPrompt: clients of the
	// server are answered with this version by each replica that takes traffic.
	//
	// True: Served. False: NotAccepted, PartlyServed, ServerNotFound, NoServers,
	// and, of the server's catalog, CatalogPending, RolloutForCredentials,
	// CatalogNotLoaded, CatalogTooLarge, CatalogUnsupported, ListMismatch.
	// Unknown: Pending, ScaledToZero, Suspended.
	ConditionServed = "Served"

	// ConditionReconciling (kstatus): the operator is still at it.
	ConditionReconciling = "Reconciling"
	// ConditionStalled (kstatus): it will not succeed without a change.
	ConditionStalled = "Stalled"
)

// Reasons of conditions.
const (
	// ReasonPending: not known yet.
	ReasonPending = "Pending"
	// ReasonNotApplicable: a server of this type has no such thing.
	ReasonNotApplicable = "NotApplicable"
	// ReasonScaledToZero: replicas is 0.
	ReasonScaledToZero = "ScaledToZero"
	// ReasonSuspended: suspend is true.
	ReasonSuspended = "Suspended"
	// ReasonForbidden: the operator lacks a permission; the message names verb and resource.
	ReasonForbidden = "Forbidden"

	// ReasonAccepted: the spec is sound.
	ReasonAccepted = "Accepted"
	// ReasonInvalidFilter: tools.filter does not compile.
	ReasonInvalidFilter = "InvalidFilter"
	// ReasonInvalidAuth: auth.jwt.jwks holds no usable public key; of an
	// MCPTool or MCPResource, or of an upstream, it exchanges tokens of callers
	// who have none.
	ReasonInvalidAuth = "InvalidAuth"
	// ReasonInvalidAccess: an expression of access does not compile; what its rule matches is hidden.
	ReasonInvalidAccess = "InvalidAccess"
	// ReasonInvalidLimits: an expression of limits.rules does not compile; its rule limits every caller.
	ReasonInvalidLimits = "InvalidLimits"
	// ReasonInvalidExtensions: an extension has no proper name or is no object; it is not declared.
	ReasonInvalidExtensions = "InvalidExtensions"
	// ReasonInvalidContract: a pinned digest is not that of its fields.
	ReasonInvalidContract = "InvalidContract"
	// ReasonContractMet: all is as it was promised.
	ReasonContractMet = "ContractMet"
	// ReasonDrifted: something is not as it was promised; the message names
	// tools, parts and digests. Of a registration: it is not what a contract
	// with onDrift Hide promises.
	ReasonDrifted = "Drifted"
	// ReasonInvalidPodTemplate: workload.podTemplate cannot be merged; the message has the path.
	ReasonInvalidPodTemplate = "InvalidPodTemplate"
	// ReasonPodSecurityViolation: the pods break the Pod Security level of --pod-security.
	ReasonPodSecurityViolation = "PodSecurityViolation"
	// ReasonCatalogTooLarge: the catalog does not fit; the pods keep the old one.
	ReasonCatalogTooLarge = "CatalogTooLarge"

	// ReasonResolvedRefs: what is named exists.
	ReasonResolvedRefs = "ResolvedRefs"
	// ReasonSecretNotFound: a Secret that is named does not exist.
	ReasonSecretNotFound = "SecretNotFound"
	// ReasonSecretKeyNotFound: a Secret lacks a key that is named.
	ReasonSecretKeyNotFound = "SecretKeyNotFound"
	// ReasonConfigMapNotFound: a ConfigMap that is named does not exist.
	ReasonConfigMapNotFound = "ConfigMapNotFound"
	// ReasonConfigMapKeyNotFound: a ConfigMap lacks a key that is named.
	ReasonConfigMapKeyNotFound = "ConfigMapKeyNotFound"
	// ReasonClusterKeysUnavailable: the API server does not publish the keys of service account tokens.
	ReasonClusterKeysUnavailable = "ClusterKeysUnavailable"

	// ReasonAvailable: the pods run.
	ReasonAvailable = "Available"
	// ReasonStarting: pods start, within startupTimeoutSeconds.
	ReasonStarting = "Starting"
	// ReasonRollingOut: new pods replace old ones.
	ReasonRollingOut = "RollingOut"
	// ReasonImagePullFailed: an image cannot be pulled.
	ReasonImagePullFailed = "ImagePullFailed"
	// ReasonContainerConfigInvalid: a container cannot be created as it is configured.
	ReasonContainerConfigInvalid = "ContainerConfigInvalid"
	// ReasonCrashLoopBackOff: a container exits again and again.
	ReasonCrashLoopBackOff = "CrashLoopBackOff"
	// ReasonContainerExited: a container exited.
	ReasonContainerExited = "ContainerExited"
	// ReasonUnschedulable: no node takes the pod.
	ReasonUnschedulable = "Unschedulable"
	// ReasonPodsNotCreated: the pods were refused, by a quota for example.
	ReasonPodsNotCreated = "PodsNotCreated"
	// ReasonStartupTimedOut: startupTimeoutSeconds passed without one success.
	ReasonStartupTimedOut = "StartupTimedOut"
	// ReasonForeignObject: an object of a child's name is not Espalier's and was left as it is.
	ReasonForeignObject = "ForeignObject"
	// ReasonApplyFailed: the API server refused a child.
	ReasonApplyFailed = "ApplyFailed"
	// ReasonNotReady: the pods run but are not Ready for Kubernetes.
	ReasonNotReady = "NotReady"

	// ReasonProved: it answered as an MCP server.
	ReasonProved = "Proved"
	// ReasonAuthRequired: it wants a credential and none was given, yet it evidently speaks MCP.
	ReasonAuthRequired = "AuthRequired"
	// ReasonStale: the last proof is too old to tell.
	ReasonStale = "Stale"
	// ReasonProbeBlocked: no pod could ever be connected although the kubelet says ready.
	ReasonProbeBlocked = "ProbeBlocked"

	// ReasonSynced: the wanted catalog is served.
	ReasonSynced = "Synced"
	// ReasonCatalogPending: a catalog change is on its way.
	ReasonCatalogPending = "CatalogPending"
	// ReasonRolloutForCredentials: pods are replaced to mount a Secret or ConfigMap named for the first time.
	ReasonRolloutForCredentials = "RolloutForCredentials"
	// ReasonCatalogNotLoaded: a catalog change was not loaded within 30 seconds.
	ReasonCatalogNotLoaded = "CatalogNotLoaded"
	// ReasonCatalogUnsupported: the server image lacks a feature that the catalog requires.
	ReasonCatalogUnsupported = "CatalogUnsupported"
	// ReasonListMismatch: a replica lists other tools than its catalog has.
	ReasonListMismatch = "ListMismatch"

	// ReasonNoExecutor: the tool is listed; a call answers "no executor configured".
	ReasonNoExecutor = "NoExecutor"
	// ReasonInvalidInputSchema: inputSchema does not compile.
	ReasonInvalidInputSchema = "InvalidInputSchema"
	// ReasonInvalidOutputSchema: outputSchema does not compile.
	ReasonInvalidOutputSchema = "InvalidOutputSchema"
	// ReasonInvalidExpression: an expression does not compile.
	ReasonInvalidExpression = "InvalidExpression"
	// ReasonInvalidMeta: meta is not an object, or is larger than 64 KiB.
	ReasonInvalidMeta = "InvalidMeta"
	// ReasonInvalidURL: a URL cannot be used.
	ReasonInvalidURL = "InvalidURL"
	// ReasonInvalidURI: a resource's URI or URI template cannot be used.
	ReasonInvalidURI = "InvalidURI"
	// ReasonConflict: another entry of that name wins.
	ReasonConflict = "Conflict"
	// ReasonServerNotFound: the MCPServer does not exist.
	ReasonServerNotFound = "ServerNotFound"
	// ReasonServerNotFronted: the MCPServer is of a type that serves none of these.
	ReasonServerNotFronted = "ServerNotFronted"
	// ReasonChildExited: the child process of a server of type Stdio does not run, or does not answer.
	ReasonChildExited = "ChildExited"
	// ReasonUpstreamNotFound: the server has no upstream of the name.
	ReasonUpstreamNotFound = "UpstreamNotFound"
	// ReasonInvalidUpstream: what spec.upstreams says of one is not sound.
	ReasonInvalidUpstream = "InvalidUpstream"
	// ReasonUpstreamsReady: all upstreams answer.
	ReasonUpstreamsReady = "UpstreamsReady"
	// ReasonUpstreamsUnavailable: upstreams do not answer; as a reason of Ready: with them all entries are gone.
	ReasonUpstreamsUnavailable = "UpstreamsUnavailable"
	// ReasonInvalidDocument: an OpenAPI document cannot be read; the tools of the
	// one before stay.
	ReasonInvalidDocument = "InvalidDocument"
	// ReasonUpstreamCycle: following serverRef leads back to the server.
	ReasonUpstreamCycle = "UpstreamCycle"
	// ReasonUpstreamAuthRequired: the upstream wants a credential that nobody gave.
	ReasonUpstreamAuthRequired = "UpstreamAuthRequired"
	// ReasonFiltered: include, exclude or filter of the server leave the tool out.
	ReasonFiltered = "Filtered"
	// ReasonNotAccepted: the server did not accept the tool.
	ReasonNotAccepted = "NotAccepted"
	// ReasonServed: this version is served.
	ReasonServed = "Served"
	// ReasonPartlyServed: some servers serve the tool, others do not.
	ReasonPartlyServed = "PartlyServed"
	// ReasonNoServers: no MCPServer matches serverSelector.
	ReasonNoServers = "NoServers"
)

// Types of events' reasons are those of the condition that changed, and:
const (
	// EventPoked: pods were told again to load a catalog.
	EventPoked = "CatalogPoked"
)
