// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/expression"
	"github.com/espalier-dev/espalier/internal/mcpserver/principal"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

func alice(claims map[string]any) *principal.Principal {
	return principal.New(principal.JWT, "alice", []string{"read"}, claims, time.Time{})
}

func entry(name string, metadata map[string]string) Entry {
	return Entry{Kind: Tool, Name: name, Vars: func() map[string]any {
		return expression.ToolVars(map[string]any{"name": name}, metadata, "mcptool/"+name)
	}}
}

func rules(deny bool, all ...serverconfig.AccessRule) *serverconfig.Access {
	return &serverconfig.Access{DenyByDefault: deny, Rules: all}
}

func TestAllows(t *testing.T) {
	rule := func(when string, tools ...string) serverconfig.AccessRule {
		return serverconfig.AccessRule{Tools: tools, When: when}
	}
	finance := alice(map[string]any{"groups": []any{"finance"}})
	tests := map[string]struct {
		config *serverconfig.Access
		caller *principal.Principal
		want   bool // for the tool billing_pay of tier gold
	}{
		"no rules":                             {nil, principal.Nobody(), true},
		"no rules, denied":                     {rules(true), finance, false},
		"true":                                 {rules(false, rule("true", "billing_*")), principal.Nobody(), true},
		"false":                                {rules(false, rule("false", "billing_*")), finance, false},
		"of another tool":                      {rules(false, rule("false", "orders_*")), finance, true},
		"of another tool, denied":              {rules(true, rule("true", "orders_*")), finance, false},
		"allowed out of a denial":              {rules(true, rule("true", "billing_pay")), finance, true},
		"all that match must be true":          {rules(false, rule("true", "*"), rule("false", "billing_*")), finance, false},
		"a rule that names nothing":            {rules(false, rule("false")), finance, false},
		"one that names nothing ends a denial": {rules(true, rule("true")), finance, true},
		"a claim":                              {rules(false, rule("'finance' in principal.claims.groups", "billing_*")), finance, true},
		"without the claim":                    {rules(false, rule("'finance' in principal.claims.groups", "billing_*")), alice(nil), false},
		"nobody has no claim":                  {rules(false, rule("'finance' in principal.claims.groups")), principal.Nobody(), false},
		"kind":                                 {rules(false, rule("principal.kind == 'JWT' && principal.subject == 'alice'")), finance, true},
		"scopes":                               {rules(false, rule("'read' in principal.scopes")), finance, true},
		"metadata":                             {rules(false, rule("tool.metadata.tier == 'gold' && tool.metadata.role == ''")), finance, true},
		"an absent key of metadata":            {rules(false, rule("tool.metadata.nothing == ''")), finance, false},
		"both":                                 {rules(false, rule("tool.metadata.tier != 'gold' || 'finance' in principal.claims.groups")), finance, true},
		"what cannot be evaluated":             {rules(false, rule("principal.claims.groups.size() > 0")), alice(nil), false},
		"what does not compile":                {rules(false, rule("principal.")), finance, false},
		"what gives no boolean":                {rules(false, rule("principal.claims.groups")), finance, false},
		"what does not compile, elsewhere":     {rules(false, rule("principal.", "orders_*")), finance, true},
		"the probe":                            {rules(true, rule("false")), principal.New(principal.Probe, "", nil, nil, time.Time{}), true},
	}
	for name, test := range tests {
		view := Compile(test.config).View(test.caller)
		for range 2 { // What is remembered of a caller is the same.
			if got := view.Allows(t.Context(), entry("billing_pay", map[string]string{"tier": "gold"})); got != test.want {
				t.Errorf("%s: %v", name, got)
			}
		}
	}
}

