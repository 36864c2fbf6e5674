// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"fmt"
	"slices"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/decls"
	"cel.dev/cel-go/common/env"
	"cel.dev/cel-go/common/functions"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/ext"
)

// Scope is where an expression stands, and so which variables it sees.
type Scope int

const (
	// Call sees args and principal.
	Call Scope = iota
	// Response sees args, principal and response {status, headers, body}.
	Response
	// Filter sees tool {name, title, description, annotations, metadata, source}.
	Filter
	// Access sees principal and tool.
	Access
	// Caller sees principal.
	Caller
)

// Variables of the scopes.
const (
	VarArgs      = "args"
	VarPrincipal = "principal"
	VarResponse  = "response"
	VarTool      = "tool"
)

// Limits of an evaluation. A unit of cost is about one operation or ten bytes
// of text; the larger limit is about a tenth of a second on a slow core.
const (
	callCostLimit   = 1_000_000
	filterCostLimit = 100_000
	interruptEvery  = 100
	maxNesting      = 100
	maxRegexProgram = 10_000
)

var scopeVariables = map[Scope][]string{
	Call:     {VarArgs, VarPrincipal},
	Response: {VarArgs, VarPrincipal, VarResponse},
	Filter:   {VarTool},
	Access:   {VarPrincipal, VarTool},
	Caller:   {VarPrincipal},
}

// knownFields of variables whose fields are fixed. args is open.
var knownFields = map[string][]string{
	VarPrincipal: {"claims", "kind", "scopes", "subject"},
	VarResponse:  {"body", "headers", "status"},
	VarTool:      {"annotations", "description", "metadata", "name", "source", "title"},
}

func (s Scope) fields(variable string) []string {
	if !slices.Contains(scopeVariables[s], variable) {
		return nil
	}
	return knownFields[variable]
}

func (s Scope) costLimit() uint64 {
	if s == Filter || s == Access || s == Caller {
		return filterCostLimit
	}
	return callCostLimit
}

// environment is all that compiling in one scope needs.
type environment struct {
	*cel.Env
	guards []*functions.Overload
}

var environments = map[Scope]func() (*environment, error){
	Call:     sync.OnceValues(func() (*environment, error) { return newEnvironment(Call) }),
	Response: sync.OnceValues(func() (*environment, error) { return newEnvironment(Response) }),
	Filter:   sync.OnceValues(func() (*environment, error) { return newEnvironment(Filter) }),
	Access:   sync.OnceValues(func() (*environment, error) { return newEnvironment(Access) }),
	Caller:   sync.OnceValues(func() (*environment, error) { return newEnvironment(Caller) }),
}

func (s Scope) environment() (*environment, error) {
	prepare, ok := environments[s]
	if !ok {
		return nil, fmt.Errorf("unknown scope %d", s)
	}
	return prepare()
}

func newEnvironment(s Scope) (*environment, error) {
	options := []cel.EnvOption{
		cel.StdLib(cel.StdLibSubset(env.NewLibrarySubset().AddExcludedFunctions(env.NewFunction(operators.In)))),
		cel.FunctionDecls(tolerantIn()),
		cel.OptionalTypes(),
		cel.CrossTypeNumericComparisons(true),
		cel.DefaultUTCTimeZone(true),
		cel.ParserRecursionLimit(maxNesting),
		cel.ParserExpressionSizeLimit(MaxSource),
		cel.RegexProgramSizeLimit(maxRegexProgram),
		ext.Strings(), ext.Encoders(), ext.Math(), ext.Lists(), ext.Sets(), ext.Regex(), ext.Bindings(), ext.TwoVarComprehensions(),
	}
	for _, name := range scopeVariables[s] {
		options = append(options, cel.Variable(name, cel.MapType(cel.StringType, cel.DynType)))
	}
	env, err := cel.NewCustomEnv(options...)
	if err != nil {
		return nil, err
	}
	over, err := guards(env)
	return &environment{Env: env, guards: over}, err
}

// tolerantIn is the operator "in" as the standard library has it, but null
// contains nothing: "'admins' in principal.claims.groups" is false for who has
// no groups.
func tolerantIn() *decls.FunctionDecl {
	a, b := types.NewTypeParamType("A"), types.NewTypeParamType("B")
	function, err := decls.NewFunction(operators.In,
		decls.Overload(overloads.InList, []*types.Type{a, types.NewListType(a)}, types.BoolType),
		decls.Overload(overloads.InMap, []*types.Type{a, types.NewMapType(a, b)}, types.BoolType),
		decls.Overload("in_null", []*types.Type{types.DynType, types.NullType}, types.BoolType),
		decls.SingletonBinaryBinding(func(element, container ref.Val) ref.Val {
			if container == types.NullValue {
				return types.False
			}
			if c, ok := container.(traits.Container); ok && container.Type().HasTrait(traits.ContainerType) {
				return c.Contains(element)
			}
			return types.MaybeNoSuchOverloadErr(container)
		}))
	if err != nil {
		panic(err) // A constant declaration: it is right or no test passes.
	}
	return function
}
