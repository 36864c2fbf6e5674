// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/espalier-dev/espalier/hack/docs/page"
)

// fields renders tables of fields for one page. What has the fields of
// something that the page has already is referred to that.
type fields struct {
	kinds kinds
	enums enums
	// seen are the paths of what was rendered, by shape.
	seen map[string]string
	rows [][]string
	// rules are the messages of CEL rules, by path.
	rules []string
}

// table gives the fields of kind at path, with all that is below them where
// deep is set, else one level with links to sections of their own.
func (f *fields) table(kind, path string, deep bool) (string, error) {
	s, err := f.kinds.at(kind, path)
	if err != nil {
		return "", err
	}
	f.rows, f.rules = nil, nil
	if deep {
		f.seen[shape(s)] = path
		f.rule(path, s)
	} else {
		f.rule(kind, f.kinds[kind].Schema.OpenAPIV3Schema)
		f.rule(path, s)
	}
	f.walk(short(path, s, deep), inner(s), deep)
	out := page.Table([]string{"field", "type", "default", "what"}, f.rows)
	if len(f.rules) > 0 {
		out += "\nThe API server refuses what breaks these rules:\n\n" + strings.Join(f.rules, "\n") + "\n"
	}
	return out, nil
}

// short leaves out what the section's heading says.
func short(path string, s *schema, deep bool) string {
	if !deep {
		return ""
	}
	path = path[strings.LastIndex(path, ".")+1:]
	if s.Items != nil {
		path += "[]"
	}
	return path + "."
}

func (f *fields) walk(prefix string, s *schema, deep bool) {
	for _, name := range names(s) {
		p := s.Properties[name]
		told, value := defaultOf(&p)
		what := page.Cell(told) + f.enums.of(inner(&p))
		below := len(inner(&p).Properties) > 0
		other, known := f.seen[shape(&p)]
		switch {
		case !below || !described(&p):
		case !deep:
			what += fmt.Sprintf(" [Fields](#spec%s).", strings.ToLower(name))
		case known:
			what += fmt.Sprintf(" Fields as of %s.", page.Code(other))
		}
		f.rows = append(f.rows, []string{page.Code(prefix + name), kindOf(s, name, &p), value, what + limits(&p)})
		if deep {
			f.rule(prefix+name, &p)
		}
		if deep && below && described(&p) && !known {
			path := prefix + name
			if p.Items != nil {
				path += "[]"
			}
			f.seen[shape(&p)] = path
			f.walk(path+".", inner(&p), deep)
		}
	}
}

func (f *fields) rule(path string, s *schema) {
	for _, at := range []*schema{s, inner(s)} {
		for _, rule := range at.XValidations {
			line := fmt.Sprintf("- %s: %s", page.Code(path), page.Cell(rule.Message))
			if !slices.Contains(f.rules, line) {
				f.rules = append(f.rules, line)
			}
		}
	}
}

func kindOf(parent *schema, name string, p *schema) string {
	out := p.Type
	switch {
	case p.Items != nil:
		out = "list of " + many(inner(p).Type)
	case p.AdditionalProperties != nil && p.AdditionalProperties.Schema != nil:
		out = "map of " + many(p.AdditionalProperties.Schema.Type)
	case p.XIntOrString:
		out = "integer or string"
	case out == "":
		out = "any"
	}
	if slices.Contains(parent.Required, name) {
		out += ", required"
	}
	return out
}

func many(kind string) string {
	if kind == "" {
		return "anything"
	}
	return kind + "s"
}

// defaults of fields that the API server leaves out are told in words.
var defaults = regexp.MustCompile(`\s*\bDefaults to (.+?)\.(\s|$)`)

// defaultOf gives the default of p, and its description without that.
func defaultOf(p *schema) (description, value string) {
	if p.Default != nil {
		return p.Description, page.Code(string(p.Default.Raw))
	}
	description = strings.Join(strings.Fields(p.Description), " ")
	found := defaults.FindStringSubmatch(description)
	if found == nil {
		return description, ""
	}
	return strings.TrimSpace(strings.Replace(description, found[0], " ", 1)), page.Cell(found[1])
}

// limits of a value, as a sentence.
func limits(p *schema) string {
	var parts []string
	span := func(low, high *int64, unit string) {
		switch {
		case high != nil && low != nil && *low > 0:
			parts = append(parts, fmt.Sprintf("%d to %d %s", *low, *high, unit))
		case high != nil:
			parts = append(parts, fmt.Sprintf("at most %d %s", *high, unit))
		case low != nil && *low > 0:
			parts = append(parts, fmt.Sprintf("at least %d %s", *low, unit))
		}
	}
	span(p.MinItems, p.MaxItems, "items")
	span(p.MinProperties, p.MaxProperties, "members")
	span(p.MinLength, p.MaxLength, "characters")
	switch low, high := p.Minimum, p.Maximum; {
	case low != nil && high != nil:
		parts = append(parts, number(*low)+" to "+number(*high))
	case low != nil:
		parts = append(parts, "at least "+number(*low))
	case high != nil:
		parts = append(parts, "at most "+number(*high))
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, "; ") + ")"
}

func number(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
