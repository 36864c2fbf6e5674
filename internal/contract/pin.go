// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package contract

// Pin is what was promised of one tool. Digests that are empty pin nothing.
type Pin struct {
	// Name on the wire, after prefix and overrides.
	Name string `json:"name"`
	// Digest of the whole tool.
	Digest string `json:"digest,omitempty"`
	// Fields: with a Digest they tell which part differs, and an absent one
	// stands for an absent part; without, each that is set is pinned by itself.
	Fields Fields `json:"fields,omitzero"`
	// UpstreamDigest is of the definition as the tool's upstream gave it,
	// before prefix and overrides.
	UpstreamDigest string `json:"upstreamDigest,omitempty"`
}

// Consistent reports whether Digest is that of Name and Fields. Pins without
// either have nothing to contradict.
func (p Pin) Consistent() bool {
	if p.Digest == "" || p.Fields == (Fields{}) {
		return true
	}
	digest, err := whole(p.Name, p.Fields)
	return err == nil && digest == p.Digest
}

// Broken reports whether tool is not what was promised, and names the parts
// that differ as far as that is known.
func (p Pin) Broken(tool Tool) (parts []string, broken bool) {
	if p.Digest == "" {
		parts = Differing(p.Fields, masked(tool.Fields, p.Fields))
		return parts, len(parts) > 0
	}
	if p.Digest == tool.Digest {
		return nil, false
	}
	if p.Fields != (Fields{}) {
		parts = Differing(p.Fields, tool.Fields)
	}
	return parts, true
}

// masked leaves of got what want has something to say of.
func masked(got, want Fields) Fields {
	keep := func(got, want string) string {
		if want == "" {
			return ""
		}
		return got
	}
	return Fields{
		Title:        keep(got.Title, want.Title),
		Description:  keep(got.Description, want.Description),
		InputSchema:  keep(got.InputSchema, want.InputSchema),
		OutputSchema: keep(got.OutputSchema, want.OutputSchema),
		Annotations:  keep(got.Annotations, want.Annotations),
		Other:        keep(got.Other, want.Other),
	}
}
