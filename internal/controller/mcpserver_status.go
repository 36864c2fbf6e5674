// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/catalog"
	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/podstate"
	"github.com/espalier-dev/espalier/internal/prober"
	"github.com/espalier-dev/espalier/internal/resources"
)

var serverConditionOrder = []string{
	mcpv1.ConditionReady, mcpv1.ConditionAccepted, mcpv1.ConditionResolvedRefs, mcpv1.ConditionAvailable,
	mcpv1.ConditionHealthy, mcpv1.ConditionSynced, mcpv1.ConditionUpstreamsReady, mcpv1.ConditionContractMet,
	mcpv1.ConditionReconciling, mcpv1.ConditionStalled,
}

// serverStatus computes the status that a pass comes to. It is a function of
// the scope alone: where something is not known (yet), the present value is
// held.
func serverStatus(s *serverScope) mcpv1.MCPServerStatus {
	status := *s.server.Status.DeepCopy()
	status.ObservedGeneration = s.server.Generation
	e := evaluate(s)

	now := metav1.NewTime(s.now)
	set := func(t string, v verdict) { setCondition(&status.Conditions, t, v, s.server.Generation, now) }
	set(mcpv1.ConditionAccepted, e.accepted)
	set(mcpv1.ConditionResolvedRefs, e.resolvedRefs)
	set(mcpv1.ConditionAvailable, e.available)
	set(mcpv1.ConditionHealthy, e.healthy)
	set(mcpv1.ConditionSynced, e.synced)
	set(mcpv1.ConditionUpstreamsReady, e.upstreamsReady)
	set(mcpv1.ConditionContractMet, e.contractMet)
	set(mcpv1.ConditionReady, e.ready)
	setOrRemove(&status.Conditions, mcpv1.ConditionReconciling, e.reconciling, s.server.Generation, now)
	setOrRemove(&status.Conditions, mcpv1.ConditionStalled, e.stalled, s.server.Generation, now)
	sortConditions(status.Conditions, serverConditionOrder)

	setAddress(s, &status)
	setReplicas(s, e, &status)
	setObserved(s, e, &status)
	setUpstreams(s, e, &status)
	return status
}

// setOrRemove keeps kstatus conditions only while they are True.
func setOrRemove(conditions *[]metav1.Condition, t string, v *verdict, generation int64, now metav1.Time) {
	if v == nil {
		meta.RemoveStatusCondition(conditions, t)
		return
	}
	setCondition(conditions, t, *v, generation, now)
}

func setAddress(s *serverScope, status *mcpv1.MCPServerStatus) {
	// The address is known from the spec; it is set with the Service and
	// never withdrawn.
	if !resources.HasPods(s.server) || s.children[childKey{"Service", resources.Name(s.server)}] != nil {
		status.URL = resources.URL(s.server)
	}
	if resources.Fronted(s.server) {
		// Those of others are what was found to work, see setObserved.
		status.Transports = resources.Transports(s.server)
	}
	status.Selector = ""
	if resources.HasPods(s.server) {
		status.Selector = mcpv1.LabelServer + "=" + s.server.Name
	}
	status.ServerImage = ""
	if resources.Fronted(s.server) && s.deployment != nil {
		status.ServerImage = resources.ServerImage(&s.deployment.Spec.Template.Spec)
	}
	status.CatalogDigest = ""
	switch {
	case s.set != nil:
		status.CatalogDigest = s.set.Digest
	case resources.Fronted(s.server):
		// It does not fit; the pods keep the one they have.
		status.CatalogDigest = s.server.Status.CatalogDigest
	}
}

