// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/schema"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

func noHandler(*serverconfig.Tool, *schema.Schema) (call.Handler, error) { return nil, nil }

// snapshotOf builds a snapshot of names; the value says entryPoint. Its pages
// hold about pageSize tools.
func snapshotOf(names map[string]bool, pageSize int) *Snapshot {
	config := &serverconfig.Config{}
	for name, entry := range names {
		t := serverconfig.Tool{Name: name, Definition: json.RawMessage(`{"name":"` + name + `","inputSchema":{"type":"object"}}`)}
		if entry {
			t.Metadata = map[string]string{"entryPoint": "true"}
		}
		config.Tools = append(config.Tools, t)
	}
	config.Limits.MaxMessageBytes = int64(2 * 50 * pageSize)
	return Build(config, "", Factories{Tool: noHandler}, nil)
}

// TestCursorsSurviveChanges walks the pages while tools come and go at random
// between them, each page from another replica: what stays is listed exactly
// once, in order.
func TestCursorsSurviveChanges(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		stable, passing := map[string]bool{}, map[string]bool{}
		for i := range 5 + random.IntN(60) {
			name := fmt.Sprintf("t%03d", random.IntN(1000))
			if i%3 == 0 {
				passing[name] = random.IntN(4) == 0
			} else {
				stable[name] = random.IntN(4) == 0
			}
		}
		var got []*Tool
		cursor := ""
		for range 1000 {
			now := maps.Clone(stable)
			for name, entry := range passing {
				if _, fixed := stable[name]; !fixed && random.IntN(2) == 0 {
					now[name] = entry
				}
			}
			page, next, err := snapshotOf(now, 1+random.IntN(7)).Page(cursor, nil)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, page...)
			if cursor = next; cursor == "" {
				break
			}
		}
		if cursor != "" {
			t.Fatalf("seed %d: the pages do not end", seed)
		}
		if !slices.IsSortedFunc(got, func(a, b *Tool) int { return a.position().compare(b.position()) }) {
			t.Fatalf("seed %d: out of order", seed)
		}
		count := map[string]int{}
		for _, tool := range got {
			count[tool.Name]++
		}
		for name := range stable {
			if count[name] != 1 {
				t.Fatalf("seed %d: %s is listed %d times", seed, name, count[name])
			}
		}
		for name, n := range count {
			if n > 1 {
				t.Fatalf("seed %d: %s is listed %d times", seed, name, n)
			}
		}
	}
}

func TestPagesAreBounded(t *testing.T) {
	names := map[string]bool{}
	for i := range 2500 {
		names[fmt.Sprintf("t%04d", i)] = false
	}
	s := snapshotOf(names, 1<<20)
	var sizes []int
	for cursor := ""; ; {
		page, next, err := s.Page(cursor, nil)
		if err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, len(page))
		if cursor = next; cursor == "" {
			break
		}
	}
	if !slices.Equal(sizes, []int{1000, 1000, 500}) {
		t.Errorf("got %v", sizes)
	}
	hidden, next, err := s.Page("", func(t *Tool) bool { return t.Name == "t2400" })
	if err != nil || next != "" || len(hidden) != 1 {
		t.Errorf("got %d tools, %q, %v", len(hidden), next, err)
	}
}

func FuzzCursor(f *testing.F) {
	f.Add("ZTphYg")
	f.Add("bzo")
	f.Add("ZTp\r0")
	s := snapshotOf(map[string]bool{"a": true, "b": false, "c": false}, 1)
	f.Fuzz(func(t *testing.T, cursor string) {
		page, next, err := s.Page(cursor, nil)
		if err != nil {
			return
		}
		if len(page) > 1 || next != "" && len(page) == 0 {
			t.Fatalf("%q gives %d tools, next %q", cursor, len(page), next)
		}
		if cursor == "" {
			return
		}
		p, err := parseCursor(cursor)
		if err != nil || p.cursor() != cursor {
			t.Fatalf("%q is read as %+v, written as %q", cursor, p, p.cursor())
		}
	})
}

func TestBadEntriesHarmNoOther(t *testing.T) {
	good := serverconfig.Tool{Name: "good", Definition: json.RawMessage(`{"name":"good","inputSchema":{"type":"object"}}`)}
	config := &serverconfig.Config{Tools: []serverconfig.Tool{
		good, good,
		{Name: "renamed", Definition: json.RawMessage(`{"name":"other","inputSchema":{"type":"object"}}`)},
		{Name: "broken", Definition: json.RawMessage(`{"name":`)},
		{Name: "list", Definition: json.RawMessage(`[]`)},
		{Name: "input", Definition: json.RawMessage(`{"name":"input","inputSchema":{"type":"string"}}`)},
		{Name: "noinput", Definition: json.RawMessage(`{"name":"noinput"}`)},
		{Name: "output", Definition: json.RawMessage(`{"name":"output","inputSchema":{"type":"object"},"outputSchema":{"$ref":"https://example.com/x"}}`)},
		{Name: "panics", Definition: json.RawMessage(`{"name":"panics","inputSchema":{"type":"object"}}`)},
	}}
	s := Build(config, "", Factories{Tool: func(t *serverconfig.Tool, _ *schema.Schema) (call.Handler, error) {
		if t.Name == "panics" {
			panic("no")
		}
		return nil, nil
	}}, nil)
	if len(s.Tools()) != 1 || !s.HasTool("good") {
		t.Errorf("served are %v", s.Tools())
	}
	var reasons []string
	for _, n := range s.NotServed {
		reasons = append(reasons, n.Name+" "+n.Reason)
	}
	want := []string{
		"good " + ReasonDuplicate, "renamed " + ReasonInvalidDefinition, "broken " + ReasonInvalidDefinition, "list " + ReasonInvalidDefinition,
		"input " + ReasonInvalidInput, "noinput " + ReasonInvalidInput, "output " + ReasonInvalidOutput, "panics " + ReasonInvalidHandler,
	}
	if !slices.Equal(reasons, want) {
		t.Errorf("got %q", reasons)
	}
}
