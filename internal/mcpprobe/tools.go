// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpprobe

import (
	"cmp"
	"slices"

	"github.com/espalier-dev/espalier/internal/contract"
	"github.com/espalier-dev/espalier/internal/mcp"
)

// toolSet collects listed tools, one for each name.
type toolSet struct {
	byName   map[string]Tool
	pageOf   map[string]int
	warnings *warnings
	secrets  []string
}

func newToolSet(w *warnings, secrets []string) *toolSet {
	return &toolSet{byName: map[string]Tool{}, pageOf: map[string]int{}, warnings: w, secrets: secrets}
}

// add takes in one entry of the list and says whether it brought something
// new. An entry without a name is left out; anything else that is odd is kept
// and flagged, so that the count is the one that clients see.
func (s *toolSet) add(entry []byte, page int) bool {
	name, ok := stringMember(entry, "name")
	if !ok {
		s.warnings.add(WarnMalformedEntry, toolsListing.method)
		return false
	}
	// Names may be up to a body long: hold and compare the bounded form.
	tool := Tool{Name: EscapeName(struck(name, s.secrets))}
	s.judgeName(name, tool.Name)
	if schema, _ := member(entry, "inputSchema"); !isObject(schema) {
		s.warnings.add(WarnSchemaNotObject, tool.Name)
	}
	if digests, err := contract.Of(entry); err == nil {
		tool.Digest, tool.Fields = digests.Digest, digests.Fields
	} else {
		s.warnings.add(WarnNoDigest, tool.Name)
	}
	return s.keep(tool, page)
}

func (s *toolSet) judgeName(name, escaped string) {
	switch {
	case !mcp.ValidToolName(name):
		s.warnings.add(WarnNameOutsideAdvice, escaped)
	case len(name) > mcp.MaxClientToolName:
		s.warnings.add(WarnNameTooLongForClients, escaped)
	}
}

// keep holds the definition with the smallest digest of each name, which does
// not depend on the order of the list. A page that repeats what an earlier
// one said in the same words is a matter of paging, not of names.
func (s *toolSet) keep(tool Tool, page int) bool {
	old, known := s.byName[tool.Name]
	if !known {
		s.byName[tool.Name], s.pageOf[tool.Name] = tool, page
		return true
	}
	if old.Digest != tool.Digest || s.pageOf[tool.Name] == page {
		s.warnings.add(WarnDuplicateName, tool.Name)
	}
	if tool.Digest < old.Digest {
		s.byName[tool.Name] = tool
	}
	return false
}

func (s *toolSet) sorted() []Tool {
	tools := make([]Tool, 0, len(s.byName))
	for _, tool := range s.byName {
		tools = append(tools, tool)
	}
	slices.SortFunc(tools, func(a, b Tool) int { return cmp.Compare(a.Name, b.Name) })
	return tools
}
