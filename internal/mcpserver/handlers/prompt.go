// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/espalier-dev/espalier/internal/expression"
	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// promptHandler gives a prompt's messages.
type promptHandler struct{ messages []message }

// message is a compiled serverconfig.Message.
type message struct {
	role     string
	declared serverconfig.PromptContent
	// Of each there is a program, or the literal of the declaration.
	data, uri *expression.Program
}

// MakePrompt implements registry.PromptFactory.
func (f *Factory) MakePrompt(p *serverconfig.Prompt) (call.Handler, error) {
	if p.Upstream != nil {
		if f.Upstreams == nil {
			return nil, errNoUpstreams
		}
		return f.Upstreams.Prompt(p.Upstream), nil
	}
	h := &promptHandler{}
	for i, declared := range p.Messages {
		m, err := compileMessage(declared)
		if err != nil {
			return nil, fmt.Errorf("messages[%d]: %w", i, err)
		}
		h.messages = append(h.messages, m)
	}
	return h, nil
}

func compileMessage(declared serverconfig.Message) (message, error) {
	c := declared.Content
	m := message{role: declared.Role, declared: c}
	kind, err := ContentKind(c.Type)
	if err != nil {
		return m, err
	}
	ways := 0
	for _, set := range []bool{c.Text != "", c.Blob != nil, c.Expression != ""} {
		if set {
			ways++
		}
	}
	if ways > 1 || ways == 0 && c.Type != serverconfig.ContentEmbeddedResource {
		return m, errors.New("content needs one of text, blob and expression")
	}
	if c.Expression != "" {
		if m.data, err = expression.Compile(expression.Call, c.Expression, kind); err != nil {
			return m, fmt.Errorf("expression: %w", err)
		}
	}
	if c.URIExpression != "" {
		if m.uri, err = expression.Compile(expression.Call, c.URIExpression, expression.String); err != nil {
			return m, fmt.Errorf("uriExpression: %w", err)
		}
	}
	return m, nil
}

// Call implements call.Handler.
func (h *promptHandler) Call(ctx context.Context, c *call.Call) (*call.Result, error) {
	vars := c.Vars()
	out := []byte{'['}
	for i := range h.messages {
		m := &h.messages[i]
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, `{"role":`...)
		out = wire.AppendString(out, m.role)
		out = append(out, `,"content":`...)
		var err error
		if out, err = m.appendContent(ctx, c, vars, out); err != nil {
			return nil, err
		}
		out = append(out, '}')
		if int64(len(out)) > c.MaxBytes {
			return nil, call.Fail(call.ResultTooLarge, "the prompt is larger than %d bytes", c.MaxBytes)
		}
	}
	return &call.Result{Content: append(out, ']')}, nil
}

func (m *message) appendContent(ctx context.Context, c *call.Call, vars map[string]any, dst []byte) ([]byte, error) {
	uri := m.declared.URI
	if m.uri != nil {
		value, err := evalProgram(ctx, m.uri, vars)
		if err != nil {
			return nil, err
		}
		uri, _ = value.(string)
	}
	value, err := m.value(ctx, vars)
	if err != nil {
		return nil, err
	}
	if value == nil {
		return embedOwn(ctx, c, uri, dst)
	}
	mimeType := m.declared.MIMEType
	switch m.declared.Type {
	case serverconfig.ContentImage, serverconfig.ContentAudio:
		kind := "image"
		if m.declared.Type == serverconfig.ContentAudio {
			kind = "audio"
		}
		data, err := asBytes(value, "an "+kind)
		if err != nil {
			return nil, err
		}
		return appendBinary(dst, kind, mimeType, data), nil
	case serverconfig.ContentEmbeddedResource:
		return appendResource(dst, uri, mimeType, value), nil
	case serverconfig.ContentResourceLink:
		name, _ := value.(string)
		return appendLink(dst, uri, name, mimeType), nil
	default:
		text, _ := value.(string)
		return appendText(dst, text), nil
	}
}

// value of the data: text, bytes, or nil for a resource of the server itself.
func (m *message) value(ctx context.Context, vars map[string]any) (any, error) {
	switch {
	case m.data != nil:
		return evalProgram(ctx, m.data, vars)
	case m.declared.Blob != nil:
		return m.declared.Blob, nil
	case m.declared.Text != "":
		return m.declared.Text, nil
	}
	return nil, nil //nolint:nilnil // No value of its own, and nothing wrong.
}

// embedOwn embeds what the server itself has at uri, as the caller may read it.
func embedOwn(ctx context.Context, c *call.Call, uri string, dst []byte) ([]byte, error) {
	if c.Read == nil {
		return nil, call.Fail(call.NotFound, "no resource can be read here")
	}
	result, err := c.Read(ctx, uri)
	if err != nil {
		return nil, err
	}
	// A declared resource has one part; of more, which only an upstream gives,
	// one content can hold the first.
	var parts []json.RawMessage
	if json.Unmarshal(result.Content, &parts) != nil || len(parts) == 0 {
		return nil, call.Fail(call.NotFound, "the resource is empty")
	}
	dst = append(dst, `{"type":"resource","resource":`...)
	dst = append(dst, parts[0]...)
	return append(dst, '}'), nil
}
