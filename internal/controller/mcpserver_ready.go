// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/catalog"
	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/resources"
)

// readyVerdict joins the other conditions into "a client can use this server
// now", and kstatus's Reconciling and Stalled.
func readyVerdict(s *serverScope, e *evaluation) (ready verdict, reconciling, stalled *verdict) {
	if v := stalledVerdict(s, e); v != nil {
		return *v, nil, v.asTrue()
	}
	ready = readiness(s, e)
	switch {
	case e.available.reason == mcpv1.ReasonForbidden:
		return ready, nil, nil
	case e.blocked != nil:
		return ready, e.blocked.asTrue(), nil
	case e.synced.reason == mcpv1.ReasonCatalogPending, e.synced.reason == mcpv1.ReasonRolloutForCredentials:
		return ready, e.synced.asTrue(), nil
	case e.available.reason == mcpv1.ReasonRollingOut, e.available.reason == mcpv1.ReasonStarting:
		return ready, e.available.asTrue(), nil
	case e.available.status == metav1.ConditionFalse && ready.status == metav1.ConditionTrue && s.world().RollingOut():
		// Old pods serve, and the new ones do not come up: whoever waits for
		// the change must not take it for done.
		return ready, e.available.asTrue(), nil
	case e.healthy.reason == mcpv1.ReasonPending && !e.noTraffic(s), e.healthy.status == metav1.ConditionTrue && e.synced.reason == mcpv1.ReasonPending:
		v := yes(mcpv1.ReasonPending, "The first proof is awaited.")
		return ready, &v, nil
	case ready.status == metav1.ConditionFalse && !e.everProved && !authRejected(e):
		// Within the start-up budget nothing is wrong yet.
		v := yes(mcpv1.ReasonStarting, "The server has not been proved yet and has time to start.")
		return ready, &v, nil
	default:
		return ready, nil, nil
	}
}

// asTrue turns a verdict into a kstatus condition that tells the same.
func (v verdict) asTrue() *verdict {
	return &verdict{metav1.ConditionTrue, v.reason, v.message}
}

// stalledVerdict is set when only a change can help: an invalid spec, a
// foreign object in the way, a catalog that does not fit, or a start-up that
// took too long without one success.
func stalledVerdict(s *serverScope, e *evaluation) *verdict {
	if e.accepted.status == metav1.ConditionFalse {
		return &e.accepted
	}
	for _, p := range s.problems {
		if p.stalled {
			v := p.verdict()
			return &v
		}
	}
	if e.everProved || e.zero || usable(e) || e.healthy.reason == mcpv1.ReasonProbeBlocked || e.available.reason == mcpv1.ReasonForbidden {
		return nil
	}
	if e.blocked != nil || authRejected(e) {
		// Another Secret helps, without a change of the object.
		return nil
	}
	if left := startupLeft(s); left > 0 {
		s.again(left + 100*time.Millisecond)
		return nil
	}
	v := cause(e)
	if v.reason == mcpv1.ReasonStarting || v.reason == mcpv1.ReasonPending {
		v = no(mcpv1.ReasonStartupTimedOut, "No replica was proved within spec.startupTimeoutSeconds. Read the pods' logs, or give them more time.")
	}
	return &v
}

// startupLeft is what is left of the start-up budget.
func startupLeft(s *serverScope) time.Duration {
	budget := time.Duration(resources.StartupSeconds(s.server)) * time.Second
	if resources.HasPods(s.server) {
		began := startupBegan(s)
		if began.IsZero() {
			return budget
		}
		return budget - s.now.Sub(began)
	}
	if c, ok := held(s.server.Status.Conditions, mcpv1.ConditionStalled); ok && c.status == metav1.ConditionTrue && s.server.Status.ObservedGeneration == s.server.Generation {
		// It was over before the operator restarted.
		return 0
	}
	return budget - s.now.Sub(s.memory.endpointSince)
}

// authRejected: the credential that was given is refused.
func authRejected(e *evaluation) bool {
	return e.healthy.reason == string(mcpprobe.AuthRejected)
}

