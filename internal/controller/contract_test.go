// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"strings"
	"testing"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/catalog"
	"github.com/espalier-dev/espalier/internal/contract"
	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/podreport"
	"github.com/espalier-dev/espalier/internal/prober"
)

// pinned gives the spec of a contract with the digests that alpha and beta of
// a world have.
func pinned(w *world, more string) string {
	c, _ := w.catalog()
	alpha := c.Served[catalog.ID{Kind: catalog.KindTool, Name: "alpha"}].Wire
	beta := c.Served[catalog.ID{Kind: catalog.KindTool, Name: "beta"}].Wire
	return fmt.Sprintf(`contract: {%s tools: [{name: alpha, digest: "%s", fields: {inputSchema: "%s"}}, {name: beta, digest: "%s"}]}`,
		more, alpha.Digest, alpha.Fields.InputSchema, beta.Digest)
}

var otherDigest = "v1:sha256:" + strings.Repeat("0", 64)

func TestContract(t *testing.T) {
	for name, test := range map[string]struct {
		more    string
		happens func(*world)
		// now changes what the replicas show.
		now  func(*world, *mcpprobe.Report)
		want string
		says []string
	}{
		"kept": {want: "True ContractMet"},
		"a description": {
			happens: func(w *world) { w.tool("alpha", `{expression: {text: "'a'"}, description: Another.}`) },
			want:    "False Drifted", says: []string{"alpha (description; expected v1:sha256:", "found v1:sha256:", "status.tools of MCPServer web"},
		},
		"hidden": {
			more:    "onDrift: Hide,",
			happens: func(w *world) { w.tool("alpha", `{expression: {text: "'a'"}, description: Another.}`) },
			want:    "False Drifted", says: []string{"alpha (description; hidden; expected v1:sha256:"},
		},
		"gone": {
			happens: func(w *world) { w.tools = w.tools[:1] },
			want:    "False Drifted", says: []string{"beta (not listed)"},
		},
		"no list was read": {
			now:  func(_ *world, r *mcpprobe.Report) { r.Tools.State, r.Tools.Tools = "", nil },
			want: "Unknown Pending",
		},
		"instructions": {
			more: fmt.Sprintf("instructions: %q,", otherDigest),
			now:  func(_ *world, r *mcpprobe.Report) { r.Instructions = contract.OfText("Be kind.") },
			want: "False Drifted", says: []string{"the instructions (expected " + otherDigest + ", found " + contract.OfText("Be kind.") + ")"},
		},
		"what an upstream gives": {
			now: func(_ *world, r *mcpprobe.Report) {
				r.Pod.Drift = []podreport.Drift{{Name: "beta", UpstreamDigest: otherDigest}}
			},
			want: "False Drifted", says: []string{"beta (upstreamDigest expected , found " + otherDigest + ")"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, `{}`)
			spec := pinned(w, test.more)
			if test.happens != nil {
				test.happens(w)
			}
			w.spec(`{` + spec + `}`)
			w.deploy()
			r := w.report()
			if test.now != nil {
				test.now(w, r)
			}
			w.observe(w.pod("web-1"), prober.Proved, r)
			w.complete()
			status := w.pass()
			if got := condition(status.Conditions, mcpv1.ConditionContractMet); got != test.want {
				t.Errorf("ContractMet %s, want %s", got, test.want)
			}
			message := conditionVerdict(status.Conditions, mcpv1.ConditionContractMet).message
			for _, text := range test.says {
				if !strings.Contains(message, text) {
					t.Errorf("%q lacks %q", message, text)
				}
			}
			if got := condition(status.Conditions, mcpv1.ConditionReady); got != "True Proved" && r.Tools.State != mcpprobe.ToolsUnknown {
				t.Errorf("Ready %s: a broken contract is told by itself", got)
			}
		})
	}
}

// A digest that is not that of its own fields can never be met.
func TestContractThatContradictsItself(t *testing.T) {
	w := newWorld(t, `{}`)
	w.spec(`{` + strings.Replace(pinned(w, ""), "inputSchema:", "title:", 1) + `}`)
	w.serving(1)
	status := w.pass()
	if got := condition(status.Conditions, mcpv1.ConditionAccepted); got != "False InvalidContract" {
		t.Errorf("Accepted %s", got)
	}
	if got := condition(status.Conditions, mcpv1.ConditionStalled); got != "True InvalidContract" {
		t.Errorf("Stalled %s", got)
	}
}

// What was known is held while pods are replaced, and forgotten when another
// promise is made.
func TestContractIsHeld(t *testing.T) {
	w := newWorld(t, `{}`)
	w.spec(`{` + pinned(w, "") + `}`)
	w.serving(1)
	w.server.Status = w.pass()
	w.targets = map[string]prober.TargetObservation{}
	if got := condition(w.pass().Conditions, mcpv1.ConditionContractMet); got != "True ContractMet" {
		t.Errorf("between two proofs: %s", got)
	}
	w.server.Generation++
	if got := condition(w.pass().Conditions, mcpv1.ConditionContractMet); got != "Unknown Pending" {
		t.Errorf("of another promise: %s", got)
	}
}