// TestKinds: a rule is about the kinds that it names, and of what a template
// makes it may name the template or the URI.
func TestKinds(t *testing.T) {
	rule := serverconfig.AccessRule{Tools: []string{"a*"}, Resources: []string{"x://secret/*", "x://{id}"}, Prompts: []string{"b*"}, When: "false"}
	view := Compile(rules(false, rule)).View(alice(nil))
	for _, test := range []struct {
		entry Entry
		want  bool
	}{
		{Entry{Kind: Tool, Name: "a1"}, false},
		{Entry{Kind: Tool, Name: "b1"}, true},
		{Entry{Kind: Prompt, Name: "b1"}, false},
		{Entry{Kind: Prompt, Name: "a1"}, true},
		{Entry{Kind: Resource, Name: "a1"}, true},
		{Entry{Kind: Resource, Name: "x://secret/1"}, false},
		{Entry{Kind: Resource, Name: "x://{id}", Also: []string{"x://open"}}, false},
		{Entry{Kind: Resource, Name: "x://{+p}", Also: []string{"x://secret/1"}}, false},
		{Entry{Kind: Resource, Name: "x://{+p}", Also: []string{"x://open/1"}}, true},
	} {
		if got := view.Allows(t.Context(), test.entry); got != test.want {
			t.Errorf("%+v: %v", test.entry, got)
		}
	}
}

// TestOtherKinds: a rule of tools guards no other kind, one that names nothing
// guards all, and the default is every kind's.
func TestOtherKinds(t *testing.T) {
	prompt := Entry{Kind: "prompt", Name: "billing_pay"}
	for name, test := range map[string]struct {
		config *serverconfig.Access
		want   bool
	}{
		"rule of tools":         {rules(false, serverconfig.AccessRule{Tools: []string{"*"}, When: "false"}), true},
		"rule of tools, denied": {rules(true, serverconfig.AccessRule{Tools: []string{"*"}, When: "true"}), false},
		"rule of all":           {rules(false, serverconfig.AccessRule{When: "false"}), false},
		"rule of all, of tools": {rules(false, serverconfig.AccessRule{When: "tool.name != ''"}), false},
	} {
		if got := Compile(test.config).View(alice(nil)).Allows(t.Context(), prompt); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestPrivate(t *testing.T) {
	for when, want := range map[string]bool{
		"true": false, "tool.metadata.tier == 'gold'": false, "principal.kind == 'JWT'": true, "'x' in principal.claims": true,
	} {
		if got := Compile(rules(false, serverconfig.AccessRule{When: when})).Private(); got != want {
			t.Errorf("%s: %v", when, got)
		}
	}
	if Compile(nil).Private() || Compile(rules(true)).Private() {
		t.Error("no rule depends on the caller")
	}
}

// TestFailures: each is told, the first of a rule as such, that of a caller
// who left not at all.
func TestFailures(t *testing.T) {
	r := Compile(rules(false, serverconfig.AccessRule{When: "true"}, serverconfig.AccessRule{When: "principal.claims.a.b == 1"}))
	var got []Failure
	r.OnFailure = func(f Failure) { got = append(got, f) }
	for _, name := range []string{"a", "b"} {
		r.View(alice(map[string]any{"a": int64(1)})).Allows(t.Context(), entry(name, nil))
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	r.View(alice(map[string]any{"a": int64(1)})).Allows(gone, entry("c", nil))
	if len(got) != 2 || got[0].Rule != 1 || !got[0].First || got[1].First || got[1].Entry.Name != "b" || got[0].Err == nil {
		t.Errorf("%+v", got)
	}
}

// TestOncePerCaller: a rule that reads no tool is asked once for a list.
func TestOncePerCaller(t *testing.T) {
	asked := 0
	view := Compile(rules(false, serverconfig.AccessRule{When: "principal.kind == 'JWT'"})).View(alice(nil))
	for range 1000 {
		if !view.Allows(t.Context(), Entry{Kind: Tool, Name: "x", Vars: func() map[string]any { asked++; return nil }}) {
			t.Fatal("hidden")
		}
	}
	if asked != 0 {
		t.Errorf("the tool was described %d times", asked)
	}
}

func BenchmarkAllows(b *testing.B) {
	view := Compile(rules(false, serverconfig.AccessRule{Tools: []string{"a*"}, When: "'read' in principal.scopes"})).View(alice(nil))
	e := entry("abc", nil)
	b.ReportAllocs()
	for b.Loop() {
		view.Allows(b.Context(), e)
	}
}
