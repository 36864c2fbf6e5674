// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/catalog"
	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/podreport"
	"github.com/espalier-dev/espalier/internal/podstate"
	"github.com/espalier-dev/espalier/internal/prober"
	"github.com/espalier-dev/espalier/internal/resources"
)

// healthyVerdict says whether the replicas that take traffic were proved, and
// fills the counts of e.
func healthyVerdict(s *serverScope, e *evaluation) verdict {
	if e.zero {
		return zeroVerdict(s, unknown)
	}
	names, seen := targetsOf(s)
	c := census(names, seen)
	e.proved, e.refused = int32(len(c.proved)), int32(len(c.failing)+len(c.auth)) //nolint:gosec // Numbers of pods fit.
	e.pending = len(c.pending) > 0
	e.everProved = e.everProved || len(c.proved)+len(c.auth) > 0
	e.endpointChanged = !s.sameEndpoint()
	if len(c.auth) > 0 {
		e.wantsAuth = seen[c.auth[0]]
	}
	if len(c.proved) > 0 {
		first := c.proved[0]
		e.representative, e.took = seen[first].Report, seen[first].LastProbe
	}
	present, wasKnown := held(s.server.Status.Conditions, mcpv1.ConditionHealthy)
	switch {
	case len(names) == 0:
		return awaitedPods(s)
	case len(c.failing) > 0:
		return failingVerdict(s, e, c, names, seen)
	case s.observation.Lagging:
		return unknown(mcpv1.ReasonStale, "The last proof is too old to tell: the prober is behind. Read: the operator's log and espalier_probe_lag_seconds.")
	case e.pending && wasKnown && !nothingServed(present) && s.sameEndpoint():
		return present
	case e.pending:
		return unknown(mcpv1.ReasonPending, "The first probe is awaited.")
	case len(c.auth) > 0:
		return unknown(mcpv1.ReasonAuthRequired, "The server speaks MCP and wants a credential, which the probe does not have: its tools are unknown. Give the probe one by spec.probe.headers.")
	default:
		return yes(mcpv1.ReasonProved, provedMessage(s, len(c.proved)))
	}
}

// sameEndpoint reports whether what the status says is of the endpoint that is
// probed now. What was proved of another one must not be held.
func (s *serverScope) sameEndpoint() bool {
	before := s.server.Status
	if before.URL != "" && before.URL != resources.URL(s.server) {
		return false
	}
	// The status has an External server's URL without its query.
	return resources.HasPods(s.server) || before.ObservedGeneration == s.server.Generation
}

func provedMessage(s *serverScope, n int) string {
	switch {
	case !resources.HasPods(s.server):
		return "The server answered as an MCP server."
	case n == 1:
		return "The one replica that takes traffic answered as an MCP server."
	default:
		return fmt.Sprintf("All %d replicas that take traffic answered as MCP servers.", n)
	}
}

// counts are indices of targets by their verdict.
type counts struct{ proved, failing, pending, auth []int }

func census(names []string, seen []*prober.TargetObservation) counts {
	var c counts
	for i := range names {
		switch obs := seen[i]; {
		case obs == nil || obs.Report == nil || obs.Verdict == prober.Pending:
			c.pending = append(c.pending, i)
		case obs.Verdict == prober.Proved:
			c.proved = append(c.proved, i)
		case obs.Verdict == prober.AuthRequired:
			c.auth = append(c.auth, i)
		default:
			c.failing = append(c.failing, i)
		}
	}
	return c
}

// failingVerdict names the first failing replica and counts the others.
func failingVerdict(s *serverScope, e *evaluation, c counts, names []string, seen []*prober.TargetObservation) verdict {
	first := c.failing[0]
	if resources.HasPods(s.server) && !e.everProved && neverConnected(c, seen) {
		return unknown(mcpv1.ReasonProbeBlocked,
			"No pod could be connected although the kubelet says that they are ready: a NetworkPolicy or a mesh keeps the operator out. Allow ingress from the operator's namespace to the pods' ports, or set spec.probe.via to Service.")
	}
	where := mcpprobe.Where{External: !resources.HasPods(s.server)}
	if resources.HasPods(s.server) && seen[first].ID != targetService {
		where.Pod, where.Namespace = names[first], s.server.Namespace
	}
	message := mcpprobe.Message(seen[first].Report, where)
	if len(names) > 1 {
		message = fmt.Sprintf("%d of %d replicas fail, %s first: %s", len(c.failing), len(names), names[first], message)
	}
	return no(string(seen[first].Report.Outcome), message)
}

func neverConnected(c counts, seen []*prober.TargetObservation) bool {
	if len(c.proved)+len(c.auth)+len(c.pending) > 0 {
		return false
	}
	for _, i := range c.failing {
		if seen[i].EverConnected {
			return false
		}
	}
	return true
}

