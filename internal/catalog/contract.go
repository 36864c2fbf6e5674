// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"strings"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/contract"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// Pins are the tools of spec.contract, in its order.
func Pins(server *mcpv1.MCPServer) []contract.Pin {
	c := server.Spec.Contract
	if c == nil {
		return nil
	}
	out := make([]contract.Pin, 0, len(c.Tools))
	for _, t := range c.Tools {
		pin := contract.Pin{Name: t.Name, Digest: t.Digest, UpstreamDigest: t.UpstreamDigest}
		if f := t.Fields; f != nil {
			pin.Fields = contract.Fields{
				Title: string(f.Title), Description: string(f.Description), InputSchema: string(f.InputSchema),
				OutputSchema: string(f.OutputSchema), Annotations: string(f.Annotations), Other: string(f.Other),
			}
		}
		out = append(out, pin)
	}
	return out
}

// CheckContract judges spec.contract by itself.
func CheckContract(server *mcpv1.MCPServer) Verdict {
	for _, pin := range Pins(server) {
		if !pin.Consistent() {
			return refused(mcpv1.ReasonInvalidContract,
				"spec.contract.tools: digest of %s is not that of its name and fields, so nothing can meet both. Take both from one place, or leave fields out.", pin.Name)
		}
	}
	return accepted(mcpv1.ReasonAccepted, "The spec is sound.")
}

// hides reports whether what drifts is withheld.
func hides(server *mcpv1.MCPServer) bool {
	return server.Spec.Contract != nil && server.Spec.Contract.OnDrift == mcpv1.DriftHide
}

// holdToContract withholds declared tools that are not what was promised,
// where the contract asks for it. Those of upstreams are known in the pods
// only, which hold them to it.
func (c *Catalog) holdToContract(server *mcpv1.MCPServer) {
	c.Drifted = map[string]contract.Tool{}
	if !hides(server) {
		return
	}
	tools := map[string]*Compiled{}
	for _, t := range c.Served {
		if t.List == Tools {
			tools[t.Name()] = t
		}
	}
	for _, pin := range Pins(server) {
		t := tools[pin.Name]
		if t == nil {
			continue
		}
		parts, broken := pin.Broken(t.Wire)
		if !broken {
			continue
		}
		where := ""
		if len(parts) > 0 {
			where = " (" + strings.Join(parts, ", ") + ")"
		}
		delete(c.Served, t.ID)
		c.reserved[Tools] = append(c.reserved[Tools], pin.Name)
		c.Drifted[pin.Name] = t.Wire
		c.Verdicts[t.ID] = refused(mcpv1.ReasonDrifted,
			"spec.contract of MCPServer %s promises another %s%s and hides this one: its digest is %s. Change one to meet the other.", server.Name, pin.Name, where, t.Wire.Digest)
	}
}

// addContract tells the pods what tools of upstreams are held to.
func (c *Catalog) addContract(server *mcpv1.MCPServer) {
	pins := Pins(server)
	if len(pins) == 0 {
		return
	}
	c.Config.Contract = &serverconfig.Contract{Hide: hides(server), Tools: pins}
	if hides(server) {
		c.Config.Require(serverconfig.FeatureContract)
	}
}
