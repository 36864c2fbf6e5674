// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package access decides which entries of a catalog a caller sees and calls.
//
// All rules that match an entry must be true; an entry that no rule matches
// follows the default. A rule that cannot be evaluated, or that does not even
// compile, hides what it matches from that caller; it never fails a whole
// list and is never left out of account.
package access

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/espalier-dev/espalier/internal/expression"
	"github.com/espalier-dev/espalier/internal/glob"
	"github.com/espalier-dev/espalier/internal/mcpserver/principal"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// Kind of an entry.
type Kind string

// Kinds of entries. Tools and prompts are named by their name on the wire,
// resources by their URI, templates of resources by their text.
const (
	Tool     Kind = "tool"
	Resource Kind = "resource"
	Prompt   Kind = "prompt"
)

// Entry is what a rule is asked about.
type Entry struct {
	Kind Kind
	Name string
	// Also is by what else rules know it: the URI that is read through a
	// template, as it is written and as it is meant.
	Also []string
	// Vars gives the expression variables that describe it, beside principal.
	// It is called only when a rule reads one of them; nil is none.
	Vars func() map[string]any
}

// Failure is a rule that could not be evaluated.
type Failure struct {
	// Rule is its place in spec.access.
	Rule  int
	Entry Entry
	Err   error
	// First is false when this rule failed before, of this catalog.
	First bool
}

// Rules are the compiled rules of one catalog. The zero value lets everybody
// see everything.
type Rules struct {
	// OnFailure, when set, is told of each failure. Set it before use.
	OnFailure func(Failure)

	deny    bool
	rules   []rule
	private bool
	seen    sync.Map // of rules' places that failed
}

type rule struct {
	// globs over names by kind; empty matches every entry of every kind.
	globs   map[Kind][]string
	program *expression.Program
	invalid error
	// perEntry: the answer depends on the entry, not on the caller alone.
	perEntry bool
}

// Compile prepares the rules of config; nil is none. A rule that does not
// compile stays in place and hides what it matches.
func Compile(config *serverconfig.Access) *Rules {
	r := &Rules{}
	if config == nil {
		return r
	}
	r.deny = config.DenyByDefault
	for _, declared := range config.Rules {
		compiled := rule{globs: globsOf(declared)}
		compiled.program, compiled.invalid = expression.Compile(expression.Access, declared.When, expression.Bool)
		if compiled.program != nil {
			compiled.perEntry = compiled.program.Uses(expression.VarTool)
			r.private = r.private || compiled.program.Uses(expression.VarPrincipal)
		}
		r.rules = append(r.rules, compiled)
	}
	return r
}

// Private reports whether what is visible depends on the caller, so that no
// shared cache may keep a list.
func (r *Rules) Private() bool { return r != nil && r.private }

// matches reports whether the rule is about an entry. One that names nothing
// is about every kind.
func (r *rule) matches(e Entry) bool {
	if len(r.globs) == 0 {
		return true
	}
	globs := r.globs[e.Kind]
	return glob.Any(globs, e.Name) || slices.ContainsFunc(e.Also, func(name string) bool { return glob.Any(globs, name) })
}

func globsOf(declared serverconfig.AccessRule) map[Kind][]string {
	globs := map[Kind][]string{}
	for kind, names := range map[Kind][]string{Tool: declared.Tools, Resource: declared.Resources, Prompt: declared.Prompts} {
		if len(names) > 0 {
			globs[kind] = names
		}
	}
	return globs
}

// None reports whether there is nothing to decide: everybody sees everything.
func (r *Rules) None() bool { return r == nil || len(r.rules) == 0 && !r.deny }

// View is what one caller sees, for the time of one request. It is not safe
// for concurrent use.
type View struct {
	rules  *Rules
	caller *principal.Principal
	all    bool
	// known holds, by rule, the answers that depend on the caller alone.
	known []answer
}

type answer struct {
	known, allowed bool
	err            error
}

// View of a caller. The operator's probe sees all entries; that it may do
// nothing but list them is the engine's rule.
func (r *Rules) View(caller *principal.Principal) *View {
	return &View{rules: r, caller: caller, all: caller.Kind == principal.Probe || r.None()}
}

// Allows reports whether the caller sees e.
func (v *View) Allows(ctx context.Context, e Entry) bool {
	if v.all {
		return true
	}
	matched := false
	for i := range v.rules.rules {
		if !v.rules.rules[i].matches(e) {
			continue
		}
		matched = true
		allowed, err := v.ask(ctx, i, e)
		if err != nil {
			v.rules.failed(ctx, i, e, err)
		}
		if err != nil || !allowed {
			return false
		}
	}
	return matched || !v.rules.deny
}

func (v *View) ask(ctx context.Context, i int, e Entry) (bool, error) {
	r := &v.rules.rules[i]
	if r.invalid != nil {
		return false, r.invalid
	}
	if r.perEntry {
		return Eval(ctx, r.program, v.caller, e.Vars)
	}
	if v.known == nil {
		v.known = make([]answer, len(v.rules.rules))
	}
	if a := &v.known[i]; !a.known {
		allowed, err := Eval(ctx, r.program, v.caller, nil)
		*a = answer{known: true, allowed: allowed, err: err}
	}
	return v.known[i].allowed, v.known[i].err
}

func (r *Rules) failed(ctx context.Context, i int, e Entry, err error) {
	if r.OnFailure == nil || ctx.Err() != nil {
		return // A caller that left is no fault of the rule.
	}
	_, before := r.seen.LoadOrStore(i, struct{}{})
	r.OnFailure(Failure{Rule: i, Entry: e, Err: err, First: !before})
}

var errNotBool = errors.New("the expression gave no boolean")

// Eval runs a boolean program of the scope expression.Access. vars (nil: none)
// describe the entry.
func Eval(ctx context.Context, program *expression.Program, caller *principal.Principal, vars func() map[string]any) (bool, error) {
	scope := map[string]any{}
	if vars != nil && program.Uses(expression.VarTool) {
		for name, value := range vars() {
			scope[name] = value
		}
	}
	scope[expression.VarPrincipal] = caller.Var()
	value, err := program.Eval(ctx, scope)
	if err != nil {
		return false, err
	}
	allowed, ok := value.(bool)
	if !ok {
		return false, errNotBool
	}
	return allowed, nil
}
