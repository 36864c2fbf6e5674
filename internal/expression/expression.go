// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package expression compiles and evaluates the CEL expressions of tools and
// of the catalog. It is pure: no clock, no I/O, no state but compiled
// programs, which are safe for concurrent use.
//
// The operator compiles an expression to accept it, the shared server compiles
// it again to run it; both go through Compile, so that what was accepted runs.
package expression

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
)

const (
	// MaxSource is the longest expression, in bytes.
	MaxSource = 16 << 10
	// MaxError is the longest error text of Compile and Eval, in bytes.
	MaxError = 500
	// maxReported errors of one expression; the rest are consequences.
	maxReported = 3
)

// Kind is what an expression must give.
type Kind int

const (
	// Any JSON value.
	Any Kind = iota
	// String only.
	String
	// Bool only.
	Bool
	// Scalar is a string, a number, a boolean, or null for "leave it out".
	Scalar
	// ScalarOrList is a Scalar or a list of them.
	ScalarOrList
	// StringOrBytes is a string or bytes.
	StringOrBytes
	// Map with string keys.
	Map
)

var kindNames = [...]string{
	Any: "any value", String: "a string", Bool: "a boolean", Scalar: "a string, number or boolean",
	ScalarOrList: "a string, number, boolean or a list of them", StringOrBytes: "a string or bytes", Map: "a map",
}

// String gives the kind in words that fit an error message.
func (k Kind) String() string {
	if k < 0 || int(k) >= len(kindNames) {
		return "an unknown kind"
	}
	return kindNames[k]
}

// shape is one sort of value.
type shape int

const (
	aString shape = 1 << iota
	aBool
	aNumber // or null
	someBytes
	aMap
)

var kindShapes = [...]shape{
	Any: -1, String: aString, Bool: aBool, Scalar: aString | aBool | aNumber,
	ScalarOrList: aString | aBool | aNumber, StringOrBytes: aString | someBytes, Map: aMap,
}

// has reports whether a value of that shape, no list, is of the kind.
func (k Kind) has(s shape) bool { return kindShapes[k]&s != 0 }

// Program is a compiled expression.
type Program struct {
	program cel.Program
	kind    Kind
	scope   Scope
	uses    map[string]bool
}

// Uses reports whether the expression reads a variable.
func (p *Program) Uses(variable string) bool { return p.uses[variable] }

// variablesOf are the names that an expression reads.
func variablesOf(tree *ast.AST) map[string]bool {
	names := map[string]bool{}
	visit(tree.Expr(), func(e ast.Expr) {
		if e.Kind() == ast.IdentKind {
			names[e.AsIdent()] = true
		}
	})
	return names
}

// Compile checks src against the variables of scope and the wanted kind. A
// result whose type is known only at run time passes and is checked by Eval.
// The error's text is deterministic, at most MaxError bytes, and names
// positions as LINE:COLUMN.
func Compile(scope Scope, src string, want Kind) (_ *Program, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errors.New("the expression cannot be compiled")
		}
	}()
	if strings.TrimSpace(src) == "" {
		return nil, errors.New("the expression is empty")
	}
	if len(src) > MaxSource {
		return nil, fmt.Errorf("the expression has %d bytes, at most %d are allowed", len(src), MaxSource)
	}
	env, err := scope.environment()
	if err != nil {
		return nil, err
	}
	checked, issues := env.Compile(src)
	if issues.Err() != nil {
		return nil, compileError(issues)
	}
	if err := checkFields(scope, checked.NativeRep()); err != nil {
		return nil, bounded(err.Error())
	}
	if !admits(want, checked.OutputType()) {
		return nil, bounded(fmt.Sprintf("the expression gives %s, wanted is %s", checked.OutputType(), want))
	}
	program, err := env.Program(checked,
		cel.EvalOptions(cel.OptOptimize),
		cel.Functions(env.guards...), //nolint:staticcheck // Deprecated for declaring; nothing else overrides.
		cel.CostLimit(scope.costLimit()),
		cel.CostTracking(estimator{}),
		cel.InterruptCheckFrequency(interruptEvery))
	if err != nil {
		return nil, bounded(err.Error())
	}
	return &Program{program: program, kind: want, scope: scope, uses: variablesOf(checked.NativeRep())}, nil
}

