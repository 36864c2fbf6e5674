// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"
	"sync"

	"github.com/espalier-dev/espalier/internal/expression"
	"github.com/espalier-dev/espalier/internal/mcpserver/access"
	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
	"github.com/espalier-dev/espalier/internal/podreport"
)

// Entry is what entries of all lists have in common.
type Entry struct {
	// Name is the identity in its list: the name of a tool or prompt, the URI
	// of a resource, the URI template of a template.
	Name string
	// EntryPoint entries stand before all others in their list.
	EntryPoint bool
	// Modern and Legacy are the definitions as listed to either era.
	Modern, Legacy json.RawMessage
	Handler        call.Handler
	Metadata       map[string]string

	// when chooses the callers that the entry is for; nil is everybody.
	when   *When
	group  *group
	kind   access.Kind
	source string
	vars   func() map[string]any
}

// Vars are the expression variables that describe the entry.
func (e *Entry) Vars() map[string]any { return e.vars() }

// AccessEntry is the entry as access rules see it.
func (e *Entry) AccessEntry() access.Entry {
	return access.Entry{Kind: e.kind, Name: e.Name, Vars: e.vars}
}

// describe gives the expression variables of an entry. Most catalogs have no
// rule that reads them.
func describe(raw []byte, metadata map[string]string, source string) func() map[string]any {
	return sync.OnceValue(func() map[string]any {
		value, err := wire.Decode(raw)
		definition, ok := value.(map[string]any)
		if err != nil || !ok {
			definition = nil // It was read before: it is an object.
		}
		return expression.ToolVars(definition, metadata, source)
	})
}

// Listed is an entry of some list.
type Listed interface {
	base() *Entry
}

func (e *Entry) base() *Entry { return e }

// decode reads the definition of an entry and checks that it is of the
// identity that the entry has.
func (e *Entry) decode(raw []byte, key string) (wire.Object, *buildError) {
	definition, err := wire.DecodeObject(raw)
	if err != nil {
		return nil, &buildError{ReasonInvalidDefinition, err}
	}
	if name, _ := definition.Text(key); name != e.Name || name == "" {
		return nil, &buildError{ReasonInvalidDefinition, fmt.Errorf("the definition is of %q, the entry of %q", name, e.Name)}
	}
	e.Modern = compact(raw)
	e.Legacy = e.Modern
	e.EntryPoint = e.Metadata["entryPoint"] == "true"
	e.group = newGroup()
	e.vars = describe(e.Modern, e.Metadata, e.source)
	return definition, nil
}

// list is one list of the protocol.
type list[E Listed] struct {
	// kind of its entries, for the report: tool, resource, template, prompt.
	kind   string
	sorted []E
	// byName holds the entry of each name, or several that serve different
	// callers, in the order in which they are asked.
	byName map[string][]E
	known  map[identity]E
	// alone: of several that serve one caller none does.
	alone bool
	// hash changes when, and only when, the list does.
	hash string
}

// identity of an entry over versions of its list.
type identity struct {
	name string
	// variant tells entries of one name apart; empty for one that is alone.
	variant string
}

// get gives the first entry of a name, the zero value when there is none.
func (l *list[E]) get(name string) E {
	return l.pick(name, nil)
}

// pick gives the entry of a name that serves a caller, the zero value when
// none does. visible (nil: whoever asks) chooses what the caller may see.
func (l *list[E]) pick(name string, visible func(E) bool) E {
	var found, none E
	if l == nil {
		return none
	}
	n := 0
	for _, e := range l.byName[name] {
		if visible != nil && !visible(e) {
			continue
		}
		if n++; n == 1 {
			found = e
		}
		if visible == nil || !l.alone {
			break
		}
	}
	if n > 1 {
		return none
	}
	return found
}

// shows reports whether a caller sees e in the list.
func (l *list[E]) shows(e E, visible func(E) bool) bool {
	if visible == nil {
		return l.byName[e.base().Name][0].base() == e.base()
	}
	if !visible(e) {
		return false
	}
	same := l.byName[e.base().Name]
	return len(same) == 1 || listedAs(l.pick(e.base().Name, visible)) == e.base()
}

// listedAs gives what is behind an entry that may be the zero value.
func listedAs[E Listed](e E) *Entry {
	var none E
	if any(e) == any(none) {
		return nil
	}
	return e.base()
}