// awaitedPods is the verdict while no pod takes traffic. A pod that waits
// behind a readiness gate may be known to fail.
func awaitedPods(s *serverScope) verdict {
	waiting := false
	for _, pod := range s.pods {
		if !podstate.Dialable(pod) {
			continue
		}
		obs := s.observed(pod)
		if obs != nil && obs.Verdict == prober.Failing && obs.Report != nil {
			return no(string(obs.Report.Outcome), mcpprobe.Message(obs.Report, mcpprobe.Where{Pod: pod.Name, Namespace: pod.Namespace}))
		}
		waiting = waiting || obs == nil || obs.Verdict == prober.Pending
	}
	if present, _ := held(s.server.Status.Conditions, mcpv1.ConditionHealthy); waiting && present.status == metav1.ConditionFalse {
		return present
	}
	return unknown(mcpv1.ReasonPending, "No pod takes traffic yet.")
}

// catalogGrace is how long pods may take to load a changed catalog.
const catalogGrace = 30 * time.Second

// syncState is how one replica stands to the wanted catalog.
type syncState int

const (
	syncUnknown syncState = iota
	syncOK
	syncNotMounted
	syncNotLoaded
	syncUnsupported
	syncMismatch
)

// syncedVerdict says whether the replicas that take traffic report and list
// the wanted catalog.
func syncedVerdict(s *serverScope, e *evaluation) verdict {
	switch p := s.problemOf(mcpv1.ConditionSynced); {
	case !resources.Fronted(s.server):
		return yes(mcpv1.ReasonNotApplicable, "The server has its own catalog.")
	case p != nil:
		return p.verdict()
	case e.zero:
		return zeroVerdict(s, yes)
	}
	worst, pod, detail := syncUnknown, "", ""
	traffic, uncertain := 0, 0
	for _, p := range s.pods {
		if !podstate.TakesTraffic(p) {
			continue
		}
		traffic++
		state, why := s.syncOf(p)
		switch {
		case state == syncOK:
			e.inSync++
		case state == syncUnknown:
			uncertain++
		case worst == syncUnknown || state < worst:
			worst, pod, detail = state, p.Name, why
		}
	}
	if worst != syncUnknown {
		return s.notSynced(worst, pod, detail)
	}
	if traffic > 0 && uncertain == 0 {
		return yes(mcpv1.ReasonSynced, "Each replica that takes traffic reports and lists the wanted catalog.")
	}
	return s.syncHeld(traffic)
}

// syncHeld is the verdict while replicas are yet to report: what was known
// holds as long as the catalog is the one it was known of.
func (s *serverScope) syncHeld(traffic int) verdict {
	present, wasKnown := held(s.server.Status.Conditions, mcpv1.ConditionSynced)
	known := wasKnown && present.status != metav1.ConditionUnknown && !nothingServed(present)
	switch before := s.server.Status.CatalogDigest; {
	case !known:
		return unknown(mcpv1.ReasonPending, "No replica has reported its catalog yet.")
	case before == s.set.Digest && present.reason != mcpv1.ReasonCatalogPending:
		return present
	case traffic > 0:
		return s.notSynced(syncNotLoaded, "", "not reported")
	default:
		return no(mcpv1.ReasonCatalogPending, "A change of the catalog waits for pods.")
	}
}

// catalogTimeLeft is how long the pods still have to load the catalog.
func (s *serverScope) catalogTimeLeft() time.Duration {
	present, _ := held(s.server.Status.Conditions, mcpv1.ConditionSynced)
	late := present.reason == mcpv1.ReasonCatalogNotLoaded || present.reason == mcpv1.ReasonListMismatch
	if late && s.server.Status.CatalogDigest == s.set.Digest {
		// It was over before, even when the operator does not remember.
		return 0
	}
	return s.catalogGrace() - s.now.Sub(s.memory.since)
}

// catalogGrace is how long the pods have, and who asks them.
func (s *serverScope) catalogGrace() time.Duration {
	grace := catalogGrace
	if probeVia(s.server) == mcpv1.ProbeViaService {
		// No pod is asked for its report; the next probe has to tell.
		grace += time.Duration(probeInterval(s.server)+probeTimeout(s.server)) * time.Second
	}
	return grace
}

func (s *serverScope) notSynced(state syncState, pod, detail string) verdict {
	left := s.catalogTimeLeft()
	switch {
	case state == syncNotMounted:
		return no(mcpv1.ReasonRolloutForCredentials, "Something served, or auth, names a Secret or ConfigMap that the pods do not mount yet: they are being replaced, once.")
	case state == syncUnsupported:
		return no(mcpv1.ReasonCatalogUnsupported, fmt.Sprintf("The server image of pod %s lacks what the catalog requires (%s); it keeps the catalog it has. Use a newer --server-image.", pod, detail))
	case left > 0:
		s.again(left + 100*time.Millisecond)
		return no(mcpv1.ReasonCatalogPending, "A change of the catalog is on its way to the pods.")
	case state == syncMismatch:
		return no(mcpv1.ReasonListMismatch, fmt.Sprintf("Pod %s lists something else than its catalog has (%s). Read: kubectl logs %s -n %s.", pod, detail, pod, s.server.Namespace))
	default:
		return no(mcpv1.ReasonCatalogNotLoaded, s.notLoadedMessage(pod, detail))
	}
}

