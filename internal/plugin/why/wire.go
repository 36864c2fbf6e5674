// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/catalog"
	"github.com/espalier-dev/espalier/internal/podstate"
	"github.com/espalier-dev/espalier/internal/resources"
)

// probeStep: the replicas answered as MCP servers.
func (f *Facts) probeStep() Step {
	step := f.byStatus(stepProbe, mcpv1.ConditionHealthy)
	step.blocks = true
	waits := resources.HasPods(f.Server) && f.traffic() == 0
	switch {
	case step.State == Broken:
		step.Evidence = f.probeEvidence()
	case step.State == None && resources.HasPods(f.Server) && !f.zero():
		// It was of the time when no pods were wanted.
		step.State = Unknown
	case step.State == Unknown && !f.current():
		// That nobody probes, or not yet, is told by the step of the operator.
		step.blocks = false
	case step.State == Unknown && step.Reason == mcpv1.ReasonPending && waits:
		step.State = None
	case step.State == Unknown && step.Reason == mcpv1.ReasonPending:
		step.State = UnderWay
	}
	return step
}

// probeEvidence is what is known beside the outcome.
func (f *Facts) probeEvidence() []string {
	status := &f.Server.Status
	var out []string
	if n := status.HealthyReplicas; n != nil && resources.HasPods(f.Server) {
		out = append(out, fmt.Sprintf("%d of %d pods that take traffic were proved.", *n, f.traffic()))
	}
	if !resources.HasPods(f.Server) {
		out = append(out, "Asked was "+cmp.Or(status.URL, resources.URL(f.Server))+".")
	}
	switch {
	case status.LastProbe == nil:
		out = append(out, "It has never been proved.")
	case status.Server != nil:
		out = append(out, fmt.Sprintf("When it was proved last it was %s, protocol %s.", strings.TrimSpace(status.Server.Name+" "+status.Server.Version), status.Server.ProtocolVersion))
	}
	for _, pod := range f.Pods {
		if podstate.TakesTraffic(pod) && len(f.Logs[pod.Name]) > 0 {
			return append(out, f.logOf(pod.Name)...)
		}
	}
	return out
}

// reportStep: the pods report and list the wanted catalog.
func (f *Facts) reportStep() Step {
	step := f.byStatus(stepReport, mcpv1.ConditionSynced)
	step.blocks = step.State == Broken || step.State == UnderWay
	if step.State == Broken || step.State == UnderWay {
		if n := f.Server.Status.SyncedReplicas; n != nil {
			step.Evidence = append(step.Evidence, fmt.Sprintf("%d of %d pods that take traffic report the wanted catalog.", *n, f.traffic()))
		}
		step.Evidence = append(step.Evidence, "Wanted is catalog "+cmp.Or(f.Server.Status.CatalogDigest, "(unknown)")+".")
	}
	if step.State == UnderWay && f.isReason(mcpv1.ReasonPending) {
		step.State = Unknown
	}
	return step
}

// catalogStep: all that names the server is served by it.
func (f *Facts) catalogStep() Step {
	step := Step{Name: stepCatalog, State: OK, Message: fmt.Sprintf("All that names the server is accepted by it (%d).", len(f.Registrations))}
	if !resources.Fronted(f.Server) && len(f.Registrations) == 0 {
		return Step{Name: stepCatalog, State: None, Message: "The server has its own catalog."}
	}
	for _, kind := range []string{"mcptools", "mcpresources", "mcpprompts"} {
		if f.Unread[kind] != "" {
			return Step{Name: stepCatalog, State: Unknown, Message: "What names the server is not known."}
		}
	}
	refused := 0
	for _, r := range f.Registrations {
		reason, message := f.fares(r)
		if reason == "" {
			continue
		}
		what, do := split(message)
		refused++
		if step.State == OK {
			step.State, step.Reason = Broken, reason
			step.Do = do
		}
		step.Evidence = append(step.Evidence, fmt.Sprintf("%s: %s: %s", registrationName(r), reason, what))
	}
	if refused > 0 {
		step.Message = fmt.Sprintf("%d of %d tools, resources and prompts that name the server are not as they should be.", refused, len(f.Registrations))
		step.Do = append(step.Do, fmt.Sprintf("See one by one: kubectl mcp why tool/NAME -n %s.", f.Server.Namespace))
	}
	if cut := f.Server.Status.ToolsCut; len(cut) > 0 && f.current() {
		step.Evidence = append(step.Evidence, "spec.tools.max leaves out: "+strings.Join(cut[:min(len(cut), 8)], ", ")+".")
	}
	return step
}

