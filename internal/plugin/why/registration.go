// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/catalog"
	"github.com/espalier-dev/espalier/internal/plugin/operator"
)

// RegistrationFacts are all that is looked at of an MCPTool, MCPResource or
// MCPPrompt.
type RegistrationFacts struct {
	Registration mcpv1.Registration
	// Facts of the servers that it names and that exist.
	Servers []*Facts
	// Missing are names of servers that do not exist.
	Missing []string
	// Life of the operator that works on its namespace.
	Life operator.Life
	Now  time.Time
	// Unread is what could not be read, by resource, and why.
	Unread map[string]string
}

// DiagnoseRegistration says whether a registration is served, and if not why.
func DiagnoseRegistration(r *RegistrationFacts) *Diagnosis {
	d := &Diagnosis{
		Kind: string(catalog.KindOf(r.Registration)), Namespace: r.Registration.GetNamespace(), Name: r.Registration.GetName(),
		Operator: r.Life.String(), Verdict: NotKnown,
	}
	status := r.Registration.GetRegistrationStatus()
	current := !r.Life.Down() && status.ObservedGeneration == r.Registration.GetGeneration()
	served := meta.FindStatusCondition(status.Conditions, mcpv1.ConditionServed)
	d.Chain = []Step{operatorStep(r.Life, current, ""), r.specStep(), r.namesStep()}
	allReady := len(r.Servers) > 0
	for _, f := range r.Servers {
		own, whole := r.onServer(f, current)
		d.Chain = append(d.Chain, own...)
		allReady = allReady && whole == Ready
	}
	if served != nil {
		d.Reason = served.Reason
	}
	if served != nil && current {
		d.Since = duration.HumanDuration(max(r.Now.Sub(served.LastTransitionTime.Time), 0))
		switch {
		case served.Status == metav1.ConditionTrue && allReady:
			d.Verdict = Ready
		case served.Status == metav1.ConditionFalse, slices.ContainsFunc(d.Chain, func(s Step) bool { return s.State == Broken && s.blocks }):
			d.Verdict = NotReady
		}
	}
	ready := Step{Name: "served", State: Unknown, Message: "No condition says more."}
	if served != nil && current {
		ready = fromCondition("served", served)
	}
	d.conclude(ready)
	d.Notes = notes(r.Unread)
	return d
}

// specStep: it is sound by itself. It is compiled here as the operator does it.
func (r *RegistrationFacts) specStep() Step {
	compiled := catalog.Compile(r.Registration)
	if v := compiled.Verdict; !v.Accepted {
		step := Step{Name: stepSpec, State: Broken, Reason: v.Reason, blocks: true}
		step.Message, step.Do = split(v.Message)
		if len(step.Do) == 0 {
			step.Do = correct(r.Registration.GetName(), strings.ToLower(string(catalog.KindOf(r.Registration))), r.Registration.GetNamespace())
		}
		return step
	}
	if s := r.Registration.GetRegistrationSpec().Suspend; s != nil && *s {
		return Step{Name: stepSpec, State: Broken, Reason: mcpv1.ReasonSuspended, Message: "spec.suspend is true: it is hidden.", Do: []string{"Set spec.suspend to false to have it served."}, blocks: true}
	}
	step := Step{Name: stepSpec, State: OK, Reason: compiled.Verdict.Reason}
	step.Message, step.Do = split(compiled.Verdict.Message)
	return step
}

// namesStep: the servers that it names exist.
func (r *RegistrationFacts) namesStep() Step {
	step := Step{Name: "servers", State: OK, Message: fmt.Sprintf("All MCPServers that it names exist (%d).", len(r.Servers))}
	switch {
	case len(r.Missing) > 0:
		step.State, step.Reason, step.blocks = Broken, mcpv1.ReasonServerNotFound, true
		step.Message = fmt.Sprintf("MCPServer %s does not exist.", r.Missing[0])
		step.Do = []string{"Create it, or correct spec.serverRefs."}
		for _, name := range r.Missing[1:] {
			step.Evidence = append(step.Evidence, fmt.Sprintf("MCPServer %s does not exist either.", name))
		}
	case len(r.Servers) == 0:
		step.State, step.Reason, step.blocks = Broken, mcpv1.ReasonNoServers, true
		step.Message = "No MCPServer of this namespace matches spec.serverSelector."
		step.Do = []string{"Correct the selector, or label a server."}
	}
	return step
}

