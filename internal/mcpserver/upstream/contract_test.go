// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/espalier-dev/espalier/internal/contract"
	"github.com/espalier-dev/espalier/internal/podreport"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

func digestOf(t *testing.T, definition string) contract.Tool {
	t.Helper()
	tool, err := contract.Of([]byte(definition))
	if err != nil {
		t.Fatal(err)
	}
	return tool
}

// TestContractOfUpstreams: what differs is told, and left out where the
// contract hides; max counts what is left.
func TestContractOfUpstreams(t *testing.T) {
	const now = `{"name":"q","description":"Two.","inputSchema":{"type":"object"}}`
	then := digestOf(t, `{"name":"u_q","description":"One.","inputSchema":{"type":"object"}}`)
	today, own := digestOf(t, `{"name":"u_q","description":"Two.","inputSchema":{"type":"object"}}`), digestOf(t, now)
	for name, test := range map[string]struct {
		pin    contract.Pin
		hide   bool
		drift  []podreport.Drift
		served []string
	}{
		"kept":   {contract.Pin{Name: "u_q", Digest: today.Digest, UpstreamDigest: own.Digest}, true, nil, []string{"u_q"}},
		"told":   {contract.Pin{Name: "u_q", Digest: then.Digest, Fields: then.Fields}, false, []podreport.Drift{{Name: "u_q", Digest: today.Digest, Parts: []string{"description"}}}, []string{"u_q"}},
		"hidden": {contract.Pin{Name: "u_q", Digest: then.Digest}, true, []podreport.Drift{{Name: "u_q", Digest: today.Digest, Hidden: true}}, []string{"u_r"}},
		"another behind the same face": {
			contract.Pin{Name: "u_q", Digest: today.Digest, UpstreamDigest: then.Digest}, true,
			[]podreport.Drift{{Name: "u_q", UpstreamDigest: own.Digest, Hidden: true}}, []string{"u_r"},
		},
		"not there": {contract.Pin{Name: "u_z", Digest: today.Digest}, true, nil, []string{"u_q"}},
	} {
		t.Run(name, func(t *testing.T) {
			config := &serverconfig.Config{
				Upstreams: []serverconfig.Upstream{{Name: "u", Prefix: "u_"}}, Policy: &serverconfig.ToolsPolicy{Max: 1},
				Contract: &serverconfig.Contract{Hide: test.hide, Tools: []contract.Pin{test.pin}},
			}
			out := Compose(config, map[string]Listing{"u": listing(now, `{"name":"r","description":"R.","inputSchema":{"type":"object"}}`)})
			if diff := cmp.Diff(test.drift, out.Drift); diff != "" {
				t.Errorf("drift (-want +got):\n%s", diff)
			}
			var served []string
			for _, tool := range out.Config.Tools {
				served = append(served, tool.Name)
			}
			if !slices.Equal(served, test.served) {
				t.Errorf("served %v, want %v", served, test.served)
			}
		})
	}
}

// TestContractBehindDeclared: a declared tool that calls one of an upstream is
// held to what that upstream gives.
func TestContractBehindDeclared(t *testing.T) {
	const now = `{"name":"q","description":"Two.","inputSchema":{"type":"object"}}`
	config := &serverconfig.Config{
		Tools:     []serverconfig.Tool{{Name: "query", Upstream: &serverconfig.UpstreamTool{Upstream: "u", Tool: "q"}}},
		Upstreams: []serverconfig.Upstream{{Name: "u", Exclude: []string{"*"}}}, Policy: &serverconfig.ToolsPolicy{Max: 1},
		Contract: &serverconfig.Contract{Tools: []contract.Pin{{Name: "query", UpstreamDigest: "v1:other"}}},
	}
	out := Compose(config, map[string]Listing{"u": listing(now)})
	want := []podreport.Drift{{Name: "query", UpstreamDigest: digestOf(t, now).Digest}}
	if diff := cmp.Diff(want, out.Drift); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
