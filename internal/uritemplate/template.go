// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package uritemplate matches URIs with RFC 6570 templates and takes the
// variables' values out of them. The operator parses a template to accept it,
// the shared server parses it again to use it.
//
// All operators of the RFC work. Prefixes ({x:3}) and lists ({x*}) do not: a
// value could not be taken out of a URI whole, and a variable is one string.
package uritemplate

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	rfc6570 "github.com/yosida95/uritemplate/v3"
)

const (
	// MaxURI is the longest URI that is matched, in bytes.
	MaxURI = 4 << 10
	// MaxVariables of one template.
	MaxVariables = 16
)

// Template is a parsed template. It is safe for concurrent use.
type Template struct {
	parsed *rfc6570.Template
	// pattern says in linear time whether a URI matches; taking the values
	// out costs many times more.
	pattern   *regexp.Regexp
	variables []string
	prefix    string
}

var (
	scheme     = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:`)
	name       = regexp.MustCompile(`^[A-Za-z0-9_]+$`)
	expression = regexp.MustCompile(`\{([^{}]*)\}`)
)

// Parse parses a template. It begins with a literal scheme and has at least
// one variable, each once. Errors do not hold more of raw than a name.
func Parse(raw string) (*Template, error) {
	if !scheme.MatchString(raw) {
		return nil, errors.New("the template does not begin with a scheme, as in docs://{name}")
	}
	for _, found := range expression.FindAllStringSubmatch(raw, -1) {
		if strings.ContainsAny(found[1], "*:") {
			return nil, fmt.Errorf("{%.40s} has a prefix (:) or a list (*), which no URI can be matched with", found[1])
		}
	}
	parsed, err := rfc6570.New(raw)
	if err != nil {
		return nil, errors.New("the template is not one of RFC 6570")
	}
	t := &Template{parsed: parsed, variables: parsed.Varnames()}
	t.prefix, _, _ = strings.Cut(raw, "{")
	t.pattern = parsed.Regexp()
	switch {
	case len(t.variables) == 0:
		return nil, errors.New("the template has no variable: use uri")
	case len(t.variables) > MaxVariables:
		return nil, fmt.Errorf("the template has %d variables, at most %d are allowed", len(t.variables), MaxVariables)
	}
	for _, v := range t.variables {
		if !name.MatchString(v) {
			return nil, fmt.Errorf("the variable %.40q has other characters than A-Z, a-z, 0-9 and _", v)
		}
	}
	if count(raw) != len(t.variables) {
		return nil, errors.New("a variable stands twice in the template")
	}
	return t, nil
}

// count of variables as they are written.
func count(raw string) int {
	n := 0
	for _, found := range expression.FindAllStringSubmatch(raw, -1) {
		n += 1 + strings.Count(found[1], ",")
	}
	return n
}

// Variables are the names, in the order of the template. They must not be
// changed.
func (t *Template) Variables() []string { return t.variables }

// Has reports whether name is one of the variables.
func (t *Template) Has(name string) bool { return slices.Contains(t.variables, name) }

// Match gives the decoded values of the variables that uri has, if the
// template makes it.
func (t *Template) Match(uri string) (map[string]string, bool) {
	if len(uri) > MaxURI || !strings.HasPrefix(uri, t.prefix) || !t.pattern.MatchString(uri) {
		return nil, false
	}
	found := t.parsed.Match(uri)
	if found == nil {
		return nil, false
	}
	values := map[string]string{}
	for _, v := range t.variables {
		if value := found.Get(v); value.Valid() && value.String() != "" {
			values[v] = value.String()
		}
	}
	return values, true
}