// onServer is how it fares with one server: whether it is accepted there, what
// it names exists, the server itself is ready, and serves it.
func (r *RegistrationFacts) onServer(f *Facts, current bool) ([]Step, Verdict) {
	name := func(step string) string {
		if len(r.Servers) > 1 {
			return step + " " + f.Server.Name
		}
		return step
	}
	whole := Diagnose(f)
	conditions := f.onServer(r.Registration)
	accepted := Step{Name: name("accepted"), State: OK, Message: fmt.Sprintf("MCPServer %s accepts it.", f.Server.Name)}
	if current && meta.FindStatusCondition(conditions, mcpv1.ConditionAccepted) != nil {
		accepted = fromCondition(name("accepted"), meta.FindStatusCondition(conditions, mcpv1.ConditionAccepted))
	} else if v := r.verdictOn(f); !v.Accepted {
		accepted.State, accepted.Reason = Broken, v.Reason
		accepted.Message, accepted.Do = split(v.Message)
	}
	accepted.blocks = accepted.State == Broken
	steps := []Step{accepted, r.refsStep(f, name(stepReferences), conditions, current), r.serverStep(whole, name("server"))}
	switch served := meta.FindStatusCondition(conditions, mcpv1.ConditionServed); {
	case f.Life.Down():
		steps = append(steps, Step{Name: name("served"), State: Unknown, Message: "It is " + f.Life.Since() + "."})
	case served == nil || !current:
		steps = append(steps, Step{Name: name("served"), State: UnderWay, Message: "Nobody has judged it yet."})
	default:
		step := fromCondition(name("served"), served)
		step.blocks = true
		steps = append(steps, step)
	}
	return steps, whole.Verdict
}

// verdictOn is what the operator would say on that server.
func (r *RegistrationFacts) verdictOn(f *Facts) catalog.Verdict {
	c := f.catalog()
	if c == nil {
		return catalog.NotFronted(f.Server)
	}
	return c.Verdicts[catalog.IDOf(r.Registration)]
}

// refsStep: what it names exists. Nothing but its calls fail while it does not.
func (r *RegistrationFacts) refsStep(f *Facts, name string, conditions []metav1.Condition, current bool) Step {
	step := Step{Name: name, State: OK, Message: "All Secrets and ConfigMaps that it names exist."}
	unread := false
	for _, ref := range catalog.Compile(r.Registration).Refs {
		reason, message, cannot := f.missing(ref)
		unread = unread || cannot
		if reason != "" {
			step.State, step.Reason = Broken, reason
			step.Message, step.Do = split(message)
			return step
		}
	}
	c := meta.FindStatusCondition(conditions, mcpv1.ConditionResolvedRefs)
	if c != nil && current && c.Status == metav1.ConditionFalse && (unread || !isOfNamed(c.Reason)) {
		return fromCondition(name, c)
	}
	if unread && (c == nil || !current) {
		step.State, step.Message = Unknown, "Whether all Secrets and ConfigMaps exist that it names is not known."
	}
	return step
}

// serverStep is the server's own diagnosis in one step.
func (r *RegistrationFacts) serverStep(whole *Diagnosis, name string) Step {
	step := Step{Name: name, State: OK, Reason: whole.Reason, Message: fmt.Sprintf("MCPServer %s is ready.", whole.Name)}
	if whole.Cause == nil {
		return step
	}
	cause := whole.Cause
	step.State, step.Reason, step.blocks = cause.State, cause.Reason, true
	step.Message = fmt.Sprintf("MCPServer %s is not ready (%s): %s", whole.Name, cause.Name, cause.Message)
	switch {
	case whole.Verdict == Ready:
		step.Message = fmt.Sprintf("MCPServer %s: %s", whole.Name, cause.Message)
	case whole.Verdict == NotKnown:
		step.Message = fmt.Sprintf("Whether MCPServer %s is ready is not known (%s): %s", whole.Name, cause.Name, cause.Message)
	}
	step.Evidence = cause.Evidence
	step.Do = append([]string{fmt.Sprintf("See why: kubectl mcp why %s -n %s.", whole.Name, whole.Namespace)}, cause.Do...)
	return step
}
