// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/espalier-dev/espalier/internal/plugin/env"
)

const wantNoTraffic = `MCPServer team-a/no-traffic is not ready (CrashLoopBackOff), since 5m.
Proofs are fresh: the operator in namespace espalier-system lives.

Cause: pods (CrashLoopBackOff)
  The container server of pod no-traffic-mcp-1-0 exits again and again with status 3 (Error).

Evidence:
  Container server waits: CrashLoopBackOff: back-off 5m0s restarting failed container
  Container server ended 20s ago with status 3 (Error), restarted 4 times
  The last lines of the log of pod no-traffic-mcp-1-0:
    no key

What to do:
  Read: kubectl logs no-traffic-mcp-1-0 -c server -n team-a --previous.

The chain:
  operator    ok        Proofs are fresh: the operator in namespace espalier-system lives.
  spec        ok        The spec is sound.
  references  ok        All Secrets and ConfigMaps that are named exist.
  deployment  ok        Deployment no-traffic-mcp makes the pods.
  pods        broken    CrashLoopBackOff
  probe       none      No pod takes traffic yet.
  report      none      The server has its own catalog.
  catalog     none      The server has its own catalog.
  upstreams   none      The server names no upstreams.
  contract    none      The server has no contract.
`

func TestRender(t *testing.T) {
	f := seen(t, "no-traffic")
	f.exits(3)
	f.Logs[f.Pods[0].Name] = []string{"no key"}
	d := Diagnose(f)
	var out bytes.Buffer
	Render(&out, d, env.Style{}, 0)
	if diff := cmp.Diff(wantNoTraffic, out.String()); diff != "" {
		t.Error(diff)
	}
	for _, width := range []int{100, 60, 40} {
		out.Reset()
		Render(&out, d, env.Style{}, width)
		for _, line := range strings.Split(out.String(), "\n")[1:] {
			// A word is never broken: it may be a command to be copied.
			if n := utf8.RuneCountInString(line); n > width && len(strings.Fields(line)) > 3 {
				t.Errorf("%d columns in a terminal of %d: %q", n, width, line)
			}
		}
		if got, want := strings.Fields(out.String()), strings.Fields(wantNoTraffic); !cmp.Equal(got, want) {
			t.Errorf("words are lost in a terminal of %d: %s", width, cmp.Diff(want, got))
		}
	}
}
