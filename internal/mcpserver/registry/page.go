// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"encoding/base64"
	"errors"
	"strings"
)

// position is a place in the order of lists: entryPoint tools first, then by
// name. A cursor holds the last position given out and nothing else, so that
// it means the same on every replica and after every change: what was added
// or removed meanwhile never makes another entry stand twice or be skipped.
type position struct {
	entryPoint bool
	name       string
}

func (e *Entry) position() position { return position{e.EntryPoint, e.Name} }

func (p position) compare(q position) int {
	if p.entryPoint != q.entryPoint {
		if p.entryPoint {
			return -1
		}
		return 1
	}
	return strings.Compare(p.name, q.name)
}

const (
	// maxCursor is longer than the cursor of the longest URI.
	maxCursor = 4 << 10
	// pageEntries is the most entries of one page.
	pageEntries = 1000
	// maxPageBytes bounds a page; a list's message has to stay below
	// limits.maxMessageBytes, half of which is left for the rest.
	maxPageBytes = 4 << 20
)

// ErrCursor says that a cursor was not made here.
var ErrCursor = errors.New("the cursor is not valid")

const (
	cursorEntry = "e:"
	cursorOther = "o:"
)

func (p position) cursor() string {
	prefix := cursorOther
	if p.entryPoint {
		prefix = cursorEntry
	}
	return base64.RawURLEncoding.EncodeToString([]byte(prefix + p.name))
}

func parseCursor(cursor string) (position, error) {
	if len(cursor) > maxCursor {
		return position{}, ErrCursor
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil {
		return position{}, ErrCursor
	}
	p := position{name: string(raw)}
	if name, ok := strings.CutPrefix(p.name, cursorEntry); ok {
		p = position{entryPoint: true, name: name}
	} else {
		p.name = strings.TrimPrefix(p.name, cursorOther)
	}
	// What does not read back as it was given was not made here; the decoder
	// skips line breaks, for one.
	if p.name == "" || p.cursor() != cursor {
		return position{}, ErrCursor
	}
	return p, nil
}

// Page gives the tools after cursor (empty: from the start) and the cursor of
// the next page, empty at the end. visible (nil: all) chooses what the caller
// may see.
func (s *Snapshot) Page(cursor string, visible func(*Tool) bool) (page []*Tool, next string, err error) {
	return s.tools.page(cursor, s.pageBudget(), visible)
}

// pageBudget bounds a page in bytes.
func (s *Snapshot) pageBudget() int64 { return min(s.Config.Limits.MaxMessageBytes/2, maxPageBytes) }
