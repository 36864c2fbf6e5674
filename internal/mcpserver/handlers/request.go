// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/internal/expression"
	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

const (
	mediaJSON = "application/json"
	mediaForm = "application/x-www-form-urlencoded"
)

// body is a compiled serverconfig.Body.
type body struct {
	program   *expression.Program
	mediaType string
}

func compileBody(declared *serverconfig.Body) (*body, error) {
	b := &body{mediaType: declared.MediaType}
	if b.mediaType == "" {
		b.mediaType = mediaJSON
	}
	if _, _, err := mime.ParseMediaType(b.mediaType); err != nil || !validHeaderValue(b.mediaType) {
		return nil, fmt.Errorf("body.mediaType %.60q is not a media type", b.mediaType)
	}
	var err error
	if b.program, err = expression.Compile(expression.Call, declared.Expression, expression.BodyKind(b.mediaType)); err != nil {
		return nil, fmt.Errorf("body.expression: %w", err)
	}
	return b, nil
}

// prepared is a request that can be sent more than once.
type prepared struct {
	url    *url.URL
	header http.Header
	body   []byte
}

// prepare maps the arguments. All that could go wrong with them does so here,
// before anything is sent.
func (h *httpHandler) prepare(ctx context.Context, c *call.Call) (*prepared, error) {
	vars := c.Vars()
	query, err := h.buildQuery(ctx, c, vars)
	if err != nil {
		return nil, err
	}
	p := &prepared{header: http.Header{}}
	p.url, err = h.target.Fill(func(name string) (string, error) { return h.segment(ctx, c, vars, name) }, query)
	if err != nil {
		return nil, argumentFailure(err)
	}
	body, mediaType, err := h.buildBody(ctx, c, vars)
	if err != nil {
		return nil, err
	}
	p.body = body
	if int64(len(p.body)) > c.MaxBytes {
		return nil, call.Fail(call.InvalidArguments, "the request to the backend is larger than %d bytes", c.MaxBytes)
	}
	p.header.Set("User-Agent", h.factory.userAgent)
	p.header.Set("Accept", mediaJSON+", */*;q=0.5")
	if mediaType != "" {
		p.header.Set("Content-Type", mediaType)
	}
	if h.operation != nil {
		if err := h.operation.setHeaders(c, p.header); err != nil {
			return nil, err
		}
	}
	return p, h.setHeaders(ctx, vars, p.header)
}

// argumentFailure gives an error that has no reason yet the one of arguments
// that do not fit.
func argumentFailure(err error) error {
	var failure *call.Error
	if errors.As(err, &failure) {
		return err
	}
	return call.Fail(call.InvalidArguments, "%s", err.Error())
}

func (h *httpHandler) setHeaders(ctx context.Context, vars map[string]any, header http.Header) error {
	for i := range h.headers {
		v := &h.headers[i]
		texts, err := v.texts(ctx, vars, h.factory.credentials)
		if err != nil {
			return err
		}
		for j, text := range texts {
			if !validHeaderValue(text) {
				return call.Fail(call.InvalidArguments, "the value of the header %s holds a control character", v.name)
			}
			if j == 0 {
				header.Del(v.name)
			}
			header.Add(v.name, text)
		}
	}
	return nil
}

// segment gives the text of a placeholder.
func (h *httpHandler) segment(ctx context.Context, c *call.Call, vars map[string]any, name string) (string, error) {
	if h.operation != nil {
		return h.operation.segment(c, name)
	}
	if v := h.path[name]; v != nil {
		texts, err := v.texts(ctx, vars, h.factory.credentials)
		if err != nil {
			return "", err
		}
		return strings.Join(texts, ""), nil
	}
	given, ok := c.Args[name]
	if !ok || given == nil {
		return "", call.Fail(call.InvalidArguments, "argument %q is missing, it stands in the path", name)
	}
	text, ok := scalarText(given)
	if !ok {
		return "", call.Fail(call.InvalidArguments, "argument %q must be text, a number or a boolean, it stands in the path", name)
	}
	return text, nil
}