func setReplicas(s *serverScope, e *evaluation, status *mcpv1.MCPServerStatus) {
	if !resources.HasPods(s.server) {
		status.Replicas, status.ReadyReplicas, status.HealthyReplicas, status.SyncedReplicas = nil, nil, nil, nil
		return
	}
	var replicas, ready int32
	for _, pod := range s.pods {
		if pod.DeletionTimestamp == nil && !podstate.Finished(pod) {
			replicas++
		}
		if podstate.TakesTraffic(pod) {
			ready++
		}
	}
	status.Replicas, status.ReadyReplicas = ptr.To(replicas), ptr.To(ready)
	proved := max(e.proved-childrenDown(s), 0)
	// While a verdict on some replica is awaited the numbers are held, but
	// they never exceed the replicas of which nothing else is known.
	if e.pending && status.HealthyReplicas != nil {
		status.HealthyReplicas = ptr.To(max(min(*status.HealthyReplicas, ready-e.refused), proved))
	} else {
		status.HealthyReplicas = ptr.To(proved)
	}
	switch {
	case !resources.Fronted(s.server):
		status.SyncedReplicas = nil
	case e.pending && status.SyncedReplicas != nil:
		status.SyncedReplicas = ptr.To(min(*status.SyncedReplicas, ready))
	default:
		status.SyncedReplicas = ptr.To(e.inSync)
	}
}

// setObserved copies what was proved on the wire. What is not known is absent;
// what is not known yet is held.
func setObserved(s *serverScope, e *evaluation, status *mcpv1.MCPServerStatus) {
	report, took := e.representative, e.took
	switch {
	case e.forgetEntries:
		status.ToolCount, status.ResourceCount, status.PromptCount = nil, nil, nil
		status.Tools, status.ToolsOmitted = nil, nil
	case report != nil:
		status.Server = &mcpv1.ObservedServer{
			Name: report.Server.Name, Version: report.Server.Version,
			ProtocolVersion: report.ProtocolVersion, Capabilities: shownNames(report.Capabilities),
		}
		if !resources.Fronted(s.server) {
			status.Transports = string(report.Transport)
		}
		status.ToolCount = count(report.Tools.Count())
		status.ResourceCount = count(report.ResourceCount)
		status.PromptCount = count(report.PromptCount)
		status.Tools, status.ToolsOmitted = observedTools(s, report)
		if childDown(s, e) && len(report.Tools.Tools) == 0 {
			// What it would list is not known.
			status.ToolCount, status.ResourceCount, status.PromptCount = nil, nil, nil
		}
	}
	if report == nil && e.wantsAuth != nil && status.LastProbe == nil {
		// It evidently speaks MCP: from here on it has started once.
		status.LastProbe = lastProbe(e.wantsAuth.Report, e.wantsAuth.LastProbe)
	}
	if report == nil {
		return
	}
	before, after := s.server.Status.DeepCopy(), status.DeepCopy()
	before.LastProbe, after.LastProbe = nil, nil
	if status.LastProbe == nil || factsChanged(before, after) {
		status.LastProbe = lastProbe(report, took)
	}
}

func lastProbe(report *mcpprobe.Report, at time.Time) *mcpv1.LastProbe {
	return &mcpv1.LastProbe{Time: metav1.NewTime(at.Truncate(time.Second)), LatencyMilliseconds: ptr.To(report.Latency.Milliseconds())}
}

// factsChanged reports whether what the probe told differs.
func factsChanged(before, after *mcpv1.MCPServerStatus) bool {
	return !equal(observedFacts(before), observedFacts(after))
}

func observedFacts(s *mcpv1.MCPServerStatus) *mcpv1.MCPServerStatus {
	return &mcpv1.MCPServerStatus{
		Server: s.Server, ToolCount: s.ToolCount, ResourceCount: s.ResourceCount, PromptCount: s.PromptCount,
		Tools: s.Tools, ToolsOmitted: s.ToolsOmitted, HealthyReplicas: s.HealthyReplicas,
	}
}