// fares says what is wrong with a registration on this server; nothing when it
// is as wanted.
func (f *Facts) fares(r mcpv1.Registration) (reason, message string) {
	if f.current() && r.GetRegistrationStatus().ObservedGeneration == r.GetGeneration() {
		return fares(f.onServer(r))
	}
	v := catalog.NotFronted(f.Server)
	if c := f.catalog(); c != nil {
		v = c.Verdicts[catalog.IDOf(r)]
	}
	if v.Accepted || wanted(v.Reason) {
		return "", ""
	}
	return v.Reason, v.Message
}

// onServer are the conditions of a registration that are of this server.
func (f *Facts) onServer(r mcpv1.Registration) []metav1.Condition {
	list := r.GetRegistrationStatus().Servers
	at := slices.IndexFunc(list, func(s mcpv1.RegistrationServerStatus) bool { return s.Name == f.Server.Name })
	if at < 0 {
		return nil
	}
	return list[at].Conditions
}

// fares gives the first condition that is False, of those that say more than
// the server itself.
func fares(conditions []metav1.Condition) (reason, message string) {
	for _, kind := range []string{mcpv1.ConditionAccepted, mcpv1.ConditionResolvedRefs} {
		if c := meta.FindStatusCondition(conditions, kind); c != nil && c.Status == metav1.ConditionFalse {
			if wanted(c.Reason) {
				return "", ""
			}
			return c.Reason, c.Message
		}
	}
	return "", ""
}

// wanted: it is left out because somebody said so.
func wanted(reason string) bool {
	return reason == mcpv1.ReasonSuspended || reason == mcpv1.ReasonFiltered
}

// upstreamsStep: the upstreams answer.
func (f *Facts) upstreamsStep() Step {
	step := f.byStatus(stepUpstreams, mcpv1.ConditionUpstreamsReady)
	if len(f.Server.Spec.Upstreams) == 0 && f.Server.Spec.Stdio == nil {
		step.State = None
	}
	if step.State != Broken {
		return step
	}
	step.blocks = f.isReason(mcpv1.ReasonUpstreamsUnavailable) || f.isReason(mcpv1.ReasonChildExited) || f.isReason(step.Reason)
	for _, u := range f.Server.Status.Upstreams {
		if u.State != "Ready" {
			step.Evidence = append(step.Evidence, fmt.Sprintf("Upstream %s%s is %s%s.", u.Name, f.at(u.Name), u.State, because(u.Reason)))
		}
	}
	for _, behind := range f.behind() {
		c := meta.FindStatusCondition(behind.Status.Conditions, mcpv1.ConditionReady)
		if c != nil && c.Status != metav1.ConditionTrue {
			step.Evidence = append(step.Evidence, fmt.Sprintf("MCPServer %s behind it is not ready (%s).", behind.Name, c.Reason))
			step.Do = append([]string{fmt.Sprintf("See why: kubectl mcp why %s -n %s.", behind.Name, behind.Namespace)}, step.Do...)
		}
	}
	for _, pod := range f.Pods {
		if f.Server.Spec.Stdio != nil && len(f.Logs[pod.Name]) > 0 {
			step.Evidence = append(step.Evidence, f.logOf(pod.Name)...)
			break
		}
	}
	return step
}

// behind are the MCPServers that are upstreams, as far as they exist.
func (f *Facts) behind() []*mcpv1.MCPServer {
	var out []*mcpv1.MCPServer
	for _, u := range f.Server.Spec.Upstreams {
		if u.ServerRef != nil && f.Servers[u.ServerRef.Name] != nil {
			out = append(out, f.Servers[u.ServerRef.Name])
		}
	}
	return out
}

// at says where an upstream is, without the query of its URL, which may hold a
// credential.
func (f *Facts) at(name string) string {
	for _, u := range f.Server.Spec.Upstreams {
		switch {
		case u.Name != name:
		case u.ServerRef != nil:
			return " (MCPServer " + u.ServerRef.Name + ")"
		case u.URL != "":
			if parsed, err := url.Parse(u.URL); err == nil {
				parsed.RawQuery, parsed.Fragment, parsed.User = "", "", nil
				return " (" + parsed.String() + ")"
			}
		}
	}
	return ""
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return " (" + reason + ")"
}

// contractStep: what is given is what was promised.
func (f *Facts) contractStep() Step {
	if f.Server.Spec.Contract == nil {
		return Step{Name: stepContract, State: None, Message: "The server has no contract."}
	}
	return f.byStatus(stepContract, mcpv1.ConditionContractMet)
}

// notes say what could not be read.
func notes(unread map[string]string) []string {
	var out []string
	for resource, why := range unread {
		out = append(out, fmt.Sprintf("Not read: %s (%s).", resource, why))
	}
	slices.Sort(out)
	return out
}
