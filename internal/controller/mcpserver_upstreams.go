// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/catalog"
	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/podreport"
	"github.com/espalier-dev/espalier/internal/podstate"
	"github.com/espalier-dev/espalier/internal/resources"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// stateUnresolved is of an upstream that the pods were not told of.
const stateUnresolved = "Unresolved"

// addUpstreams resolves spec.upstreams and puts them into the catalog.
func (r *MCPServerReconciler) addUpstreams(ctx context.Context, s *serverScope) error {
	if len(s.server.Spec.Upstreams) == 0 && s.server.Spec.Stdio == nil {
		return nil
	}
	servers := map[string]*mcpv1.MCPServer{}
	if slices.ContainsFunc(s.server.Spec.Upstreams, func(u mcpv1.Upstream) bool { return u.ServerRef != nil }) {
		var list mcpv1.MCPServerList
		if err := r.Client.List(ctx, &list, client.InNamespace(s.key.Namespace)); err != nil {
			return err
		}
		for i := range list.Items {
			if server := &list.Items[i]; server.DeletionTimestamp == nil {
				servers[server.Name] = server
			}
		}
	}
	s.resolveUpstreams(func(name string) *mcpv1.MCPServer { return servers[name] })
	return nil
}

func (s *serverScope) resolveUpstreams(lookup func(string) *mcpv1.MCPServer) {
	s.upstreams = catalog.ResolveUpstreams(s.server, lookup, resources.URL)
	s.catalog.AddUpstreams(s.server, s.upstreams)
}

// upstreamChanged lets pass what those that stand in front of a server need to
// know of it.
var upstreamChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*mcpv1.MCPServer)
		after, also := e.ObjectNew.(*mcpv1.MCPServer)
		return ok && also && (before.Generation != after.Generation || catalog.WantsCredential(before) != catalog.WantsCredential(after))
	},
}

// upstreamsVerdict says how the upstreams fare in the eyes of the replicas
// that take traffic.
func upstreamsVerdict(s *serverScope, e *evaluation) ([]mcpv1.ObservedUpstream, verdict) {
	switch {
	case len(s.upstreams) == 0:
		return nil, yes(mcpv1.ReasonNotApplicable, "The server names no upstreams.")
	case e.zero:
		return nil, zeroVerdict(s, unknown)
	}
	out := make([]mcpv1.ObservedUpstream, 0, len(s.upstreams))
	var bad []string
	reason, pending := mcpv1.ReasonUpstreamsUnavailable, 0
	for _, u := range s.upstreams {
		observed, known := s.observedUpstream(u)
		out = append(out, observed)
		switch {
		case !known || observed.State == string(podreport.UpstreamPending):
			pending++
		case observed.State != string(podreport.UpstreamReady):
			switch {
			case len(bad) > 0:
			case !u.Verdict.Accepted:
				reason = u.Verdict.Reason
			case u.Name == serverconfig.StdioUpstream:
				reason = mcpv1.ReasonChildExited
			case observed.Reason == mcpv1.ReasonInvalidDocument:
				reason = mcpv1.ReasonInvalidDocument
			}
			bad = append(bad, fmt.Sprintf("%s (%s)", u.Name, observed.Reason))
		}
	}
	switch {
	case len(bad) > 0:
		return out, no(reason, s.upstreamsMessage(bad, out))
	case pending > 0:
		return out, unknown(mcpv1.ReasonPending, "No replica has reported on all upstreams yet.")
	}
	return out, yes(mcpv1.ReasonUpstreamsReady, "All upstreams answer."+s.oddities())
}

// observedUpstream is the worst that a replica says of u. While none says
// anything what was known is held.
func (s *serverScope) observedUpstream(u catalog.Upstream) (_ mcpv1.ObservedUpstream, known bool) {
	out := mcpv1.ObservedUpstream{Name: u.Name}
	if !u.Verdict.Accepted {
		out.State, out.Reason = stateUnresolved, u.Verdict.Reason
		return out, true
	}
	for _, pod := range s.pods {
		obs := s.observed(pod)
		if !podstate.TakesTraffic(pod) || obs == nil || obs.Pod == nil {
			continue
		}
		at := slices.IndexFunc(obs.Pod.Upstreams, func(p podreport.Upstream) bool { return p.Name == u.Name })
		if at < 0 {
			continue
		}
		p := obs.Pod.Upstreams[at]
		if out.State == "" || badness(p.State) > badness(podreport.UpstreamState(out.State)) {
			out.State, out.Reason, out.Protocol = string(p.State), p.Reason, p.Protocol
			served := func(n int) *int32 { return ptr.To(int32(n)) } //nolint:gosec // The probe bounds it.
			out.Tools, out.Resources, out.Prompts = served(p.Tools), served(p.Resources), served(p.Prompts)
			out.Skipped, out.SkippedOperations = skipped(&p)
		}
	}
	if out.State != "" {
		return out, true
	}
	for _, before := range s.server.Status.Upstreams {
		if before.Name == u.Name && before.State != stateUnresolved {
			return before, true
		}
	}
	out.State = string(podreport.UpstreamPending)
	return out, false
}

