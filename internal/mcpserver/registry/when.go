// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"sync/atomic"

	"github.com/espalier-dev/espalier/internal/expression"
	"github.com/espalier-dev/espalier/internal/mcpserver/access"
	"github.com/espalier-dev/espalier/internal/mcpserver/principal"
)

// When chooses the callers whom an upstream serves.
type When struct {
	text    string
	program *expression.Program
	invalid error
	failed  atomic.Bool
}

// when compiles an expression once per snapshot; nil is everybody.
func (s *Snapshot) when(text string) *When {
	if text == "" {
		return nil
	}
	w := s.whens[text]
	if w == nil {
		w = &When{text: text}
		w.program, w.invalid = expression.Compile(expression.Caller, text, expression.Bool)
		s.whens[text] = w
	}
	return w
}

// Serves reports whether a caller is served. What cannot be evaluated, or does
// not even compile, serves nobody; first is set once for each expression of a
// catalog. The operator's probe looks at everything.
func (w *When) Serves(ctx context.Context, caller *principal.Principal) (serves, first bool, err error) {
	if caller.Kind == principal.Probe {
		return true, false, nil
	}
	err = w.invalid
	if err == nil {
		serves, err = access.Eval(ctx, w.program, caller, nil)
	}
	if err != nil && ctx.Err() == nil {
		return false, !w.failed.Swap(true), err
	}
	return serves, false, nil
}

// Text of the expression.
func (w *When) Text() string { return w.text }

// WhenOf gives what chooses the callers of an entry; nil is everybody.
func WhenOf(e Listed) *When { return e.base().when }

// Chooses reports whether some entries are for some callers only.
func (s *Snapshot) Chooses() bool { return len(s.whens) > 0 }