// compileError renders the first issues in the order of their positions.
func compileError(issues *cel.Issues) error {
	errs := slices.Clone(issues.Errors())
	slices.SortStableFunc(errs, func(a, b *cel.Error) int {
		if d := a.Location.Line() - b.Location.Line(); d != 0 {
			return d
		}
		if d := a.Location.Column() - b.Location.Column(); d != 0 {
			return d
		}
		return strings.Compare(a.Message, b.Message)
	})
	var parts []string
	for _, e := range errs {
		// The container is always the empty one here.
		message := strings.ReplaceAll(e.Message, " (in container '')", "")
		part := message
		if e.Location.Line() > 0 {
			part = fmt.Sprintf("%d:%d: %s", e.Location.Line(), e.Location.Column()+1, message)
		}
		if !slices.Contains(parts, part) {
			parts = append(parts, part)
		}
	}
	if more := len(parts) - maxReported; more > 0 {
		parts = append(parts[:maxReported], fmt.Sprintf("and %d more", more))
	}
	return bounded(strings.Join(parts, "; "))
}

// admits reports whether a result of type t can be of the wanted kind.
func admits(want Kind, t *types.Type) bool {
	if want == Any {
		return true
	}
	// An optional gives its value, or null.
	if t.Kind() == types.OpaqueKind && t.TypeName() == "optional_type" && len(t.Parameters()) == 1 {
		return admits(want, t.Parameters()[0])
	}
	switch t.Kind() {
	case types.DynKind, types.AnyKind, types.TypeParamKind:
		return true
	case types.ListKind:
		return want == ScalarOrList && (len(t.Parameters()) == 0 || admits(Scalar, t.Parameters()[0]))
	case types.StringKind:
		return want.has(aString)
	case types.BoolKind:
		return want.has(aBool)
	case types.IntKind, types.UintKind, types.DoubleKind, types.NullTypeKind:
		return want.has(aNumber)
	case types.BytesKind:
		return want.has(someBytes)
	case types.MapKind:
		return want.has(aMap)
	}
	return false
}

// checkFields refuses a misspelt field of a variable whose fields are known
// (response.boddy), which CEL itself would find only at run time.
func checkFields(scope Scope, tree *ast.AST) error {
	var err error
	shadowed := map[string]bool{}
	visit(tree.Expr(), func(e ast.Expr) {
		if e.Kind() == ast.ComprehensionKind {
			shadowed[e.AsComprehension().IterVar()] = true
			shadowed[e.AsComprehension().IterVar2()] = true
		}
	})
	visit(tree.Expr(), func(e ast.Expr) {
		if err != nil || e.Kind() != ast.SelectKind || e.AsSelect().Operand().Kind() != ast.IdentKind {
			return
		}
		variable, field := e.AsSelect().Operand().AsIdent(), e.AsSelect().FieldName()
		fields := scope.fields(variable)
		if fields == nil || shadowed[variable] || slices.Contains(fields, field) {
			return
		}
		start := tree.SourceInfo().GetStartLocation(e.ID())
		err = fmt.Errorf("%d:%d: %s has no field %q, it has %s",
			start.Line(), start.Column()+1, variable, field, strings.Join(fields, ", "))
	})
	return err
}

func visit(root ast.Expr, f func(ast.Expr)) {
	ast.PreOrderVisit(root, ast.NewExprVisitor(f))
}

// Eval runs the program. It stops with an error when ctx ends or the scope's
// cost limit is reached. The result is made of nil, bool, int64, uint64,
// float64, string, []byte, []any and map[string]any.
func (p *Program) Eval(ctx context.Context, vars map[string]any) (_ any, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errors.New("the expression failed")
		}
	}()
	out, _, err := p.program.ContextEval(ctx, vars)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, evalError(err)
	}
	value, err := new(converter).toNative(out, 0)
	if err != nil {
		return nil, bounded(err.Error())
	}
	if !isKind(p.kind, value) {
		return nil, fmt.Errorf("the expression gave %s, wanted is %s", describe(value), p.kind)
	}
	return value, nil
}

// evalError makes CEL's own words readable for who called the tool.
func evalError(err error) error {
	text := err.Error()
	switch {
	case strings.Contains(text, "cost limit exceeded"):
		return errors.New("the expression is too expensive: its cost limit was reached")
	case strings.HasPrefix(text, "no such key: "):
		return bounded(text + " (a key that may be absent is guarded by has())")
	}
	return bounded(text)
}

// bounded makes an error of one line of at most MaxError bytes.
func bounded(text string) error {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	if len(text) > MaxError {
		text = strings.ToValidUTF8(text[:MaxError-3], "") + "..."
	}
	return errors.New(text)
}
