// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"context"

	"github.com/espalier-dev/espalier/internal/expression"
	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// newExpression makes a handler that answers from args and principal alone.
func newExpression(tool string, declared *serverconfig.Result) (call.Handler, error) {
	result, err := compileResult(tool, expression.Call, declared)
	if err != nil {
		return nil, err
	}
	if result.isDefault() {
		return nil, errNoResult
	}
	return call.Func(func(ctx context.Context, c *call.Call) (*call.Result, error) {
		return result.eval(ctx, c.Vars())
	}), nil
}
