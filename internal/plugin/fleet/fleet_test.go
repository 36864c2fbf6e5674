// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/plugin/env"
	"github.com/espalier-dev/espalier/internal/plugin/operator"
	"github.com/espalier-dev/espalier/internal/rivals"
)

// noon is now in these tests; all that is kept happened five minutes before.
var noon = time.Date(2026, 1, 1, 0, 5, 0, 0, time.UTC)

// renewed is the state of an operator of all namespaces that renewed its Lease
// that long ago.
func renewed(ago time.Duration) operator.State {
	return operator.State{Now: noon, Leases: []coordinationv1.Lease{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "espalier-system", Name: rivals.LeaseName, Labels: rivals.Labels(nil)},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: ptr.To("me"), LeaseDurationSeconds: ptr.To(int32(15)), RenewTime: ptr.To(metav1.NewMicroTime(noon.Add(-ago))),
		},
	}}}
}

func stored(t *testing.T, states ...string) []mcpv1.MCPServer {
	t.Helper()
	var out []mcpv1.MCPServer
	for _, state := range states {
		raw, err := os.ReadFile(filepath.Join("..", "..", "..", "test", "states", "testdata", "mcpserver-"+state+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		var server mcpv1.MCPServer
		if err := yaml.Unmarshal(raw, &server); err != nil {
			t.Fatal(err)
		}
		server.Name = state
		out = append(out, server)
	}
	return out
}

// some states, in no order.
var some = []string{"proved", "failing", "zero", "contract-broken", "rolling-out", "starting", "stale", "unseen", "wants-auth", "invalid", "catalog-pending"}

func TestGet(t *testing.T) {
	tests := map[string]struct {
		state operator.State
		want  string
	}{
		"fresh": {renewed(2 * time.Second), `NAME              HEALTH     REASON            REPLICAS   TOOLS   PROTOCOL     SINCE   PROOF
failing           NotReady   NotMCP            0/1        -       2025-06-18   5m      fresh
invalid           NotReady   InvalidFilter     1/1        0       2026-07-28   5m      fresh
stale             Unknown    Stale             1/1        2       2026-07-28   5m      old
unseen            Unknown    Pending           -/1        -       -            -       -
contract-broken   Degraded   Drifted           1/1        1       2026-07-28   5m      fresh
rolling-out       Degraded   ImagePullFailed   1/1        1       2025-06-18   5m      fresh
starting          Starting   NotMCP            0/1        -       -            5m      -
catalog-pending   Updating   CatalogPending    1/1        1       2026-07-28   5m      fresh
zero              Idle       ScaledToZero      0/0        -       -            5m      -
proved            Ready      Proved            1/1        1       2026-07-28   5m      fresh
wants-auth        Ready      AuthRequired      0/1        -       -            5m      fresh

11 servers: 2 not ready, 2 unknown, 2 degraded, 1 starting, 1 updating, 1 idle, 2 ready; 4 tools proved.
Proofs are fresh: the operator in namespace espalier-system lives.
`},
		"unreadable": {operator.State{Now: noon, Unknown: "you may not list Leases in all namespaces"}, ""},
		"down":       {renewed(4 * time.Minute), ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := render(t, Judge(stored(t, some...), test.state), test.state, 0)
			if test.want != "" {
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Error(diff)
				}
				return
			}
			if strings.Contains(got, "fresh:") || strings.Contains(got, " fresh\n") {
				t.Errorf("proofs are said to be fresh:\n%s", got)
			}
			if name == "down" && (strings.Contains(got, "Ready ") || !strings.Contains(got, "not known since 4m ago") || !strings.Contains(got, "11 unknown; 0 tools proved")) {
				t.Errorf("an old status is believed:\n%s", got)
			}
		})
	}
}

func render(t *testing.T, rows []Row, state operator.State, width int) string {
	t.Helper()
	var out bytes.Buffer
	style := env.New(genericiooptions.IOStreams{Out: &out}).Style()
	table := NewTable(rows, false, false, width, style)
	table.Head(&out)
	for _, row := range rows {
		table.Row(&out, row)
	}
	out.WriteString("\n")
	for _, line := range Summary(rows, state) {
		out.WriteString(line + "\n")
	}
	return out.String()
}

// TestFits: no line is wider than the terminal, what matters most is still
// there, and only a cut name shows that it was cut.
func TestFits(t *testing.T) {
	state := renewed(time.Second)
	rows := Judge(stored(t, some...), state)
	for _, width := range []int{120, 80, 60, 40, 30} {
		table, _, _ := strings.Cut(render(t, rows, state, width), "\n\n")
		lines := strings.Split(table, "\n")
		for _, line := range lines {
			if n := utf8.RuneCountInString(line); n > width {
				t.Errorf("%d columns in a terminal of %d: %q", n, width, line)
			}
		}
		if !strings.HasPrefix(lines[0], "NAME") || !strings.Contains(lines[0], "HEALTH") || !strings.Contains(lines[0], "REASON") {
			t.Errorf("a terminal of %d shows %q", width, lines[0])
		}
	}
}

// TestScope: a namespace that no operator works on is not known, beside one that is.
func TestScope(t *testing.T) {
	state := renewed(time.Second)
	state.Leases[0].Labels = rivals.Labels([]string{"team-a"})
	servers := stored(t, "proved", "proved")
	servers[1].Namespace = "team-b"
	rows := Judge(servers, state)
	at := slices.IndexFunc(rows, func(r Row) bool { return r.Server.Namespace == "team-b" })
	if rows[at].Health != Unknown || rows[1-at].Health != Ready || at != 0 {
		t.Errorf("%+v", rows)
	}
	told := strings.Join(Told(state, []string{"team-a", "team-b"}), "\n")
	if !strings.Contains(told, "No operator works on this namespace") || !strings.Contains(told, "Proofs are fresh") {
		t.Error(told)
	}
}
