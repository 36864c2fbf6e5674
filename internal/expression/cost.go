// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// estimator counts what calls cost. CEL's own count goes by overloads, which
// are unknown where operands are dyn, and arguments are: there a megabyte of
// text would be added to another for the price of one.
type estimator struct{}

const bytesPerCost = 10

// CallCost implements interpreter.ActualCostEstimator.
func (estimator) CallCost(function, _ string, args []ref.Val, result ref.Val) *uint64 {
	cost := 1 + textSize(result)/bytesPerCost
	for _, arg := range args {
		cost += textSize(arg) / bytesPerCost
	}
	switch function {
	case overloads.Matches:
		if len(args) == 2 {
			cost += textSize(args[0]) / bytesPerCost * (1 + textSize(args[1])/4)
		}
	case operators.In:
		if len(args) == 2 {
			cost += listSize(args[1])
		}
	case operators.Equals, operators.NotEquals:
		if len(args) == 2 {
			cost += min(listSize(args[0]), listSize(args[1]))
		}
	}
	return &cost
}

// textSize in bytes. Counting characters, as Size does, would itself cost.
func textSize(v ref.Val) uint64 {
	switch v := v.(type) {
	case types.String:
		return uint64(len(v))
	case types.Bytes:
		return uint64(len(v))
	}
	return 0
}

func listSize(v ref.Val) uint64 {
	if list, ok := v.(traits.Lister); ok {
		if n, ok := list.Size().(types.Int); ok && n > 0 {
			return uint64(n)
		}
	}
	return 0
}