func observedTools(s *serverScope, report *mcpprobe.Report) ([]mcpv1.ObservedTool, *int32) {
	sources := map[string]string{}
	if s.catalog != nil {
		for _, t := range s.catalog.Config.Tools {
			sources[t.Name] = t.Source
		}
	}
	tools := report.Tools.Tools
	var omitted *int32
	if n := len(tools) - mcpv1.MaxStatusTools; n > 0 {
		omitted = ptr.To(int32(n)) //nolint:gosec // The probe keeps some thousands at most.
		tools = tools[:mcpv1.MaxStatusTools]
	}
	out := make([]mcpv1.ObservedTool, 0, len(tools))
	for _, t := range tools {
		source := sources[t.Name]
		if source == "" {
			source = upstreamSource(s, t.Name)
		}
		out = append(out, mcpv1.ObservedTool{Name: shownName(t.Name), Digest: t.Digest, Source: source})
	}
	return slices.Clip(out), omitted
}

// shownName makes an empty name visible: the API takes none. No escaped name
// looks like this.
func shownName(name string) string {
	if name == "" {
		return `\"\"`
	}
	return name
}

func shownNames(names []string) []string {
	out := make([]string, 0, len(names))
	for _, name := range names {
		out = append(out, shownName(name))
	}
	return out
}

func count(n *int) *int32 {
	if n == nil {
		return nil
	}
	return ptr.To(int32(*n)) //nolint:gosec // The probe keeps some thousands at most.
}

// evaluation is what a pass knows, condensed from the scope.
type evaluation struct {
	accepted, resolvedRefs, available, healthy, synced, ready verdict
	upstreamsReady, contractMet                               verdict
	reconciling, stalled                                      *verdict
	// upstreams as the pods see them.
	upstreams []mcpv1.ObservedUpstream

	// zero: no replicas are wanted.
	zero bool
	// pending: the verdict on some replica that takes traffic is awaited.
	pending bool
	// proved, refused (a failure, or a credential is wanted) and inSync count
	// replicas that take traffic.
	proved, refused, inSync int32
	// wantsAuth is a target that wants a credential and was given none.
	wantsAuth *prober.TargetObservation
	// endpointChanged: what the status says is of another endpoint.
	endpointChanged bool
	// blocked is the missing reference without which no pod can start, or
	// without which the probe has not the credential it was given.
	blocked *verdict
	// everProved: the server was proved at some time, or evidently speaks MCP.
	everProved bool
	// representative is the report that counts and names are taken from, and
	// when it was made; nil when they are to be held.
	representative *mcpprobe.Report
	took           time.Time
	// forgetEntries: counts and names are not true any more.
	forgetEntries bool
}

func evaluate(s *serverScope) *evaluation {
	e := &evaluation{
		zero:       resources.HasPods(s.server) && resources.Replicas(s.server) == 0,
		everProved: s.server.Status.LastProbe != nil,
	}
	e.accepted = acceptedVerdict(s)
	e.resolvedRefs = resolvedRefsVerdict(s)
	e.available = availableVerdict(s, e)
	e.healthy = healthyVerdict(s, e)
	e.synced = syncedVerdict(s, e)
	e.upstreams, e.upstreamsReady = upstreamsVerdict(s, e)
	e.contractMet = contractVerdict(s, e)
	e.blocked = blockedVerdict(s, e)
	e.ready, e.reconciling, e.stalled = readyVerdict(s, e)
	e.forgetEntries = e.zero || e.noTraffic(s) || e.healthy.reason == mcpv1.ReasonAuthRequired ||
		(e.proved == 0 && (e.endpointChanged || (e.refused > 0 && !e.pending)))
	return e
}

// noTraffic: the server has pods and none of them takes traffic.
func (e *evaluation) noTraffic(s *serverScope) bool {
	return resources.HasPods(s.server) && !slices.ContainsFunc(s.pods, podstate.TakesTraffic)
}

func acceptedVerdict(s *serverScope) verdict {
	if p := s.problemOf(mcpv1.ConditionAccepted); p != nil {
		return p.verdict()
	}
	if s.catalog != nil && !s.catalog.Server.Accepted {
		return no(s.catalog.Server.Reason, s.catalog.Server.Message)
	}
	if v := catalog.CheckContract(s.server); !v.Accepted {
		return no(v.Reason, v.Message)
	}
	return yes(mcpv1.ReasonAccepted, "The spec is sound.")
}