// page gives the entries after cursor (empty: from the start) and the cursor
// of the next page, empty at the end. visible (nil: all) chooses what the
// caller may see; budget bounds the page in bytes.
func (l *list[E]) page(cursor string, budget int64, visible func(E) bool) (page []E, next string, err error) {
	start := 0
	if cursor != "" {
		last, err := parseCursor(cursor)
		if err != nil {
			return nil, "", err
		}
		start = sort.Search(len(l.sorted), func(i int) bool { return l.sorted[i].base().position().compare(last) > 0 })
	}
	size := int64(0)
	for _, e := range l.sorted[start:] {
		if !l.shows(e, visible) {
			continue
		}
		size += int64(len(e.base().Modern)) + 1
		if len(page) > 0 && (len(page) == pageEntries || budget > 0 && size > budget) {
			return page, page[len(page)-1].base().position().cursor(), nil
		}
		page = append(page, e)
	}
	return page, "", nil
}

// declared is one entry of the catalog file on its way into a list.
type declared[E Listed] struct {
	name string
	// when, where not all callers are served, and the upstream that serves
	// these: another may serve others under the name.
	when, source string
	// same reports whether an entry was made from the same declaration.
	same  func(E) bool
	build func() (E, *buildError)
	// rebuild, if set, is build where before was made from another declaration
	// of the name: what of it is still right need not be made again.
	rebuild func(before E) (E, *buildError)
}

// make makes the entry.
func (d *declared[E]) make(before E, known bool) (E, *buildError) {
	if known && d.rebuild != nil {
		return d.rebuild(before)
	}
	return d.build()
}

// build makes a list. What previous (may be nil) already prepared and is
// unchanged is taken over. One bad entry is left out and named.
func build[E Listed](s *Snapshot, kind string, previous *list[E], entries []declared[E]) *list[E] {
	l := &list[E]{kind: kind, byName: make(map[string][]E, len(entries)), known: make(map[identity]E, len(entries)), alone: s.alone()}
	for _, d := range entries {
		id := identity{name: d.name}
		if d.when != "" {
			id.variant = d.source
		}
		if _, twice := l.known[id]; twice {
			s.reject(kind, d.name, ReasonDuplicate, "the name is in the catalog twice, the first counts")
			continue
		}
		var entry E
		known := false
		if previous != nil {
			entry, known = previous.known[id]
		}
		if !known || !d.same(entry) {
			made, err := prepare(func() (E, *buildError) { return d.make(entry, known) })
			if err != nil {
				s.reject(kind, d.name, err.reason, err.Error())
				continue
			}
			entry = made
			entry.base().when = s.when(d.when)
		} else if w := entry.base().when; w != nil {
			s.whens[w.text] = w
		}
		l.known[id] = entry
		l.byName[d.name] = append(l.byName[d.name], entry)
		l.sorted = append(l.sorted, entry)
	}
	slices.SortStableFunc(l.sorted, func(a, b E) int { return a.base().position().compare(b.base().position()) })
	hash := sha256.New()
	// Other rules may show a caller another list.
	rules, _ := json.Marshal(s.Config.Access) // Plain data: it cannot fail.
	hash.Write(rules)
	for _, e := range l.sorted {
		hash.Write(e.base().Modern)
		if w := e.base().when; w != nil {
			hash.Write([]byte(w.text))
		}
		hash.Write([]byte{0})
	}
	l.hash = hex.EncodeToString(hash.Sum(nil))
	return l
}

// prepare makes an entry. A panic harms that entry alone.
func prepare[E Listed](build func() (E, *buildError)) (_ E, failure *buildError) {
	defer func() {
		if r := recover(); r != nil {
			failure = &buildError{ReasonInvalidHandler, errors.New("the entry cannot be prepared")}
		}
	}()
	return build()
}

func (s *Snapshot) reject(kind, name, reason, text string) {
	s.NotServed = append(s.NotServed, podreport.NotServed{Kind: kind, Name: name, Reason: reason})
	s.Rejected[kind+" "+name] = text
}

// digestOf tells versions of a declaration apart.
func digestOf(config any) string {
	raw, err := json.Marshal(config)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// inherit gives replaced entries the running calls of the old ones.
func inherit[E Listed](old, next *list[E]) {
	for id, e := range next.known {
		before, ok := old.known[id]
		// One that was taken over has its group, and calls that read it.
		if ok && before.base() != e.base() {
			e.base().group = before.base().group
		}
	}
}

// withdraw cancels the calls of entries that next lacks.
func withdraw[E Listed](old, next *list[E]) (idle []<-chan struct{}) {
	for id, e := range old.known {
		if _, stays := next.known[id]; !stays {
			idle = append(idle, e.base().group.close())
		}
	}
	return idle
}

func compact(raw []byte) json.RawMessage {
	var buf bytes.Buffer
	if err := json.Compact(&buf, raw); err != nil {
		return raw // It was read before: it is JSON.
	}
	return buf.Bytes()
}
