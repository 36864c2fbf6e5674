// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// value is a value of values.yaml, or a group of values.
type value struct {
	// name is the last part of path, which is written as in --set.
	name, path string
	// section is the heading above it.
	section string
	// description is what its comment says; empty for a group.
	description string
	// schema is what its comment adds to what its default tells.
	schema map[string]any
	// fallback is what holds when nobody sets it.
	fallback any
	// members of a group, in order.
	members []*value
}

func (v *value) group() bool { return v.members != nil }

// leaves are the values of a tree that are no groups.
func (v *value) leaves() []*value {
	if !v.group() {
		return []*value{v}
	}
	var out []*value
	for _, member := range v.members {
		out = append(out, member.leaves()...)
	}
	return out
}

// find gives the value that path leads to: a group, or the leaf on the way.
func (v *value) find(path []string) *value {
	for _, name := range path {
		if !v.group() {
			return v
		}
		var next *value
		for _, member := range v.members {
			if member.name == name {
				next = member
			}
		}
		if next == nil {
			return nil
		}
		v = next
	}
	return v
}

const (
	markSection = "##@ "
	markSchema  = "+schema "
)

var comment = regexp.MustCompile(`^\s*# ?(.*)$`)

// reader reads values.yaml.
type reader struct{ lines []string }

// readValues gives the group of all values.
func readValues(file string) (*value, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(document.Content) != 1 || document.Content[0].Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%s: not one map", file)
	}
	r := &reader{lines: strings.Split(string(text), "\n")}
	root := &value{}
	if root.members, err = r.members(document.Content[0], ""); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return root, nil
}

func (r *reader) members(node *yaml.Node, prefix string) ([]*value, error) {
	out := []*value{}
	for i := 0; i < len(node.Content); i += 2 {
		key := node.Content[i]
		v := &value{name: key.Value, path: prefix + key.Value, section: r.section(key.Line)}
		if err := r.fill(v, key.Line, node.Content[i+1]); err != nil {
			return nil, fmt.Errorf("line %d: %s: %w", key.Line, v.path, err)
		}
		out = append(out, v)
	}
	return out, nil
}

func (r *reader) fill(v *value, line int, node *yaml.Node) error {
	var err error
	if v.description, v.schema, err = r.comment(line); err != nil {
		return err
	}
	if v.description != "" {
		return node.Decode(&v.fallback)
	}
	if node.Kind != yaml.MappingNode || len(node.Content) == 0 {
		return fmt.Errorf("no comment says what it is for")
	}
	v.members, err = r.members(node, v.path+".")
	return err
}

// section is the heading above a line, which counts from 1.
func (r *reader) section(line int) string {
	for i := line - 1; i >= 0; i-- {
		if title, ok := strings.CutPrefix(r.lines[i], markSection); ok {
			return title
		}
	}
	return ""
}

// comment reads the comment that ends just above a line.
func (r *reader) comment(line int) (description string, schema map[string]any, err error) {
	first := line - 1
	for first > 0 && comment.MatchString(r.lines[first-1]) && !strings.HasPrefix(r.lines[first-1], markSection) {
		first--
	}
	schema = map[string]any{}
	var words []string
	for _, text := range r.lines[first : line-1] {
		text = comment.FindStringSubmatch(text)[1]
		added, ok := strings.CutPrefix(text, markSchema)
		if !ok {
			words = append(words, text)
			continue
		}
		part := map[string]any{}
		if err := json.Unmarshal([]byte(added), &part); err != nil {
			return "", nil, fmt.Errorf("%s: %w", markSchema, err)
		}
		maps.Copy(schema, part)
	}
	return strings.Join(words, " "), schema, nil
}
