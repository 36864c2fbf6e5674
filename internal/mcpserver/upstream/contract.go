// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"slices"

	"github.com/espalier-dev/espalier/internal/contract"
	"github.com/espalier-dev/espalier/internal/mcpserver/upstream/client"
	"github.com/espalier-dev/espalier/internal/podreport"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// hold holds the tools of upstreams to the contract, and tells which differ.
// Where it hides, those are left out.
func (c *composer) hold(config *serverconfig.Config, listings map[string]Listing) []podreport.Drift {
	if config.Contract == nil {
		return nil
	}
	var out []podreport.Drift
	for _, pin := range config.Contract.Tools {
		found := false
		// Several upstreams may bring a tool of the name, each for other callers.
		c.tools = slices.DeleteFunc(c.tools, func(t candidate[serverconfig.Tool]) bool {
			if t.id != pin.Name {
				return false
			}
			found = true
			drift, broken := judge(pin, t.entry.Definition, t.entry.Upstream, listings)
			if !broken {
				return false
			}
			if drift.Hidden = config.Contract.Hide; drift.Hidden {
				c.refuse(kindTool, pin.Name, podreport.ReasonDrifted)
			}
			out = append(out, drift)
			return drift.Hidden
		})
		if !found {
			// A declared tool may stand for one of an upstream.
			out = append(out, declaredDrift(config, pin, listings)...)
		}
	}
	return out
}

// declaredDrift tells only what the operator does not know: another definition
// behind a declared tool.
func declaredDrift(config *serverconfig.Config, pin contract.Pin, listings map[string]Listing) []podreport.Drift {
	at := slices.IndexFunc(config.Tools, func(t serverconfig.Tool) bool { return t.Name == pin.Name })
	if at < 0 || config.Tools[at].Upstream == nil || pin.UpstreamDigest == "" {
		return nil
	}
	drift, broken := judge(contract.Pin{Name: pin.Name, UpstreamDigest: pin.UpstreamDigest}, nil, config.Tools[at].Upstream, listings)
	if !broken {
		return nil
	}
	return []podreport.Drift{drift}
}

// judge compares what would be served, unless it is nil, and what the upstream
// gives with the pin.
func judge(pin contract.Pin, definition []byte, of *serverconfig.UpstreamTool, listings map[string]Listing) (podreport.Drift, bool) {
	drift, broken := podreport.Drift{Name: pin.Name}, false
	if definition != nil {
		// One without a digest is nothing that was promised.
		tool, _ := contract.Of(definition)
		if drift.Parts, broken = pin.Broken(tool); broken {
			drift.Digest = tool.Digest
		}
	}
	if pin.UpstreamDigest == "" || of == nil {
		return drift, broken
	}
	listing, known := listings[of.Upstream]
	if !known {
		return drift, broken // It is away, which is told elsewhere.
	}
	at := slices.IndexFunc(listing.Tools, func(e client.Entry) bool { return e.Name == of.Tool })
	if at < 0 {
		return drift, broken
	}
	if own, _ := contract.Of(listing.Tools[at].Definition); own.Digest != pin.UpstreamDigest {
		drift.UpstreamDigest, broken = own.Digest, true
	}
	return drift, broken
}
