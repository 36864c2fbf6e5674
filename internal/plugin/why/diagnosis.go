// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
)

// Verdict on what was asked about.
type Verdict string

// Verdicts.
const (
	Ready    Verdict = "Ready"
	NotReady Verdict = "NotReady"
	// NotKnown: nobody can tell now.
	NotKnown Verdict = "NotKnown"
)

// State of a step.
type State string

// States of steps.
const (
	OK      State = "ok"
	Broken  State = "broken"
	Unknown State = "unknown"
	// UnderWay: it is not so yet, and is being made so.
	UnderWay State = "underway"
	// Idle: nothing is wanted here.
	Idle State = "idle"
	// None: there is no such thing here.
	None State = "none"
)

// Step of the chain from a spec to what clients are given.
type Step struct {
	// Name of the step: operator, spec, references, deployment, pods, probe,
	// report, catalog, upstreams or contract.
	Name  string `json:"name"`
	State State  `json:"state"`
	// Reason is that of a condition of the API, where it has one.
	Reason string `json:"reason,omitempty"`
	// Message says what is so, without what to do.
	Message  string   `json:"message,omitempty"`
	Evidence []string `json:"evidence,omitempty"`
	// Do is what to do, one sentence each.
	Do []string `json:"do,omitempty"`
	// blocks: while it is so nobody can use the server.
	blocks bool
}

// Diagnosis of one object.
type Diagnosis struct {
	Kind      string  `json:"kind"`
	Namespace string  `json:"namespace"`
	Name      string  `json:"name"`
	Verdict   Verdict `json:"verdict"`
	// Reason and Since are of the condition that the verdict comes from.
	Reason string `json:"reason,omitempty"`
	Since  string `json:"since,omitempty"`
	// Operator says whether what status says is kept true.
	Operator string `json:"operator,omitempty"`
	// Cause is the first step that stands in the way.
	Cause *Step `json:"cause,omitempty"`
	// Also are the other steps that are not as they should be.
	Also []Step `json:"also,omitempty"`
	// Chain is all steps, in order.
	Chain []Step `json:"chain"`
	// Notes say what could not be read.
	Notes []string `json:"notes,omitempty"`
}

// Diagnose says whether a server is ready, and if not why.
func Diagnose(f *Facts) *Diagnosis {
	d := &Diagnosis{Kind: "MCPServer", Namespace: f.Server.Namespace, Name: f.Server.Name, Operator: f.Life.String()}
	d.verdict(f)
	probe := f.probeStep()
	d.Chain = []Step{
		f.operatorStep(), f.specStep(), f.referencesStep(), f.deploymentStep(), f.podsStep(probe.State == Broken), probe,
		f.reportStep(), f.catalogStep(), f.upstreamsStep(), f.contractStep(),
	}
	d.conclude(f.readyStep())
	d.Notes = notes(f.Unread)
	return d
}

func (d *Diagnosis) verdict(f *Facts) {
	d.Verdict = NotKnown
	ready := f.condition(mcpv1.ConditionReady)
	if ready == nil {
		return
	}
	d.Reason = ready.Reason
	if !f.current() {
		return
	}
	d.Since = duration.HumanDuration(max(f.Now.Sub(ready.LastTransitionTime.Time), 0))
	switch ready.Status {
	case metav1.ConditionTrue:
		d.Verdict = Ready
	case metav1.ConditionFalse:
		d.Verdict = NotReady
	}
}

// conclude picks the cause out of the chain. ready is what the condition Ready
// says itself, for what no step explains.
func (d *Diagnosis) conclude(ready Step) {
	states := []State{Broken, UnderWay, Unknown}
	if d.Verdict == Ready {
		states = []State{Idle}
	}
	at := -1
	for _, state := range states {
		if at < 0 {
			at = slices.IndexFunc(d.Chain, func(s Step) bool { return s.State == state && s.blocks })
		}
	}
	if at >= 0 {
		cause := d.Chain[at]
		d.Cause = &cause
	} else if d.Verdict != Ready {
		d.Cause = &ready
	}
	for i, s := range d.Chain {
		if i != at && (s.State == Broken || s.State == UnderWay || (s.State == Unknown && s.blocks)) {
			d.Also = append(d.Also, s)
		}
	}
}

// readyStep is what the condition Ready says.
func (f *Facts) readyStep() Step {
	step := Step{Name: "ready", State: Unknown}
	if ready := f.condition(mcpv1.ConditionReady); ready != nil && f.current() {
		return fromCondition("ready", ready)
	}
	step.Message = "No condition says more."
	return step
}

// fromCondition makes a step of a condition that is current.
func fromCondition(name string, c *metav1.Condition) Step {
	message, do := split(c.Message)
	step := Step{Name: name, Reason: c.Reason, Message: message, Do: do}
	switch {
	case c.Reason == mcpv1.ReasonNotApplicable:
		step.State = None
	case c.Reason == mcpv1.ReasonScaledToZero, c.Reason == mcpv1.ReasonSuspended:
		step.State = None
	case c.Status == metav1.ConditionTrue:
		step.State = OK
	case c.Status == metav1.ConditionUnknown:
		step.State = Unknown
	case slices.Contains(underWay, c.Reason):
		step.State = UnderWay
	default:
		step.State = Broken
	}
	return step
}

// underWay are reasons for which a condition is False while a change is made.
var underWay = []string{
	mcpv1.ReasonRollingOut, mcpv1.ReasonStarting, mcpv1.ReasonCatalogPending, mcpv1.ReasonRolloutForCredentials, mcpv1.ReasonPending,
}

// byStatus makes a step of a condition that only the operator can judge.
func (f *Facts) byStatus(name, kind string) Step {
	c := f.condition(kind)
	switch {
	case c == nil:
		return Step{Name: name, State: Unknown, Message: "Nobody has judged it yet."}
	case f.Life.Down():
		step := Step{Name: name, State: Unknown, Reason: c.Reason, Message: "It is " + f.Life.Since() + "; before that it was " + c.Reason + "."}
		if c.Reason == mcpv1.ReasonNotApplicable {
			step.State, step.Message = None, c.Message
		}
		return step
	case c.ObservedGeneration != f.Server.Generation:
		return Step{Name: name, State: Unknown, Reason: c.Reason, Message: "The spec has changed, and nobody has judged the new one yet; before it was " + c.Reason + "."}
	}
	return fromCondition(name, c)
}
