// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/espalier-dev/espalier/internal/expression"
	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/mcpserver/credentials"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// value is a compiled serverconfig.Value.
type value struct {
	name    string
	prefix  string
	literal string
	program *expression.Program
	file    string
}

func compileValues(field string, declared []serverconfig.Value, kind expression.Kind) ([]value, error) {
	out := make([]value, 0, len(declared))
	for _, d := range declared {
		v := value{name: d.Name, prefix: d.Prefix, file: d.File}
		ways := 0
		if d.Value != nil {
			ways++
			v.literal = *d.Value
		}
		if d.File != "" {
			ways++
		}
		if d.Expression != "" {
			ways++
			program, err := expression.Compile(expression.Call, d.Expression, kind)
			if err != nil {
				return nil, fmt.Errorf("%s[%s].expression: %w", field, d.Name, err)
			}
			v.program = program
		}
		if ways != 1 {
			return nil, fmt.Errorf("%s[%s] needs one of value, expression and a reference", field, d.Name)
		}
		out = append(out, v)
	}
	return out, nil
}

// texts gives the value as texts: none for null, several for a list.
func (v *value) texts(ctx context.Context, vars map[string]any, store *credentials.Store) ([]string, error) {
	switch {
	case v.file != "":
		text, err := store.Text(v.file)
		if err != nil {
			return nil, credentialFailure(err)
		}
		return []string{v.prefix + text}, nil
	case v.program == nil:
		return []string{v.prefix + v.literal}, nil
	}
	got, err := evalProgram(ctx, v.program, vars)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, element := range asList(got) {
		text, ok := scalarText(element)
		if !ok {
			if element == nil {
				continue
			}
			return nil, call.Fail(call.ExpressionFailed, "the value of %q is neither text, number nor boolean", v.name)
		}
		out = append(out, v.prefix+text)
	}
	return out, nil
}

func credentialFailure(err error) error {
	var missing *credentials.MissingError
	if errors.As(err, &missing) {
		return call.Fail(call.CredentialMissing, "%s", missing.Error())
	}
	return call.Fail(call.CredentialMissing, "a mounted credential cannot be read")
}

func asList(v any) []any {
	if list, ok := v.([]any); ok {
		return list
	}
	return []any{v}
}

// scalarText writes a text, number or boolean as URLs and headers have it.
func scalarText(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case bool:
		return strconv.FormatBool(v), true
	case int64:
		return strconv.FormatInt(v, 10), true
	case uint64:
		return strconv.FormatUint(v, 10), true
	case float64:
		if v < 1e21 && v > -1e21 {
			return strconv.FormatFloat(v, 'f', -1, 64), true
		}
		return strconv.FormatFloat(v, 'g', -1, 64), true
	}
	return "", false
}

// ownHeaders belong to the connection, not to the author of a tool.
var ownHeaders = map[string]bool{
	"Host": true, "Content-Length": true, "Transfer-Encoding": true, "Connection": true, "Upgrade": true, "Te": true,
	"Trailer": true, "Keep-Alive": true, "Proxy-Authorization": true, "Proxy-Connection": true, "Expect": true,
}

func checkHeaderNames(headers []value) error {
	for _, h := range headers {
		if !isToken(h.name) {
			return fmt.Errorf("%.60q is not a header name", h.name)
		}
		if ownHeaders[http.CanonicalHeaderKey(h.name)] {
			return fmt.Errorf("the header %s cannot be set", h.name)
		}
	}
	return nil
}

// validHeaderValue reports whether text can stand in a header: no line break,
// no other control character but the tab.
func validHeaderValue(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}

func isToken(s string) bool {
	for _, c := range []byte(s) {
		alnum := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !alnum && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return s != ""
}
