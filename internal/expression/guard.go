// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/functions"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// Some functions of CEL's libraries take time in the product of their
// operands' sizes, within one call that neither the cost limit (counted after
// it) nor a cancelled context (looked at between calls) can stop. Operands may
// come from a caller, so these functions refuse products that take long.
const (
	maxListPairs = 10_000_000
	maxTextPairs = 1_000_000_000
)

// guarded are those functions and what they compare.
var guarded = map[string]func(args []ref.Val) bool{
	"distinct":        func(args []ref.Val) bool { return pairs(listSize(args[0]), listSize(args[0]), maxListPairs) },
	"sets.contains":   listPairs,
	"sets.equivalent": listPairs,
	"sets.intersects": listPairs,
	"indexOf":         textPairs,
	"lastIndexOf":     textPairs,
}

func listPairs(args []ref.Val) bool {
	return len(args) < 2 || pairs(listSize(args[0]), listSize(args[1]), maxListPairs)
}

func textPairs(args []ref.Val) bool {
	return len(args) < 2 || pairs(textSize(args[0]), textSize(args[1]), maxTextPairs)
}

// pairs reports whether a*b stays within most.
func pairs(a, b, most uint64) bool { return b == 0 || a <= most/b }

var errTooLong = types.NewErr("the operands are too large to be compared with each other")

// guards gives the guarded functions of env, to be put over its own.
func guards(env *cel.Env) ([]*functions.Overload, error) {
	var out []*functions.Overload
	for name, allowed := range guarded {
		declared, ok := env.Functions()[name]
		if !ok {
			continue
		}
		bindings, err := declared.Bindings()
		if err != nil {
			return nil, err
		}
		for _, b := range bindings {
			out = append(out, guard(b, allowed))
		}
	}
	return out, nil
}

func guard(b *functions.Overload, allowed func([]ref.Val) bool) *functions.Overload {
	g := *b
	if b.Unary != nil {
		g.Unary = func(a ref.Val) ref.Val {
			if !allowed([]ref.Val{a}) {
				return errTooLong
			}
			return b.Unary(a)
		}
	}
	if b.Binary != nil {
		g.Binary = func(x, y ref.Val) ref.Val {
			if !allowed([]ref.Val{x, y}) {
				return errTooLong
			}
			return b.Binary(x, y)
		}
	}
	if b.Function != nil {
		g.Function = func(args ...ref.Val) ref.Val {
			if len(args) > 0 && !allowed(args) {
				return errTooLong
			}
			return b.Function(args...)
		}
	}
	return &g
}
