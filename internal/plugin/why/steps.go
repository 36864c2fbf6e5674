// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/catalog"
	"github.com/espalier-dev/espalier/internal/plugin/operator"
	"github.com/espalier-dev/espalier/internal/resources"
)

// Names of the steps.
const (
	stepOperator   = "operator"
	stepSpec       = "spec"
	stepReferences = "references"
	stepDeployment = "deployment"
	stepPods       = "pods"
	stepProbe      = "probe"
	stepReport     = "report"
	stepCatalog    = "catalog"
	stepUpstreams  = "upstreams"
	stepContract   = "contract"
)

// operatorStep: somebody keeps the status true, and has judged this spec.
func (f *Facts) operatorStep() Step { return operatorStep(f.Life, f.judged(), f.Skew) }

func operatorStep(life operator.Life, judged bool, skew string) Step {
	step := Step{Name: stepOperator, State: OK, Message: life.String()}
	switch {
	case life.Down():
		step.State, step.blocks = Unknown, true
		namespace := life.Namespace
		if namespace == "" {
			step.Do = []string{"Install the operator (docs/install.md), or have it work on this namespace (--watch-namespace)."}
			break
		}
		step.Do = []string{
			fmt.Sprintf("See whether it runs: kubectl get deployments,pods -n %s.", namespace),
			fmt.Sprintf("Read its last words: kubectl logs -l control-plane=controller-manager -n %s.", namespace),
		}
	case !judged:
		step.State, step.blocks, step.Reason = UnderWay, true, mcpv1.ReasonPending
		step.Message = "The operator has not judged this spec yet. " + step.Message
		step.Do = []string{"Wait some seconds. If it stays so, read the operator's log."}
	case !life.Known:
		step.State = Unknown
	}
	if skew != "" {
		step.Evidence = append(step.Evidence, skew)
	}
	return step
}

// specStep: the spec is sound. Where nobody judges, the rooms that the operator
// judges by are asked.
func (f *Facts) specStep() Step {
	if c := f.condition(mcpv1.ConditionAccepted); c != nil && c.ObservedGeneration == f.Server.Generation {
		// It depends on the spec alone: that it is of this one is enough.
		step := fromCondition(stepSpec, c)
		step.blocks = true
		if step.State == Broken && len(step.Do) == 0 {
			step.Do = correct(f.Server.Name, "mcpserver", f.Server.Namespace)
		}
		return step
	}
	verdict := catalog.CheckContract(f.Server)
	if c := f.catalog(); c != nil && !c.Server.Accepted {
		verdict = c.Server
	}
	if verdict.Accepted {
		return Step{Name: stepSpec, State: OK, Reason: verdict.Reason, Message: "The spec is sound, as far as can be told without the operator."}
	}
	step := Step{Name: stepSpec, State: Broken, Reason: verdict.Reason, blocks: true}
	step.Message, step.Do = split(verdict.Message)
	if len(step.Do) == 0 {
		step.Do = correct(f.Server.Name, "mcpserver", f.Server.Namespace)
	}
	return step
}

// correct is what to do about a spec that is not sound, where the message says
// no more than what is wrong with it.
func correct(name, resource, namespace string) []string {
	return []string{fmt.Sprintf("Correct the spec: kubectl edit %s %s -n %s.", resource, name, namespace)}
}

// referencesStep: what is named exists.
func (f *Facts) referencesStep() Step {
	step := Step{Name: stepReferences, State: OK, Message: "All Secrets and ConfigMaps that are named exist."}
	stops := f.stopping()
	unread := false
	refs := f.refs()
	// Those that stop the server come first.
	slices.SortStableFunc(refs, func(a, b catalog.Ref) int { return int(boolRank(stops(a)) - boolRank(stops(b))) })
	for _, ref := range refs {
		reason, message, cannot := f.missing(ref)
		unread = unread || cannot
		if reason == "" {
			continue
		}
		what, do := split(message)
		if step.State == OK {
			step.State, step.Reason, step.Message, step.Do, step.blocks = Broken, reason, what, do, stops(ref)
		} else {
			step.Evidence = append(step.Evidence, what)
			step.Do = append(step.Do, do...)
		}
		step.Evidence = append(step.Evidence, fmt.Sprintf("%s %s is named by %s.", ref.Kind, ref.Name, f.namedBy(ref)))
	}
	if step.State == OK {
		f.referencesByStatus(&step, unread)
	}
	return step
}