func (h *httpHandler) buildQuery(ctx context.Context, c *call.Call, vars map[string]any) (string, error) {
	if h.operation != nil {
		return h.operation.query(c)
	}
	var pairs []string
	add := func(name, text string) {
		pairs = append(pairs, url.QueryEscape(name)+"="+url.QueryEscape(text))
	}
	for i := range h.query {
		texts, err := h.query[i].texts(ctx, vars, h.factory.credentials)
		if err != nil {
			return "", err
		}
		for _, text := range texts {
			add(h.query[i].name, text)
		}
	}
	if !h.defaultQuery {
		return strings.Join(pairs, "&"), nil
	}
	for _, name := range slices.Sorted(maps.Keys(c.Args)) {
		if h.inPath[name] {
			continue
		}
		if err := h.expect(name); err != nil {
			return "", err
		}
		for _, element := range asList(c.Args[name]) {
			text, ok := scalarText(element)
			if !ok && element != nil {
				raw, err := encode(element)
				if err != nil {
					return "", err
				}
				text, ok = string(raw), true
			}
			if ok {
				add(name, text)
			}
		}
	}
	return strings.Join(pairs, "&"), nil
}

// expect refuses an argument that nobody declared: mapped by default it would
// become a query pair or a key of the body of the caller's own making.
func (h *httpHandler) expect(name string) error {
	if !h.input.Expects(name) || h.target.HasQuery(name) {
		return call.Fail(call.InvalidArguments, "argument %.60q is not one of this tool's", name)
	}
	return nil
}

func (h *httpHandler) buildBody(ctx context.Context, c *call.Call, vars map[string]any) ([]byte, string, error) {
	switch {
	case h.operation != nil:
		return h.operation.body(c)
	case h.body != nil:
		raw, err := h.body.build(ctx, vars)
		return raw, h.body.mediaType, err
	case h.defaultBody:
		raw, err := h.argumentsBody(c)
		return raw, mediaJSON, err
	}
	return nil, "", nil
}

// argumentsBody is an object of the arguments that stand nowhere in the path,
// each as it was written.
func (h *httpHandler) argumentsBody(c *call.Call) ([]byte, error) {
	out := []byte{'{'}
	if len(c.Args) > 0 {
		fields, err := wire.DecodeObject(c.RawArgs)
		if err != nil {
			return nil, call.Fail(call.InvalidArguments, "the arguments cannot be read")
		}
		for _, field := range fields {
			if h.inPath[field.Key] {
				continue
			}
			if !h.input.Expects(field.Key) {
				return nil, call.Fail(call.InvalidArguments, "argument %.60q is not one of this tool's", field.Key)
			}
			if len(out) > 1 {
				out = append(out, ',')
			}
			out = wire.AppendString(out, field.Key)
			out = append(out, ':')
			out = append(out, field.Raw...)
		}
	}
	return append(out, '}'), nil
}

func (b *body) build(ctx context.Context, vars map[string]any) ([]byte, error) {
	value, err := evalProgram(ctx, b.program, vars)
	if err != nil {
		return nil, err
	}
	switch expression.BodyKind(b.mediaType) {
	case expression.Any:
		return encode(value)
	case expression.Map:
		return formBody(value)
	}
	switch value := value.(type) {
	case []byte:
		return value, nil
	case string:
		return []byte(value), nil
	}
	return nil, errors.New("the body is neither text nor bytes")
}

func formBody(value any) ([]byte, error) {
	form := url.Values{}
	fields, _ := value.(map[string]any)
	for name, field := range fields {
		for _, element := range asList(field) {
			text, ok := scalarText(element)
			if !ok && element != nil {
				return nil, call.Fail(call.ExpressionFailed, "the form field %.60q is neither text, number nor boolean", name)
			}
			if ok {
				form.Add(name, text)
			}
		}
	}
	return []byte(form.Encode()), nil
}