func resolvedRefsVerdict(s *serverScope) verdict {
	var first verdict
	more := 0
	if p := s.problemOf(mcpv1.ConditionResolvedRefs); p != nil {
		first = p.verdict()
	}
	for _, ref := range s.allRefs() {
		reason, message := s.refProblem(ref)
		switch {
		case reason == "":
		case first.reason == "":
			first = no(reason, message)
		default:
			more++
		}
	}
	for _, u := range s.upstreams {
		switch {
		case u.Verdict.Reason != mcpv1.ReasonServerNotFound:
		case first.reason == "":
			first = no(u.Verdict.Reason, fmt.Sprintf("spec.upstreams %s: %s", u.Name, u.Verdict.Message))
		default:
			more++
		}
	}
	if first.reason == "" {
		return yes(mcpv1.ReasonResolvedRefs, "All Secrets and ConfigMaps that are named exist.")
	}
	if more > 0 {
		first.message += fmt.Sprintf(" %d more are missing.", more)
	}
	return first
}

func availableVerdict(s *serverScope, e *evaluation) verdict {
	if p := s.problemOf(mcpv1.ConditionAvailable); p != nil {
		return p.verdict()
	}
	if !resources.HasPods(s.server) {
		return yes(mcpv1.ReasonNotApplicable, "The server runs elsewhere.")
	}
	if e.zero {
		return zeroVerdict(s, yes)
	}
	t := s.world().Trouble()
	switch {
	case t != nil:
		return no(t.Reason, t.Message)
	case s.world().RollingOut() && !e.noTraffic(s):
		if pod := latePod(s); pod != nil {
			return no(mcpv1.ReasonNotReady, fmt.Sprintf("Pod %s is not ready after spec.startupTimeoutSeconds (%d). Read: kubectl describe pod %s -n %s.", pod.Name, resources.StartupSeconds(s.server), pod.Name, pod.Namespace))
		}
		return no(mcpv1.ReasonRollingOut, "Pods are being added or replaced; those that serve keep serving.")
	case e.noTraffic(s) && e.everProved && !startsAnew(s):
		return no(mcpv1.ReasonNotReady, fmt.Sprintf("No pod is ready. Read: kubectl get pods -l %s=%s -n %s.", mcpv1.LabelServer, s.server.Name, s.server.Namespace))
	case e.noTraffic(s):
		return no(mcpv1.ReasonStarting, fmt.Sprintf("Pods start; they have spec.startupTimeoutSeconds (%d) for it.", resources.StartupSeconds(s.server)))
	default:
		return yes(mcpv1.ReasonAvailable, "The pods run.")
	}
}

// startsAnew: there were no pods before, and those that come now still have
// time to start.
func startsAnew(s *serverScope) bool {
	present, _ := held(s.server.Status.Conditions, mcpv1.ConditionAvailable)
	switch present.reason {
	case mcpv1.ReasonScaledToZero, mcpv1.ReasonSuspended, mcpv1.ReasonNotApplicable, mcpv1.ReasonStarting:
		return len(s.pods) == 0 || startupLeft(s) > 0
	}
	return false
}

func zeroVerdict(s *serverScope, of func(reason, message string) verdict) verdict {
	if resources.Suspended(s.server) {
		return of(mcpv1.ReasonSuspended, "spec.suspend is true: there are no pods.")
	}
	return of(mcpv1.ReasonScaledToZero, "spec.replicas is 0: there are no pods.")
}

// targetsOf gives, for each replica that takes traffic (or for the one
// endpoint of an External server), its name and what is known of it.
func targetsOf(s *serverScope) (names []string, seen []*prober.TargetObservation) {
	if !resources.HasPods(s.server) {
		for i := range s.observation.Targets {
			return []string{s.server.Name}, []*prober.TargetObservation{&s.observation.Targets[i]}
		}
		return []string{s.server.Name}, []*prober.TargetObservation{nil}
	}
	for _, pod := range s.pods {
		if podstate.TakesTraffic(pod) {
			names = append(names, pod.Name)
			seen = append(seen, s.observed(pod))
		}
	}
	return names, seen
}