// notLoadedMessage says who has not loaded the catalog, and where the cause is
// told: by the kubelet, that brings the file, or by the server, that reads it.
func (s *serverScope) notLoadedMessage(pod, detail string) string {
	message := fmt.Sprintf("A change of the catalog was not loaded within %s (%s%s).", s.catalogGrace(), podPrefix(pod), detail)
	if pod == "" {
		return fmt.Sprintf("%s Read: kubectl logs -l %s=%s -n %s.", message, mcpv1.LabelServer, s.server.Name, s.server.Namespace)
	}
	return fmt.Sprintf("%s It goes on with the one it has. Read what its kubelet and its server say: kubectl describe pod %s -n %s, kubectl logs %s -n %s.",
		message, pod, s.server.Namespace, pod, s.server.Namespace)
}

// syncOf says how pod stands to the wanted catalog, with a detail for people.
func (s *serverScope) syncOf(pod *corev1.Pod) (syncState, string) {
	obs := s.observed(pod)
	digest, known := s.reportedDigest(pod)
	switch {
	case !resources.MountsOf(&pod.Spec).Covers(s.catalog.Refs):
		return syncNotMounted, ""
	case !known:
		return syncUnknown, ""
	case digest != s.set.Digest:
		return s.notLoaded(obs.Pod)
	}
	if obs.Report == nil || reportedBy(obs.Report) != s.set.Digest {
		// The report is ahead of the list; the list follows at once.
		return syncUnknown, ""
	}
	if diff := s.listDiff(obs.Report); diff != "" {
		return syncMismatch, diff + notServed(obs.Pod)
	}
	return syncOK, ""
}

// reportedBy is the catalog that the list of a report is of.
func reportedBy(r *mcpprobe.Report) string {
	if r.Pod != nil {
		return r.Pod.CatalogDigest
	}
	return r.CatalogDigest
}

// catalogStates say how a pod stands to a catalog that it has not loaded.
var catalogStates = map[podreport.CatalogState]string{
	podreport.CatalogLoaded:      "the file has not reached it",
	podreport.CatalogIncomplete:  "a part of it has not reached it",
	podreport.CatalogUnsupported: "it lacks a feature",
	podreport.CatalogInvalid:     "it cannot read it",
	podreport.CatalogMissing:     "it has no catalog",
}

func (s *serverScope) notLoaded(report *podreport.Report) (syncState, string) {
	if report == nil {
		return syncNotLoaded, "no report"
	}
	if report.CatalogState == podreport.CatalogUnsupported {
		return syncUnsupported, strings.Join(report.Missing, ", ")
	}
	return syncNotLoaded, cmp.Or(catalogStates[report.CatalogState], "state "+string(report.CatalogState))
}

// listDiff compares what is listed with the catalog and names the first entry
// that differs.
func (s *serverScope) listDiff(report *mcpprobe.Report) string {
	listed := listedBy(report)
	wanted := map[catalog.List]int{}
	for _, id := range slices.SortedFunc(maps.Keys(s.catalog.Served), catalog.ID.Compare) {
		entry := s.catalog.Served[id]
		wanted[entry.List]++
		digest, ok := listed[entry.List][wireName(entry)]
		switch {
		case !ok && report.Truncated:
			continue
		case !ok:
			return fmt.Sprintf("%s is not listed", wireName(entry))
		case digest != entry.Wire.Digest:
			return fmt.Sprintf("%s is another definition", wireName(entry))
		}
	}
	if len(s.catalog.Config.Upstreams) > 0 {
		return "" // What upstreams add to the lists is known on the wire only.
	}
	for _, list := range []catalog.List{catalog.Tools, catalog.Resources, catalog.Templates, catalog.Prompts} {
		if more := len(listed[list]) - wanted[list]; more > 0 {
			return fmt.Sprintf("%d %s more than wanted", more, list)
		}
	}
	return ""
}

func notServed(report *podreport.Report) string {
	if report == nil || len(report.NotServed) == 0 {
		return ""
	}
	first := report.NotServed[0]
	return fmt.Sprintf("; %s %s is refused by the server: %s", mcpprobe.EscapeName(first.Kind), mcpprobe.EscapeName(first.Name), mcpprobe.EscapeName(first.Reason))
}

func podPrefix(pod string) string {
	if pod == "" {
		return ""
	}
	return "pod " + pod + ": "
}
