// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package call

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
	"github.com/espalier-dev/espalier/internal/plugin/env"
)

// form fills in a form: from --answer, by its defaults, or by the person.
func (a *asker) form(ctx context.Context, object wire.Object) (json.RawMessage, error) {
	message, _ := object.Text("message")
	wanted := shapeOf(object.Get("requestedSchema"))
	content := map[string]any{}
	var open []string
	for _, name := range fields(object.Get("requestedSchema"), wanted) {
		field, _ := wanted.property(name)
		value, known, err := a.known(field, name)
		switch {
		case err != nil:
			return nil, a.say(err)
		case known:
			content[name] = value
		default:
			open = append(open, name)
		}
	}
	required := slices.DeleteFunc(wanted.required(), func(name string) bool { return !slices.Contains(open, name) })
	if a.person && !a.defaults && (len(open) > 0 || len(a.given) == 0) {
		accepted, err := a.fill(ctx, message, wanted, open, content)
		if err != nil || !accepted {
			return action("decline"), err
		}
	} else if len(required) > 0 {
		fmt.Fprintf(a.env.ErrOut, "The server asks: %s\nIt was declined: --answer does not say %s.\n", env.Lines(message), env.Line(strings.Join(required, ", ")))
		return action("decline"), nil
	}
	raw, err := json.Marshal(content)
	return fmt.Appendf(nil, `{"action":"accept","content":%s}`, raw), err
}

// say tells the person that an answer of --answer does not fit, and ends the
// question.
func (a *asker) say(err error) error {
	fmt.Fprintf(a.env.ErrOut, "--answer: %v\n", err)
	return err
}

// fields of a form, in the order in which the server wrote them.
func fields(raw json.RawMessage, wanted shape) []string {
	object, err := wire.DecodeObject(raw)
	if err != nil {
		return nil
	}
	properties, err := wire.DecodeObject(object.Get("properties"))
	if err != nil {
		return wanted.names()
	}
	names := make([]string, 0, len(properties))
	for _, p := range properties {
		names = append(names, p.Key)
	}
	return names
}

// known gives the value that is known without asking.
func (a *asker) known(field shape, name string) (value any, ok bool, err error) {
	if text, given := a.given[name]; given {
		object := map[string]any{}
		for _, part := range splitList(field, text) {
			if err := set(object, name, field, name, part); err != nil {
				return nil, false, err
			}
		}
		return object[name], true, nil
	}
	if byDefault, given := field.node["default"]; given && (a.defaults || !a.person) {
		return byDefault, true, nil
	}
	return nil, false, nil
}

// splitList takes a list apart that a person wrote with commas.
func splitList(field shape, text string) []string {
	if field.is("array") && !strings.HasPrefix(text, "[") {
		parts := strings.Split(text, ",")
		for i := range parts {
			parts[i] = strings.TrimSpace(parts[i])
		}
		return parts
	}
	return []string{text}
}

// fill asks the person for what is open, and whether to send it.
func (a *asker) fill(ctx context.Context, message string, wanted shape, open []string, content map[string]any) (bool, error) {
	fmt.Fprintf(a.env.ErrOut, "The server asks: %s\n", env.Lines(message))
	required := wanted.required()
	for _, name := range open {
		field, _ := wanted.property(name)
		value, err := a.one(ctx, name, field, slices.Contains(required, name))
		if err != nil {
			return false, err
		}
		if value != nil {
			content[name] = value
		}
	}
	text, err := a.read(ctx, "Send this to the server? [y/N] ")
	return err == nil && isYes(text), err
}

// one asks for one field; nil is left out.
func (a *asker) one(ctx context.Context, name string, field shape, required bool) (any, error) {
	prompt := "  " + env.Line(name)
	if d := field.description(); d != "" {
		prompt += " - " + env.Cut(env.Line(d), 120)
	}
	prompt += " (" + env.Line(field.expected())
	byDefault, hasDefault := field.node["default"]
	switch {
	case hasDefault:
		prompt += fmt.Sprintf(", default %s", env.Line(fmt.Sprint(byDefault)))
	case !required:
		prompt += ", may be left out"
	}
	prompt += "): "
	for range maxTries {
		text, err := a.read(ctx, prompt)
		switch {
		case err != nil:
			return nil, err
		case text == "" && hasDefault:
			return byDefault, nil
		case text == "" && !required:
			return nil, nil
		}
		object := map[string]any{}
		for _, part := range splitList(field, text) {
			if err = set(object, name, field, name, part); err != nil {
				break
			}
		}
		if err == nil {
			return object[name], nil
		}
		fmt.Fprintf(a.env.ErrOut, "  %v\n", err)
	}
	return nil, fmt.Errorf("no answer to %q that fits", name)
}
