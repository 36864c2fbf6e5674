// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/podreport"
	"github.com/espalier-dev/espalier/internal/prober"
)

// TestHostileServer: whatever names a server gives itself and its tools, the
// API server takes the status.
func TestHostileServer(t *testing.T) {
	w := newWorld(t)
	w.server(`{type: Container, container: {image: "i"}}`)
	w.rollOut()
	w.targeted(1)
	names := []string{"", " ", "\x00", "a\nb", "\u202e", "\xff\xfe", strings.Repeat("x", 5000), strings.Repeat("\u00e4", 300), `\`, `""`, "<script>"}
	for i := range 600 {
		names = append(names, fmt.Sprint(i))
	}
	r := w.listing()
	r.Server = mcpprobe.ServerInfo{}
	r.ProtocolVersion, r.Capabilities = "", []string{"", "tools", strings.Repeat("c", 64)}
	for _, name := range names {
		r.Tools.Tools = append(r.Tools.Tools, mcpprobe.Tool{Name: mcpprobe.EscapeName(name)})
	}
	w.prove(r)
	w.becomes(map[string]string{"Ready": "True Proved"})
	status := w.web().Status
	if int(*status.ToolCount) != len(names) || len(status.Tools) != 256 || int(*status.ToolsOmitted) != len(names)-256 {
		t.Errorf("%d tools, %d named, %d omitted", *status.ToolCount, len(status.Tools), *status.ToolsOmitted)
	}
	r.Server = mcpprobe.ServerInfo{Name: mcpprobe.EscapeName("\x1b[2J"), Version: mcpprobe.EscapeName(strings.Repeat("\u202e", 20))}
	w.prove(r)
	w.eventually(soon, "the server's name", func() string {
		if s := w.web().Status.Server; s != nil && s.Name == `\x1b[2J` {
			return ""
		}
		return "it is not there"
	})
	w.rest()
}

// TestHostilePod: a pod of the shared image that reports nonsense is told
// within the bounds of a condition.
func TestHostilePod(t *testing.T) {
	w := newWorld(t)
	twoTools(w)
	w.serve()
	r := w.listing(json.RawMessage(`{"name":"stranger"}`))
	_, digest, _ := w.catalog()
	r.CatalogDigest = digest
	r.Pod = &podreport.Report{CatalogDigest: digest, CatalogState: podreport.CatalogState(strings.Repeat("S", 64))}
	for range 1000 {
		r.Pod.NotServed = append(r.Pod.NotServed, podreport.NotServed{Kind: "tool", Name: strings.Repeat("n", 256), Reason: strings.Repeat("R", 64)})
	}
	w.prove(r)
	w.becomes(map[string]string{"Synced": "False CatalogPending", "Ready": "True Proved"})
	w.clock.forward(31e9)
	w.pass()
	w.becomes(map[string]string{"Synced": "False ListMismatch", "Ready": "False ListMismatch"})
	w.toolBecomes("alpha", map[string]string{"Served": "False ListMismatch"})
	for _, outcome := range mcpprobe.Outcomes {
		verdict := prober.Failing
		if outcome == mcpprobe.Proved || outcome == mcpprobe.AuthRequired {
			continue
		}
		w.judge(verdict, &mcpprobe.Report{Outcome: outcome, Step: mcpprobe.StepInitialize, HTTPStatus: 599, RPCCode: -1 << 31, Flaw: mcpprobe.FlawMediaType, MediaType: "text/html", Limit: 1 << 40})
		w.becomes(map[string]string{"Ready": "False " + string(outcome), "Healthy": "False " + string(outcome)})
	}
	w.prove(w.report())
	w.becomes(map[string]string{"Ready": "True Proved"})
	w.toolBecomes("alpha", isServed)
}