// blockedVerdict tells the missing reference that keeps pods from starting, or
// the probe from showing the credential that the spec gives it.
func blockedVerdict(s *serverScope, e *evaluation) *verdict {
	var refs []catalog.Ref
	switch {
	case e.zero:
		return nil
	case e.noTraffic(s):
		refs = slices.Concat(catalog.EnvRefs(s.server), catalog.VolumeRefs(s.server), catalog.ServingRefs(s.server))
	case e.healthy.reason == mcpv1.ReasonAuthRequired:
		refs = catalog.ProbeRefs(s.server)
	}
	for _, ref := range catalog.SortRefs(refs) {
		reason, message := s.refProblem(ref)
		if reason == "" || (reason == mcpv1.ReasonForbidden && e.noTraffic(s)) {
			// What the operator may not see may well be there for the kubelet.
			continue
		}
		v := no(reason, message)
		return &v
	}
	return nil
}

// usable: a client can use the server now.
func usable(e *evaluation) bool {
	return e.healthy.status == metav1.ConditionTrue || e.healthy.reason == mcpv1.ReasonAuthRequired
}

// readiness is Ready without the cases that stall.
func readiness(s *serverScope, e *evaluation) verdict {
	if e.zero {
		// That the pods go may be forbidden.
		return e.available
	}
	if e.blocked != nil {
		return *e.blocked
	}
	present, wasKnown := held(s.server.Status.Conditions, mcpv1.ConditionReady)
	switch {
	case e.available.reason == mcpv1.ReasonForbidden && !usable(e):
		return e.available
	case e.healthy.reason == mcpv1.ReasonStale, e.healthy.reason == mcpv1.ReasonProbeBlocked:
		return e.healthy
	case e.healthy.reason == mcpv1.ReasonAuthRequired:
		return yes(mcpv1.ReasonAuthRequired, e.healthy.message)
	case e.healthy.status == metav1.ConditionTrue && e.synced.status == metav1.ConditionTrue:
		return provedReadiness(s, e)
	case e.healthy.status == metav1.ConditionTrue && underWay(e.synced):
		if wasKnown && present.status != metav1.ConditionUnknown && !nothingServed(present) {
			return present
		}
		return no(e.synced.reason, e.synced.message)
	default:
		return cause(e)
	}
}

// provedReadiness: the server answers as it should; whether it is of use
// depends on its upstreams, where it has nothing of its own.
func provedReadiness(s *serverScope, e *evaluation) verdict {
	if childDown(s, e) {
		return no(mcpv1.ReasonChildExited, e.upstreamsReady.message)
	}
	if upstreamsGone(s, e) {
		return no(mcpv1.ReasonUpstreamsUnavailable, "The server answers and has nothing to serve: "+e.upstreamsReady.message)
	}
	return yes(mcpv1.ReasonProved, e.healthy.message)
}

// underWay: the catalog is on its way, and Ready keeps its value meanwhile.
func underWay(synced verdict) bool {
	switch synced.reason {
	case mcpv1.ReasonCatalogPending, mcpv1.ReasonRolloutForCredentials, mcpv1.ReasonPending:
		return true
	}
	return false
}

// nothingServed: Ready's present value was about a server without pods.
func nothingServed(v verdict) bool {
	return v.reason == mcpv1.ReasonScaledToZero || v.reason == mcpv1.ReasonSuspended
}

// cause is the condition that stands in the way, the one that explains most
// first: what the pods suffer from, then what the probe met.
func cause(e *evaluation) verdict {
	switch {
	case e.healthy.status == metav1.ConditionFalse:
		return e.healthy
	case e.available.status == metav1.ConditionFalse && e.healthy.status != metav1.ConditionTrue:
		return e.available
	case e.healthy.status != metav1.ConditionTrue:
		return verdict{metav1.ConditionFalse, e.healthy.reason, e.healthy.message}
	default:
		return verdict{metav1.ConditionFalse, e.synced.reason, e.synced.message}
	}
}