func badness(state podreport.UpstreamState) int {
	switch state {
	case podreport.UpstreamReady:
		return 0
	case podreport.UpstreamPending:
		return 1
	}
	return 2
}

// childDown: the child of a server of type Stdio does not answer in some pod
// that takes traffic.
func childDown(s *serverScope, e *evaluation) bool {
	return s.server.Spec.Stdio != nil && len(e.upstreams) > 0 && e.upstreams[0].State == string(podreport.UpstreamUnavailable)
}

// childrenDown counts the replicas that take traffic and whose child does not
// answer: they speak MCP, and are of no use.
func childrenDown(s *serverScope) (n int32) {
	if s.server.Spec.Stdio == nil {
		return 0
	}
	for _, pod := range s.pods {
		obs := s.observed(pod)
		if podstate.TakesTraffic(pod) && obs != nil && obs.Pod != nil && slices.ContainsFunc(obs.Pod.Upstreams, func(u podreport.Upstream) bool {
			return u.Name == serverconfig.StdioUpstream && u.State == podreport.UpstreamUnavailable
		}) {
			n++
		}
	}
	return n
}

// childMessage says how a child that does not answer ended; empty while it does.
func (s *serverScope) childMessage() string {
	if s.server.Spec.Stdio == nil {
		return ""
	}
	program := mcpprobe.EscapeName(path.Base(s.server.Spec.Stdio.Command[0]))
	for _, pod := range s.pods {
		obs := s.observed(pod)
		if !podstate.TakesTraffic(pod) || obs == nil || obs.Pod == nil {
			continue
		}
		for _, u := range obs.Pod.Upstreams {
			if u.Name != serverconfig.StdioUpstream || u.State != podreport.UpstreamUnavailable {
				continue
			}
			return fmt.Sprintf("%s %s. Read: kubectl logs deploy/%s -n %s. Check spec.stdio.command and args.",
				program, howChildEnded(u), resources.Name(s.server), s.server.Namespace)
		}
	}
	return ""
}

func howChildEnded(u podreport.Upstream) string {
	switch c := u.Child; {
	case u.Reason == "StartFailed":
		return "cannot be started"
	case c != nil && c.Signal != "":
		return "was ended by signal " + c.Signal
	case c != nil && c.State == podreport.ChildExited:
		return fmt.Sprintf("ends with status %d before it answers", c.ExitCode)
	}
	return fmt.Sprintf("runs and does not answer (%s)", u.Reason)
}

// restarted tells that a child runs which is not the first in its pod, and
// what became of the one before.
func (s *serverScope) restarted() string {
	for _, pod := range s.pods {
		obs := s.observed(pod)
		if s.server.Spec.Stdio == nil || !podstate.TakesTraffic(pod) || obs == nil || obs.Pod == nil {
			continue
		}
		for _, u := range obs.Pod.Upstreams {
			c := u.Child
			if c == nil || c.Restarted == "" {
				continue
			}
			how := fmt.Sprintf("did not answer (%s)", c.Restarted)
			switch {
			case c.Signal != "":
				how = "was ended by signal " + c.Signal
			case c.Restarted == mcpv1.ReasonChildExited:
				how = fmt.Sprintf("ended with status %d", c.ExitCode)
			}
			return fmt.Sprintf(" The child of pod %s was started again after it %s.", pod.Name, how)
		}
	}
	return ""
}

// maxNamed is how many entries a message names.
const maxNamed = 8

func (s *serverScope) upstreamsMessage(bad []string, observed []mcpv1.ObservedUpstream) string {
	more := ""
	n := len(bad)
	if n > maxNamed {
		more = fmt.Sprintf(" and %d more", n-maxNamed)
		bad = bad[:maxNamed]
	}
	if child := s.childMessage(); child != "" {
		return child
	}
	message := fmt.Sprintf("%d of %d upstreams cannot be used: %s%s.", n, len(s.upstreams), strings.Join(bad, ", "), more)
	for _, u := range s.upstreams {
		if !u.Verdict.Accepted {
			return message + fmt.Sprintf(" %s: %s", u.Name, u.Verdict.Message)
		}
	}
	if hint := s.documentHint(observed); hint != "" {
		return message + hint + fmt.Sprintf(" Read: kubectl logs -l %s=%s -n %s.", mcpv1.LabelServer, s.server.Name, s.server.Namespace)
	}
	return message + fmt.Sprintf(" What they bring is withdrawn after a minute and comes back by itself. Read: kubectl logs -l %s=%s -n %s.", mcpv1.LabelServer, s.server.Name, s.server.Namespace)
}

