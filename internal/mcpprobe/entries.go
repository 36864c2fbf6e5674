// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpprobe

import (
	"cmp"
	"context"
	"slices"

	"github.com/espalier-dev/espalier/internal/contract"
)

// EntryList is one list but that of the tools, bounded as that is.
type EntryList struct {
	// Known: the list was read, or is declared to be none.
	Known bool
	// Entries, sorted by name, one for each.
	Entries []Entry
}

// Count of entries; nil when unknown.
func (l EntryList) Count() *int {
	if !l.Known {
		return nil
	}
	n := len(l.Entries)
	return &n
}

// Entry is one listed resource, template or prompt.
type Entry struct {
	// Name is the URI, the URI template or the name, escaped by EscapeName.
	Name string
	// Digest as in contract.Tool; empty for what has none.
	Digest string
}

// entrySet collects the entries of a list, one for each name.
type entrySet struct {
	key     string
	secrets []string
	byName  map[string]Entry
}

// add takes in one entry and says whether it brought something new. Of two
// definitions of one name the one with the smaller digest counts, whatever the
// order of the list.
func (s *entrySet) add(raw []byte, _ int) bool {
	name, ok := stringMember(raw, s.key)
	if !ok {
		return false
	}
	entry := Entry{Name: EscapeName(struck(name, s.secrets))}
	if digests, err := contract.OfEntry(raw, s.key); err == nil {
		entry.Digest = digests.Digest
	}
	old, known := s.byName[entry.Name]
	if !known || entry.Digest < old.Digest {
		s.byName[entry.Name] = entry
	}
	return !known
}

// entriesOf reads the list of l.
func (w *lister) entriesOf(ctx context.Context, l listing) (EntryList, *failure) {
	set := &entrySet{key: l.id, secrets: w.secrets, byName: map[string]Entry{}}
	if f := w.list(ctx, l, set.add); f != nil {
		return EntryList{}, f
	}
	list := EntryList{Known: true}
	for _, entry := range set.byName {
		list.Entries = append(list.Entries, entry)
	}
	slices.SortFunc(list.Entries, func(a, b Entry) int { return cmp.Compare(a.Name, b.Name) })
	return list, nil
}

// others reads the lists of resources, templates and prompts that are
// declared. Templates are asked for only of a server that is ours, to see that
// it serves its catalog; nothing is told of those of others. Without tools
// these lists are what the server is for; with tools a failure is a warning.
func (e *exchange) others(ctx context.Context, w *lister, r *Report) *failure {
	for _, other := range []struct {
		listing listing
		list    *EntryList
		asked   bool
	}{
		{resourcesListing, &r.Resources, true},
		{templatesListing, &r.Templates, w.h.catalogDigest != ""},
		{promptsListing, &r.Prompts, true},
	} {
		if !w.h.declares(other.listing.capability) {
			other.list.Known = true
			continue
		}
		if w.h.capabilities == nil || !other.asked {
			continue // not declared one way or the other: unknown
		}
		list, f := w.entriesOf(ctx, other.listing)
		if f != nil {
			if r.Tools.State == ToolsNotDeclared || f.outcome == Canceled {
				return f
			}
			w.warnings.add(WarnListFailed, other.listing.method)
			continue
		}
		*other.list = list
	}
	return nil
}
