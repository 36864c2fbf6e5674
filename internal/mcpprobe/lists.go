// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpprobe

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/espalier-dev/espalier/internal/mcp"
)

// listing reads one kind of list.
type listing struct {
	step       Step
	method     string
	capability string
	// key of the array in the result, and of what tells entries apart.
	key, id string
}

var (
	toolsListing     = listing{StepTools, mcp.MethodToolsList, "tools", "tools", "name"}
	resourcesListing = listing{StepResources, mcp.MethodResourcesList, "resources", "resources", "uri"}
	templatesListing = listing{StepTemplates, mcp.MethodResourceTemplates, "resources", "resourceTemplates", "uriTemplate"}
	promptsListing   = listing{StepPrompts, mcp.MethodPromptsList, "prompts", "prompts", "name"}
)

// lister walks the lists after a handshake; the pages are counted over all.
type lister struct {
	*exchange
	h        *handshake
	pages    int
	warnings *warnings
	// truncated: some list was cut.
	truncated bool
	ttl       *time.Duration
}

// list walks the pages of l and gives each entry to visit, which says whether
// it brought anything new. A bound that is hit after the first page cuts the
// list; anything else fails it.
func (w *lister) list(ctx context.Context, l listing, visit func(entry []byte, page int) bool) *failure {
	walk := &walk{lister: w, listing: l, visit: visit}
	for walk.more() {
		result, f := w.page(ctx, l, walk.cursor)
		switch {
		case f != nil && walk.page > 0 && f.atBound():
			walk.cut(l, WarnListCut)
			return nil
		case f != nil:
			return f
		}
		if f := walk.take(result); f != nil {
			return f
		}
	}
	return nil
}

// walk is where list stands.
type walk struct {
	*lister
	listing listing
	visit   func(entry []byte, page int) bool
	page    int
	cursor  string
	looked  int // at entries, in all
	kept    int // of them: what was new
	idle    int // pages in a row without anything new
	done    bool
}

// more says whether another page is to be read, and cuts the list at a bound.
func (w *walk) more() bool {
	switch {
	case w.done:
		return false
	case w.pages >= w.bounds.Pages:
		w.cut(w.listing, WarnListCut)
		return false
	case w.idle >= w.bounds.IdlePages:
		w.cut(w.listing, WarnCursorLoop)
		return false
	}
	w.pages++
	return true
}

// take takes in one page.
func (w *walk) take(result []byte) *failure {
	before, over := w.kept, false
	f := w.entries(w.listing, result, func(entry []byte) bool {
		// What repeats is not kept, but looking at it costs all the same.
		if over = w.kept >= w.bounds.Tools || w.looked >= 2*w.bounds.Tools; over {
			return false
		}
		w.looked++
		if w.visit(entry, w.page) {
			w.kept++
		}
		return true
	})
	if f != nil {
		return f
	}
	w.idle++
	if w.kept > before {
		w.idle = 0
	}
	w.page++
	if over {
		w.done = true
		w.cut(w.listing, WarnListCut)
		return nil
	}
	w.cursor, _ = stringMember(result, "nextCursor")
	w.done = w.cursor == ""
	return nil
}

// cut notes that l was not read to its end.
func (w *lister) cut(l listing, code WarningCode) {
	w.truncated = true
	w.warnings.add(code, l.method)
}

// page asks for one page.
func (w *lister) page(ctx context.Context, l listing, cursor string) ([]byte, *failure) {
	c := &call{step: l.step, method: l.method, version: w.h.version, modern: w.h.era == EraModern, session: w.h.session}
	if cursor != "" {
		c.params = map[string]any{"cursor": cursor}
	}
	a, f := w.do(ctx, c)
	if f != nil {
		// Past the handshake it is MCP; what is wrong is the list.
		if f.outcome == NotMCP || f.outcome == UnexpectedStatus {
			f.outcome = ListFailed
		}
		return nil, f
	}
	if ttl := ttlOf(a.result); ttl != nil && (w.ttl == nil || *ttl < *w.ttl) {
		w.ttl = ttl
	}
	return a.result, nil
}

// entries walks the entries of one page.
func (w *lister) entries(l listing, result []byte, visit func([]byte) bool) *failure {
	list, ok := member(result, l.key)
	if ok && isNull(list) {
		// Servers that encode an absent list so are read by most clients.
		w.warnings.add(WarnNullList, l.method)
		return nil
	}
	if !ok || !walkArray(list, visit) {
		return &failure{outcome: ListFailed, flaw: FlawMissingFields, step: l.step, status: 200, mediaType: typeJSON}
	}
	return nil
}

// ttlOf gives the ttlMs hint of a result, at most a day.
func ttlOf(result []byte) *time.Duration {
	value, ok := member(result, "ttlMs")
	if !ok {
		return nil
	}
	ms, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil || ms < 0 {
		return nil
	}
	ttl := time.Duration(min(ms, (24*time.Hour).Milliseconds())) * time.Millisecond
	return &ttl
}

// warnings are collected sorted and bounded, each once.
type warnings struct{ all map[Warning]bool }

const (
	// maxWarnings are told; maxCollected bounds those that are counted.
	maxWarnings  = 64
	maxCollected = 4096
)

// add notes a warning; name is escaped already.
func (w *warnings) add(code WarningCode, name string) {
	if w.all == nil {
		w.all = map[Warning]bool{}
	}
	if len(w.all) < maxCollected {
		w.all[Warning{Code: code, Name: name}] = true
	}
}

func (w *warnings) sorted() (told []Warning, omitted int) {
	for warning := range w.all {
		told = append(told, warning)
	}
	slices.SortFunc(told, func(a, b Warning) int {
		return cmp.Or(cmp.Compare(a.Code, b.Code), cmp.Compare(a.Name, b.Name))
	})
	if len(told) > maxWarnings {
		return told[:maxWarnings], len(told) - maxWarnings
	}
	return told, 0
}