func boolRank(first bool) int8 {
	if first {
		return 0
	}
	return 1
}

// referencesByStatus takes what the operator says where the user may not read,
// and of what is no Secret and no ConfigMap.
func (f *Facts) referencesByStatus(step *Step, unread bool) {
	c := f.condition(mcpv1.ConditionResolvedRefs)
	told := c != nil && f.current() && c.ObservedGeneration == f.Server.Generation
	if told && c.Status == metav1.ConditionFalse {
		if !unread && isOfNamed(c.Reason) {
			step.Message += " The operator has not seen it yet; it looks every 10 seconds."
			step.State = UnderWay
			return
		}
		*step = fromCondition(stepReferences, c)
		step.blocks = f.isReason(c.Reason)
		return
	}
	if unread && !told {
		step.State, step.Message = Unknown, "Whether all Secrets and ConfigMaps exist that are named is not known."
	}
}

// isOfNamed: reasons that what is read here decides.
func isOfNamed(reason string) bool {
	switch reason {
	case mcpv1.ReasonSecretNotFound, mcpv1.ReasonSecretKeyNotFound, mcpv1.ReasonConfigMapNotFound, mcpv1.ReasonConfigMapKeyNotFound:
		return true
	}
	return false
}

// isReason: Ready is not True for this reason.
func (f *Facts) isReason(reason string) bool {
	ready := f.condition(mcpv1.ConditionReady)
	return ready != nil && ready.Status != metav1.ConditionTrue && ready.Reason == reason
}

// stopping tells which references keep the server from working: those of the
// pods while none takes traffic, and those of the probe while it is refused.
func (f *Facts) stopping() func(catalog.Ref) bool {
	var refs []catalog.Ref
	if resources.HasPods(f.Server) && f.traffic() == 0 && !f.zero() {
		refs = podRefs(f.Server)
	}
	if healthy := f.condition(mcpv1.ConditionHealthy); !resources.HasPods(f.Server) || (healthy != nil && healthy.Status != metav1.ConditionTrue) {
		refs = append(refs, catalog.ProbeRefs(f.Server)...)
	}
	return func(ref catalog.Ref) bool {
		return slices.ContainsFunc(refs, func(r catalog.Ref) bool { return catalog.CompareRefs(r, ref) == 0 })
	}
}

// namedBy says who names ref.
func (f *Facts) namedBy(ref catalog.Ref) string {
	names := func(refs []catalog.Ref) bool {
		return slices.ContainsFunc(refs, func(r catalog.Ref) bool { return catalog.CompareRefs(r, ref) == 0 })
	}
	var by []string
	if names(catalog.EnvRefs(f.Server)) {
		by = append(by, "the environment of the pods")
	}
	if names(catalog.VolumeRefs(f.Server)) {
		by = append(by, "a volume of the pods")
	}
	if names(catalog.ServingRefs(f.Server)) {
		by = append(by, "spec.tls")
	}
	if names(catalog.AuthRefs(f.Server.Spec.Auth)) {
		by = append(by, "spec.auth")
	}
	if names(catalog.ConnectionRefs(f.Server.Spec.External)) {
		by = append(by, "spec.external")
	} else if names(catalog.ProbeRefs(f.Server)) {
		by = append(by, "spec.probe")
	}
	for _, r := range f.Registrations {
		if names(catalog.Compile(r).Refs) {
			by = append(by, registrationName(r))
		}
	}
	if len(by) == 0 {
		return "spec.upstreams"
	}
	return strings.Join(by, ", ")
}

// registrationName is how kubectl names it, in short: tool/NAME.
func registrationName(r mcpv1.Registration) string {
	kind := strings.ToLower(strings.TrimPrefix(string(catalog.KindOf(r)), "MCP"))
	return kind + "/" + r.GetName()
}
