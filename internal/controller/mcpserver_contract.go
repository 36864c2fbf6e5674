// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"fmt"
	"strings"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/catalog"
	"github.com/espalier-dev/espalier/internal/contract"
	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/podreport"
	"github.com/espalier-dev/espalier/internal/prober"
)

// contractVerdict says whether the replicas that were proved give what
// spec.contract promises.
func contractVerdict(s *serverScope, e *evaluation) verdict {
	spec := s.server.Spec.Contract
	switch {
	case spec == nil:
		return yes(mcpv1.ReasonNotApplicable, "The server has no contract.")
	case e.zero:
		return zeroVerdict(s, unknown)
	}
	pins := catalog.Pins(s.server)
	broken, known := s.breaches(pins)
	switch {
	case len(broken) > 0:
		return no(mcpv1.ReasonDrifted, driftMessage(s, pins, broken))
	case !known || e.pending:
		// What was known of the same promise is held.
		present, was := held(s.server.Status.Conditions, mcpv1.ConditionContractMet)
		if was && present.reason != mcpv1.ReasonNotApplicable && !nothingServed(present) && s.server.Status.ObservedGeneration == s.server.Generation {
			return present
		}
		return unknown(mcpv1.ReasonPending, "No replica has shown yet whether the contract is kept.")
	}
	return yes(mcpv1.ReasonContractMet, fmt.Sprintf("All that spec.contract pins (%d tools) is as it was promised.", len(pins)))
}

// breaches says what some proved replica does not keep, by name of the tool.
// known is false while one cannot be told, or there is none.
func (s *serverScope) breaches(pins []contract.Pin) (broken map[string]string, known bool) {
	broken = map[string]string{}
	instructions := s.server.Spec.Contract.Instructions
	_, observations := targetsOf(s)
	seen, waiting := 0, false
	for _, obs := range observations {
		if obs == nil || obs.Verdict != prober.Proved || obs.Report == nil {
			continue
		}
		seen++
		if instructions != "" && obs.Report.Instructions != instructions {
			broken[instructionsKey] = fmt.Sprintf("the instructions (expected %s, found %s)", instructions, cmp.Or(obs.Report.Instructions, "none"))
		}
		r := newReplica(s, obs.Report)
		for _, pin := range pins {
			text, known := r.judge(pin)
			waiting = waiting || !known
			if text != "" && broken[pin.Name] == "" {
				broken[pin.Name] = text
			}
		}
	}
	return broken, seen > 0 && !waiting
}

// instructionsKey is no name of a tool.
const instructionsKey = ""

// replica is what one of them shows.
type replica struct {
	s      *serverScope
	report *mcpprobe.Report
	// tools and drift by escaped name; the latter is what the pod says itself,
	// read just before its list.
	tools map[string]mcpprobe.Tool
	drift map[string]*podreport.Drift
}

func newReplica(s *serverScope, report *mcpprobe.Report) replica {
	r := replica{s: s, report: report, tools: map[string]mcpprobe.Tool{}, drift: map[string]*podreport.Drift{}}
	for _, t := range report.Tools.Tools {
		r.tools[t.Name] = t
	}
	if report.Pod != nil {
		for i := range report.Pod.Drift {
			r.drift[report.Pod.Drift[i].Name] = &report.Pod.Drift[i]
		}
	}
	return r
}

// judge says how the tool differs from what is pinned; empty when it does not.
// known is false while that cannot be told.
func (r replica) judge(pin contract.Pin) (text string, known bool) {
	if r.report.Tools.State == mcpprobe.ToolsUnknown {
		return "", false
	}
	name := mcpprobe.EscapeName(pin.Name)
	if drift := r.drift[name]; drift != nil {
		return driftText(pin, drift), true
	}
	if found, ok := r.s.drifted(pin.Name); ok {
		parts, _ := pin.Broken(found)
		return driftText(pin, &podreport.Drift{Name: name, Digest: found.Digest, Parts: parts, Hidden: true}), true
	}
	tool, ok := r.tools[name]
	switch {
	case !ok && r.report.Truncated:
		return "", false
	case !ok:
		return name + " (not listed)", true
	}
	if parts, broken := pin.Broken(contract.Tool{Name: tool.Name, Digest: tool.Digest, Fields: tool.Fields}); broken {
		return driftText(pin, &podreport.Drift{Name: name, Digest: cmp.Or(tool.Digest, "none"), Parts: parts}), true
	}
	// What an upstream gives only the pod's report can tell.
	return "", pin.UpstreamDigest == "" || r.report.Pod != nil
}

// driftText names a tool, what differs of it, and the digests; no text of the
// definitions.
func driftText(pin contract.Pin, d *podreport.Drift) string {
	var what []string
	if len(d.Parts) > 0 {
		what = append(what, strings.Join(d.Parts, ", "))
	}
	if d.Hidden {
		what = append(what, "hidden")
	}
	if d.Digest != "" && pin.Digest != "" {
		what = append(what, fmt.Sprintf("expected %s, found %s", pin.Digest, d.Digest))
	} else if d.Digest != "" {
		what = append(what, "found "+d.Digest)
	}
	if d.UpstreamDigest != "" {
		what = append(what, fmt.Sprintf("upstreamDigest expected %s, found %s", pin.UpstreamDigest, d.UpstreamDigest))
	}
	return d.Name + " (" + strings.Join(what, "; ") + ")"
}

// maxDriftMessage leaves room for what to do in a condition's message, in
// bytes.
const maxDriftMessage = maxMessage - 200

// driftMessage names as many as fit, in the order of the spec.
func driftMessage(s *serverScope, pins []contract.Pin, broken map[string]string) string {
	order := []string{instructionsKey}
	for _, pin := range pins {
		order = append(order, pin.Name)
	}
	out, told := "", 0
	for _, name := range order {
		text := broken[name]
		if text == "" {
			continue
		}
		if told > 0 && len(out)+len(text) > maxDriftMessage {
			break
		}
		if told > 0 {
			out += "; "
		}
		out += text
		told++
	}
	if more := len(broken) - told; more > 0 {
		out += fmt.Sprintf("; and %d more", more)
	}
	return fmt.Sprintf("Not as promised: %s. Mend the server, or pin in spec.contract what status.tools of MCPServer %s has now.", out, s.server.Name)
}

// drifted is a declared tool that the contract hides.
func (s *serverScope) drifted(name string) (contract.Tool, bool) {
	if s.catalog == nil {
		return contract.Tool{}, false
	}
	tool, ok := s.catalog.Drifted[name]
	return tool, ok
}
