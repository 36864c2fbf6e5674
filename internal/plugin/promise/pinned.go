// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package promise

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/contract"
	"github.com/espalier-dev/espalier/internal/plugin/env"
	"github.com/espalier-dev/espalier/internal/plugin/manifest"
)

// pinned is what a server is compared with.
type pinned struct {
	// full has definitions; nil where there are digests alone.
	full *manifest.Manifest
	// instructions is a digest; empty pins nothing, unless full is set.
	instructions string
	pins         []contract.Pin
	// upstream are pins of what upstreams give, which nobody lists.
	upstream []string
}

// readPinned reads definitions or a contract.
func readPinned(path string) (*pinned, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, env.Hint(err, "Write one with \"kubectl mcp contract SERVER --definitions FILE\".")
	}
	defer func() { _ = file.Close() }()
	raw, err := io.ReadAll(io.LimitReader(file, manifest.MaxBytes+1))
	if err != nil {
		return nil, err
	}
	out, err := decode(raw)
	if err != nil {
		return nil, env.Hint(fmt.Errorf("%s: %w", path, err), "Expected is what --definitions wrote, or a contract in YAML.")
	}
	return out, nil
}

func decode(raw []byte) (*pinned, error) {
	if manifest.Is(raw) {
		m, err := manifest.Decode(raw)
		if err != nil {
			return nil, err
		}
		out := &pinned{full: m, instructions: m.Server.Digest}
		for _, e := range m.Tools {
			out.pins = append(out.pins, contract.Pin{Name: e.ID, Digest: e.Digest, Fields: e.Tool.Fields})
		}
		return out, nil
	}
	var c mcpv1.Contract
	var whole struct {
		Spec *struct {
			Contract *mcpv1.Contract `json:"contract"`
		} `json:"spec"`
		Contract *mcpv1.Contract `json:"contract"`
	}
	if len(raw) > maxContract || yaml.Unmarshal(raw, &whole) != nil {
		return nil, errors.New("it is neither definitions nor a contract")
	}
	switch {
	case whole.Spec != nil && whole.Spec.Contract != nil:
		c = *whole.Spec.Contract
	case whole.Contract != nil:
		c = *whole.Contract
	default:
		if yaml.UnmarshalStrict(raw, &c) != nil {
			return nil, errors.New("it is neither definitions nor a contract")
		}
	}
	if c.Instructions == "" && len(c.Tools) == 0 {
		return nil, errors.New("it pins nothing")
	}
	return ofContract(&c)
}

// maxContract is the largest contract that is read, in bytes.
const maxContract = 4 << 20

func ofContract(c *mcpv1.Contract) (*pinned, error) {
	out := &pinned{instructions: c.Instructions}
	for _, tool := range c.Tools {
		pin := contract.Pin{Name: tool.Name, Digest: tool.Digest}
		if f := tool.Fields; f != nil {
			pin.Fields = contract.Fields{
				Title: string(f.Title), Description: string(f.Description), InputSchema: string(f.InputSchema),
				OutputSchema: string(f.OutputSchema), Annotations: string(f.Annotations), Other: string(f.Other),
			}
		}
		if !pin.Consistent() {
			return nil, fmt.Errorf("the digest of %s is not that of its own fields: nothing could meet it", env.Line(tool.Name))
		}
		if tool.UpstreamDigest != "" {
			out.upstream = append(out.upstream, tool.Name)
		}
		out.pins = append(out.pins, pin)
	}
	slices.SortFunc(out.pins, func(a, b contract.Pin) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// choose keeps what --tool names.
func (p *pinned) choose(c *command) {
	p.pins = slices.DeleteFunc(p.pins, func(pin contract.Pin) bool { return !c.wants(pin.Name) })
	p.upstream = slices.DeleteFunc(p.upstream, func(name string) bool { return !c.wants(name) })
}