// oddities tells of entries that are served although something is odd, or that
// are not served.
func (s *serverScope) oddities() string {
	var out strings.Builder
	if s.server.Spec.Stdio != nil && resources.Replicas(s.server) > 1 {
		out.WriteString(" StateNotShared: each replica runs a child of its own, and what one remembers another does not know.")
	}
	out.WriteString(s.restarted())
	report := s.anyReport()
	if report == nil {
		return out.String()
	}
	tell := func(entries []podreport.NotServed, reason, text string) {
		first, what, n := "", "tools", 0
		for _, entry := range entries {
			if entry.Reason == reason {
				if n == 0 {
					first = entry.Name
				}
				if entry.Kind != "tool" {
					what = "entries"
				}
				n++
			}
		}
		if n > 0 {
			fmt.Fprintf(&out, " %s (%s): %d %s, %s first.", text, reason, n, what, first)
		}
	}
	tell(report.Flagged, podreport.ReasonSchemaNotChecked, "Schemas are passed on and not applied here")
	tell(report.Flagged, podreport.ReasonLongName, "Some clients refuse names over 64 characters")
	tell(report.NotServed, podreport.ReasonOverMax, "Left out by spec.tools.max")
	tell(report.NotServed, podreport.ReasonConflict, "Left out for another entry of the name or URI")
	tell(report.NotServed, podreport.ReasonInvalidName, "Left out for a name that clients refuse")
	tell(report.NotServed, podreport.ReasonInvalidURI, "Left out for a URI that cannot be served")
	tell(report.NotServed, podreport.ReasonTasksUnsupported, "Left out as they run as tasks only")
	tell(report.NotServed, podreport.ReasonFilterFailed, "Left out as spec.tools.filter cannot be evaluated")
	out.WriteString(skippedOperations(report))
	return out.String()
}

// anyReport is the report of the first replica that takes traffic and gave one.
func (s *serverScope) anyReport() *podreport.Report {
	for _, pod := range s.pods {
		if obs := s.observed(pod); podstate.TakesTraffic(pod) && obs != nil && obs.Pod != nil {
			return obs.Pod
		}
	}
	return nil
}

// setUpstreams tells the upstreams and what spec.tools.max leaves out.
func setUpstreams(s *serverScope, e *evaluation, status *mcpv1.MCPServerStatus) {
	status.Upstreams = e.upstreams
	if len(s.upstreams) == 0 || e.zero {
		status.ToolsCut = nil
		return
	}
	report := s.anyReport()
	if report == nil {
		return // Held.
	}
	status.ToolsCut = nil
	for _, n := range report.NotServed {
		if n.Reason == podreport.ReasonOverMax && len(status.ToolsCut) < mcpv1.MaxStatusToolsCut {
			status.ToolsCut = append(status.ToolsCut, n.Name)
		}
	}
}

// upstreamsGone: nothing is served any more, since upstreams are away.
func upstreamsGone(s *serverScope, e *evaluation) bool {
	if len(s.upstreams) == 0 || e.upstreamsReady.status != metav1.ConditionFalse || len(s.catalog.Served) > 0 {
		return false
	}
	tools := s.server.Status.ToolCount
	if e.representative != nil {
		tools = count(e.representative.Tools.Count())
	}
	return tools != nil && *tools == 0
}

// upstreamSource is where a tool that no MCPTool declares comes from; empty
// when several upstreams may have brought it.
func upstreamSource(s *serverScope, name string) string {
	if policy := s.server.Spec.Tools; policy != nil {
		if ptr.Deref(policy.Retrieve, false) && name == serverconfig.RetrieveTool {
			return "server"
		}
		for _, o := range policy.Overrides {
			if o.Rename == name {
				name = o.Name
				break
			}
		}
	}
	found := ""
	if s.server.Spec.Stdio != nil {
		found = "upstream/" + serverconfig.StdioUpstream
	}
	for _, u := range s.server.Spec.Upstreams {
		if strings.HasPrefix(name, u.Prefix) {
			if found != "" {
				return ""
			}
			found = "upstream/" + u.Name
		}
	}
	return found
}
