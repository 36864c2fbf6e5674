// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"encoding/json"
	"math"
	"time"

	"golang.org/x/time/rate"

	"github.com/espalier-dev/espalier/internal/expression"
	"github.com/espalier-dev/espalier/internal/glob"
	"github.com/espalier-dev/espalier/internal/mcpserver/access"
	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// limitRule is one rule with what was used of it. It outlives reloads that
// leave it as it is.
type limitRule struct {
	config  serverconfig.LimitRule
	program *expression.Program // nil: always
	invalid error
	rate    *rate.Limiter // nil: no limit
	budget  *budget       // nil: none
	failed  bool          // it was logged; guarded by limits.mu
}

// configureRules makes the rules of a catalog and takes over those that the
// present one has too.
func (l *limits) configureRules(c serverconfig.Limits) {
	known := map[string][]*limitRule{}
	for _, r := range l.present() {
		id := ruleID(r.config)
		known[id] = append(known[id], r)
	}
	var rules []*limitRule
	if c.Budget != nil {
		c.Rules = append([]serverconfig.LimitRule{{Budget: c.Budget}}, c.Rules...)
	}
	for _, config := range c.Rules {
		id := ruleID(config)
		if same := known[id]; len(same) > 0 {
			rules, known[id] = append(rules, same[0]), same[1:]
			continue
		}
		rules = append(rules, newRule(config))
	}
	l.rules.Store(&rules)
}

func (l *limits) present() []*limitRule {
	if rules := l.rules.Load(); rules != nil {
		return *rules
	}
	return nil
}

func ruleID(config serverconfig.LimitRule) string {
	raw, _ := json.Marshal(config) // Plain data: it cannot fail.
	return string(raw)
}

func newRule(config serverconfig.LimitRule) *limitRule {
	r := &limitRule{config: config}
	if config.When != "" {
		r.program, r.invalid = expression.Compile(expression.Access, config.When, expression.Bool)
	}
	if n := config.RequestsPerSecond; n > 0 {
		r.rate = rate.NewLimiter(rate.Limit(n), int(min(int64(n)*2, math.MaxInt32)))
	}
	if config.Budget != nil {
		r.budget = newBudget(*config.Budget)
	}
	return r
}

// matching gives the rules that a call must keep to. One that cannot be
// evaluated limits the call: a limit is never left out of account.
func (l *limits) matching(ctx context.Context, c *call.Call) []*limitRule {
	var out []*limitRule
	for i, r := range l.present() {
		if len(r.config.Tools) > 0 && (c.Kind != call.Tool || !glob.Any(r.config.Tools, c.Tool)) {
			continue
		}
		applies, err := true, r.invalid
		if r.program != nil {
			applies, err = access.Eval(ctx, r.program, c.Caller, c.Entry)
		}
		if err != nil {
			l.ruleFailed(ctx, i, r, c, err)
			applies = true
		}
		if applies {
			out = append(out, r)
		}
	}
	return out
}

func (l *limits) ruleFailed(ctx context.Context, i int, r *limitRule, c *call.Call, err error) {
	if ctx.Err() != nil {
		return // A caller that left is no fault of the rule.
	}
	l.mu.Lock()
	first := !r.failed
	r.failed = true
	l.mu.Unlock()
	l.metrics.RuleFailed(ruleLimits)
	if first && l.log != nil {
		l.log.WarnContext(ctx, "Limit rule cannot be evaluated and limits every caller", "rule", i, c.Kind.String(), c.Tool, "error", err.Error())
	}
}

// spend takes a call off the rates and budgets of rules. Budgets are looked at
// together before one is used: a call that one of them refuses costs nothing.
func (l *limits) spend(rules []*limitRule, c *call.Call) *call.Error {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	caller := c.Caller.Key()
	for _, r := range rules {
		if r.budget == nil {
			continue
		}
		if ok, wait := r.budget.left(caller, now); !ok {
			return call.Fail(call.BudgetExceeded, "the budget of %d calls in %d s is used up, calls are possible again in %d s",
				r.budget.config.Calls, r.budget.config.WindowSeconds, int64((wait+time.Second-1)/time.Second))
		}
	}
	for _, r := range rules {
		if r.rate != nil && !r.rate.AllowN(now, 1) {
			return call.Fail(call.RateLimited, "too many such calls per second for this replica, try again later")
		}
	}
	for _, r := range rules {
		if r.budget != nil {
			r.budget.take(caller, now)
		}
	}
	return nil
}
