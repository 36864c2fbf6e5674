// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"context"
	"errors"
	"fmt"

	"github.com/espalier-dev/espalier/internal/expression"
	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

var errNoResult = errors.New("a result needs one of structured, text and content")

// result is a compiled serverconfig.Result.
type result struct {
	tool       string
	structured *expression.Program
	text       *expression.Program
	content    []block
	isError    *expression.Program
}

// block is one compiled content block.
type block struct {
	declared serverconfig.Content
	program  *expression.Program
}

// ContentKind is what the expression of a content block must give.
func ContentKind(t serverconfig.ContentType) (expression.Kind, error) {
	switch t {
	case serverconfig.ContentText, serverconfig.ContentResourceLink:
		return expression.String, nil
	case serverconfig.ContentImage, serverconfig.ContentAudio, serverconfig.ContentEmbeddedResource:
		return expression.StringOrBytes, nil
	}
	return 0, fmt.Errorf("content of type %q is not known", t)
}

func compileResult(tool string, scope expression.Scope, declared *serverconfig.Result) (*result, error) {
	r := &result{tool: tool}
	if declared == nil {
		return r, nil
	}
	ways := 0
	compile := func(field, src string, kind expression.Kind) (*expression.Program, error) {
		if src == "" {
			return nil, nil
		}
		program, err := expression.Compile(scope, src, kind)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", field, err)
		}
		return program, nil
	}
	var err error
	if r.structured, err = compile("result.structured", declared.Structured, expression.Any); err != nil {
		return nil, err
	}
	if r.text, err = compile("result.text", declared.Text, expression.String); err != nil {
		return nil, err
	}
	if r.isError, err = compile("result.isError", declared.IsError, expression.Bool); err != nil {
		return nil, err
	}
	for i, c := range declared.Content {
		kind, err := ContentKind(c.Type)
		if err != nil {
			return nil, err
		}
		b := block{declared: c}
		field := fmt.Sprintf("result.content[%d].expression", i)
		if b.program, err = compile(field, c.Expression, kind); err != nil {
			return nil, err
		}
		if b.program == nil {
			return nil, fmt.Errorf("%s: the expression is empty", field)
		}
		r.content = append(r.content, b)
	}
	for _, set := range []bool{r.structured != nil, r.text != nil, len(r.content) > 0} {
		if set {
			ways++
		}
	}
	if ways > 1 {
		return nil, errors.New("a result has at most one of structured, text and content")
	}
	return r, nil
}

// isDefault reports whether the answer's form is left to the handler.
func (r *result) isDefault() bool {
	return r.structured == nil && r.text == nil && len(r.content) == 0
}

// eval makes the answer; the default form must have been handled before.
func (r *result) eval(ctx context.Context, vars map[string]any) (*call.Result, error) {
	out := &call.Result{}
	var err error
	switch {
	case r.structured != nil:
		err = r.evalStructured(ctx, vars, out)
	case r.text != nil:
		err = r.evalText(ctx, vars, out)
	default:
		err = r.evalContent(ctx, vars, out)
	}
	if err != nil {
		return nil, err
	}
	out.IsError, err = r.evalIsError(ctx, vars)
	return out, err
}

func (r *result) evalIsError(ctx context.Context, vars map[string]any) (bool, error) {
	if r.isError == nil {
		return false, nil
	}
	value, err := evalProgram(ctx, r.isError, vars)
	if err != nil {
		return false, err
	}
	failed, _ := value.(bool)
	return failed, nil
}

func (r *result) evalStructured(ctx context.Context, vars map[string]any, out *call.Result) error {
	value, err := evalProgram(ctx, r.structured, vars)
	if err != nil {
		return err
	}
	if out.Structured, err = encode(value); err != nil {
		return err
	}
	out.Content = textContent(string(out.Structured))
	return nil
}

func (r *result) evalText(ctx context.Context, vars map[string]any, out *call.Result) error {
	value, err := evalProgram(ctx, r.text, vars)
	if err != nil {
		return err
	}
	text, _ := value.(string)
	out.Content = textContent(text)
	return nil
}

func (r *result) evalContent(ctx context.Context, vars map[string]any, out *call.Result) error {
	raw := []byte{'['}
	for i, b := range r.content {
		value, err := evalProgram(ctx, b.program, vars)
		if err != nil {
			return err
		}
		if i > 0 {
			raw = append(raw, ',')
		}
		if raw, err = r.appendBlock(raw, &b.declared, value); err != nil {
			return err
		}
	}
	out.Content = append(raw, ']')
	return nil
}

func (r *result) appendBlock(dst []byte, c *serverconfig.Content, value any) ([]byte, error) {
	switch c.Type {
	case serverconfig.ContentText:
		text, _ := value.(string)
		return appendText(dst, text), nil
	case serverconfig.ContentImage, serverconfig.ContentAudio:
		kind := "image"
		if c.Type == serverconfig.ContentAudio {
			kind = "audio"
		}
		data, err := asBytes(value, "an "+kind)
		if err != nil {
			return nil, err
		}
		return appendBinary(dst, kind, c.MIMEType, data), nil
	case serverconfig.ContentEmbeddedResource:
		return appendResource(dst, r.uri(c), c.MIMEType, value), nil
	default: // ResourceLink
		name, _ := value.(string)
		return appendLink(dst, r.uri(c), name, c.MIMEType), nil
	}
}

func (r *result) uri(c *serverconfig.Content) string {
	if c.URI != "" {
		return c.URI
	}
	return toolURI(r.tool)
}

// evalProgram gives failures the reason they have for callers.
func evalProgram(ctx context.Context, program *expression.Program, vars map[string]any) (any, error) {
	value, err := program.Eval(ctx, vars)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, call.Fail(call.ExpressionFailed, "%s", err.Error())
	}
	return value, nil
}
