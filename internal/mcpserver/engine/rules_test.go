// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/expression"
	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/mcpserver/metrics"
	"github.com/espalier-dev/espalier/internal/mcpserver/principal"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// bench is the limits of one replica on a clock of its own.
type bench struct {
	*limits
	t   *testing.T
	at  time.Time
	log strings.Builder
}

func newBench(t *testing.T, c serverconfig.Limits) *bench {
	t.Helper()
	b := &bench{t: t, at: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	b.limits = newLimits(metrics.New("test"), slog.New(slog.NewTextHandler(&b.log, nil)))
	b.limits.now = func() time.Time { return b.at }
	b.configure(c)
	return b
}

func caller(subject string) *principal.Principal {
	return principal.New(principal.JWT, subject, nil, map[string]any{"plan": "free"}, time.Time{})
}

// call gives the reason of a refusal, or empty.
func (b *bench) call(tool, subject string, metadata ...string) call.Reason {
	b.t.Helper()
	c := &call.Call{Tool: tool, Caller: caller(subject), Entry: func() map[string]any {
		known := map[string]string{}
		for _, m := range metadata {
			key, value, _ := strings.Cut(m, "=")
			known[key] = value
		}
		return expression.ToolVars(map[string]any{"name": tool}, known, "")
	}}
	_, err := b.calls(func(context.Context, *call.Call) (*call.Result, error) { return &call.Result{}, nil })(b.t.Context(), c)
	var failure *call.Error
	if errors.As(err, &failure) {
		return failure.Reason
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return ""
}

// calls n times and gives how many were let through.
func (b *bench) through(n int, tool, subject string, metadata ...string) int {
	b.t.Helper()
	count := 0
	for range n {
		if b.call(tool, subject, metadata...) == "" {
			count++
		}
	}
	return count
}

func (b *bench) want(what string, got, want int) {
	b.t.Helper()
	if got != want {
		b.t.Errorf("%s: %d calls, want %d", what, got, want)
	}
}

// TestBudget: each caller has a window of their own, which begins with its
// first call and is over as a whole.
func TestBudget(t *testing.T) {
	b := newBench(t, serverconfig.Limits{Budget: &serverconfig.Budget{Calls: 3, WindowSeconds: 60}})
	b.want("alice", b.through(5, "a", "alice"), 3)
	b.want("bob", b.through(5, "b", "bob"), 3)
	if got := b.call("a", "alice"); got != call.BudgetExceeded {
		t.Errorf("refused by %q", got)
	}
	b.at = b.at.Add(59 * time.Second)
	b.want("before the end", b.through(1, "a", "alice"), 0)
	b.at = b.at.Add(time.Second)
	b.want("the next window", b.through(5, "a", "alice"), 3)
}

// TestRules: which calls a rule is about.
func TestRules(t *testing.T) {
	three := &serverconfig.Budget{Calls: 3, WindowSeconds: 60}
	b := newBench(t, serverconfig.Limits{Rules: []serverconfig.LimitRule{
		{Tools: []string{"billing_*"}, When: "principal.claims.plan == 'free'", Budget: three},
		{When: "tool.metadata.tier == 'gold'", Budget: &serverconfig.Budget{Calls: 1, WindowSeconds: 60}},
		{Tools: []string{"never"}, When: "principal.kind == 'APIKey'", Budget: &serverconfig.Budget{Calls: 1, WindowSeconds: 60}},
	}})
	b.want("another tool", b.through(10, "other", "alice"), 10)
	b.want("one budget for two tools", b.through(2, "billing_a", "alice")+b.through(2, "billing_b", "alice"), 3)
	b.want("gold", b.through(2, "other", "alice", "tier=gold"), 1)
	b.want("another kind of caller", b.through(5, "never", "alice"), 5)
	// What one budget refuses costs the other nothing.
	b.want("gold of bob", b.through(5, "billing_a", "bob", "tier=gold"), 1)
	b.want("the rest of bob", b.through(5, "billing_a", "bob"), 2)
}

// TestRulesOfKinds: a rule that names tools is about no resource that happens
// to be called so; one that names nothing is about every kind.
func TestRulesOfKinds(t *testing.T) {
	once := &serverconfig.Budget{Calls: 1, WindowSeconds: 60}
	for name, rule := range map[string]serverconfig.LimitRule{"tools": {Tools: []string{"*"}, Budget: once}, "all": {Budget: once}} {
		b := newBench(t, serverconfig.Limits{Rules: []serverconfig.LimitRule{rule}})
		read := b.calls(func(context.Context, *call.Call) (*call.Result, error) { return &call.Result{}, nil })
		through := 0
		for range 3 {
			if _, err := read(t.Context(), &call.Call{Kind: call.Resource, Tool: "x:a", Caller: caller("alice")}); err == nil {
				through++
			}
		}
		if want := map[string]int{"tools": 3, "all": 1}[name]; through != want {
			t.Errorf("%s: %d reads, want %d", name, through, want)
		}
	}
}

// TestRuleRate: the calls of all callers together.
func TestRuleRate(t *testing.T) {
	b := newBench(t, serverconfig.Limits{Rules: []serverconfig.LimitRule{{Tools: []string{"a"}, RequestsPerSecond: 5}}})
	b.want("at once", b.through(10, "a", "alice")+b.through(10, "a", "bob"), 10)
	if got := b.call("a", "carol"); got != call.RateLimited {
		t.Errorf("refused by %q", got)
	}
	b.at = b.at.Add(time.Second)
	b.want("a second later", b.through(20, "a", "alice"), 5)
	b.want("another tool", b.through(20, "b", "alice"), 20)
}

// TestRuleFails: a rule that cannot be evaluated, or does not even compile,
// limits; it is logged once.
func TestRuleFails(t *testing.T) {
	for _, when := range []string{"principal.claims.level > 3 && principal.claims.plan.x == 1", "principal.claims.plan.x == 1", "principal."} {
		b := newBench(t, serverconfig.Limits{Rules: []serverconfig.LimitRule{{When: when, Budget: &serverconfig.Budget{Calls: 1, WindowSeconds: 60}}}})
		b.want(when, b.through(5, "a", "alice"), 1)
		if n := strings.Count(b.log.String(), "Limit rule cannot be evaluated"); n != 1 {
			t.Errorf("%s was logged %d times", when, n)
		}
	}
}

// TestReload: what was used of a rule outlives a reload that leaves it as it
// is, wherever it stands then; another rule begins anew.
func TestReload(t *testing.T) {
	a := serverconfig.LimitRule{Tools: []string{"a"}, Budget: &serverconfig.Budget{Calls: 2, WindowSeconds: 60}}
	other := serverconfig.LimitRule{Tools: []string{"b"}, Budget: &serverconfig.Budget{Calls: 2, WindowSeconds: 60}}
	b := newBench(t, serverconfig.Limits{Rules: []serverconfig.LimitRule{a}})
	b.want("first", b.through(5, "a", "alice"), 2)
	b.configure(serverconfig.Limits{Rules: []serverconfig.LimitRule{other, a}})
	b.want("moved", b.through(5, "a", "alice"), 0)
	b.want("new", b.through(5, "b", "alice"), 2)
	a.Budget = &serverconfig.Budget{Calls: 3, WindowSeconds: 60}
	b.configure(serverconfig.Limits{Rules: []serverconfig.LimitRule{a}})
	b.want("changed", b.through(5, "a", "alice"), 3)
	b.configure(serverconfig.Limits{})
	b.want("gone", b.through(5, "a", "alice"), 5)
}

// TestManyCallers: memory has a bound, and beyond it a budget does not open.
func TestManyCallers(t *testing.T) {
	b := newBudget(serverconfig.Budget{Calls: 1, WindowSeconds: 60})
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range maxCallers {
		b.take(fmt.Sprint("caller", i), at)
	}
	if ok, _ := b.left("late", at); !ok {
		t.Error("the shared window is used up before anybody used it")
	}
	b.take("late", at)
	if ok, wait := b.left("later", at.Add(10*time.Second)); ok || wait != 50*time.Second {
		t.Errorf("beyond the bound: %v, %v", ok, wait)
	}
	if len(b.windows) != maxCallers+1 {
		t.Errorf("%d windows", len(b.windows))
	}
	if ok, _ := b.left("later", at.Add(time.Minute)); !ok || len(b.windows) != 0 {
		t.Errorf("after the windows: %v, %d are kept", ok, len(b.windows))
	}
}

// TestConcurrentBudget: never more than the budget, whoever comes at once.
func TestConcurrentBudget(t *testing.T) {
	b := newBench(t, serverconfig.Limits{Budget: &serverconfig.Budget{Calls: 100, WindowSeconds: 60}})
	var through atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() { through.Add(int64(b.through(50, "a", "alice"))) })
	}
	all.Wait()
	b.want("together", int(through.Load()), 100)
}
