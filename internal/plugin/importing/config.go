// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package importing

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// maxFile is the largest configuration that is read, in bytes.
const maxFile = 1 << 20

// config is a client's configuration, as far as it is about MCP servers.
type config struct {
	entries []entry
	inputs  map[string]input
}

// entry is one server as a client has it. Placeholders stand as they are.
type entry struct {
	name    string
	command []string // With args, once all is read.
	args    []string
	env     []pair
	url     string
	headers []pair
	cwd     string
	envFile string
	// disabled in the client.
	disabled bool
	// unknown members, by name.
	unknown []string
	// faults are members that cannot be read.
	faults []string
}

// pair is a variable or a header.
type pair struct{ name, value string }

// input is something that VS Code asks its user for.
type input struct {
	Description string `json:"description"`
	Default     string `json:"default"`
	Password    bool   `json:"password"`
}

// parse reads a configuration: JSON, with comments and trailing commas as VS
// Code has them. No error quotes it, since it may hold credentials.
func parse(raw []byte) (*config, error) {
	if len(raw) > maxFile {
		return nil, fmt.Errorf("it has %d bytes, and %d are read", len(raw), maxFile)
	}
	raw = append(bytes.TrimPrefix(raw, []byte("\xef\xbb\xbf")), '\n') // It may end a comment.
	value, err := hujson.Parse(raw)
	if err != nil {
		return nil, fmt.Errorf("it is not JSON%s", place(err))
	}
	value.Standardize()
	root, err := members(value.Pack())
	if err != nil {
		return nil, errors.New("it is not a JSON object")
	}
	servers, inputs := find(root)
	if servers == nil {
		return nil, errors.New(`it has no "mcpServers" and no "servers"`)
	}
	list, err := members(servers)
	if err != nil {
		return nil, errors.New("its servers are not a JSON object")
	}
	c := &config{inputs: inputsOf(inputs)}
	for _, m := range list {
		c.entries = append(c.entries, entryOf(m.name, m.value))
	}
	return c, nil
}

// place of a syntax error: line and column, without the text there.
func place(err error) string {
	text := err.Error()
	if at := strings.Index(text, "line "); at >= 0 {
		if line, _, ok := strings.Cut(text[at:], ":"); ok && len(line) < 60 {
			return " at " + line
		}
	}
	return ""
}

// find gives the servers and inputs of a configuration: Claude's and Cursor's
// mcpServers, VS Code's servers, both also under "mcp" of its settings, or the
// servers alone.
func find(root []member) (servers, inputs json.RawMessage) {
	for _, name := range []string{"mcpServers", "servers"} {
		if servers = get(root, name); servers != nil {
			return servers, get(root, "inputs")
		}
	}
	for _, name := range []string{"mcp", "customizations", "vscode"} {
		if below, err := members(get(root, name)); err == nil {
			if servers, inputs = find(below); servers != nil {
				return servers, inputs
			}
		}
	}
	if len(root) == 0 {
		return nil, nil
	}
	var all []byte
	for _, m := range root {
		below, err := members(m.value)
		if err != nil || get(below, "command") == nil && get(below, "url") == nil && get(below, "serverUrl") == nil && get(below, "httpUrl") == nil {
			return nil, nil
		}
		name, err := json.Marshal(m.name)
		if err != nil {
			return nil, nil
		}
		all = append(append(append(append(all, ','), name...), ':'), m.value...)
	}
	return append(append([]byte("{"), all[1:]...), '}'), nil
}

// member of a JSON object.
type member struct {
	name  string
	value json.RawMessage
}

// members of an object, in their order. Of two of one name the last counts.
func members(raw json.RawMessage) ([]member, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("not an object")
	}
	var out []member
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return nil, err
		}
		m := member{}
		m.name, _ = token.(string)
		if err := d.Decode(&m.value); err != nil {
			return nil, err
		}
		if i := slices.IndexFunc(out, func(o member) bool { return o.name == m.name }); i >= 0 {
			out[i] = m
		} else {
			out = append(out, m)
		}
	}
	return out, nil
}

func get(list []member, name string) json.RawMessage {
	for _, m := range list {
		if m.name == name && string(m.value) != "null" {
			return m.value
		}
	}
	return nil
}

func inputsOf(raw json.RawMessage) map[string]input {
	out := map[string]input{}
	var list []json.RawMessage
	if raw == nil || json.Unmarshal(raw, &list) != nil {
		return out
	}
	for _, one := range list {
		var in struct {
			ID string `json:"id"`
			input
		}
		if json.Unmarshal(one, &in) == nil && in.ID != "" {
			out[in.ID] = in.input
		}
	}
	return out
}

// entryOf reads one server. What cannot be read is among its faults.
func entryOf(name string, raw json.RawMessage) entry {
	e := entry{name: name}
	list, err := members(raw)
	if err != nil {
		e.faults = append(e.faults, "it is not an object")
		return e
	}
	for _, m := range list {
		if !e.take(m) {
			e.faults = append(e.faults, m.name+" cannot be read")
		}
	}
	e.command = append(e.command, e.args...)
	return e
}

// take reads one member; false where it has another type.
func (e *entry) take(m member) (ok bool) {
	ok = true
	switch m.name {
	case "command":
		e.command, ok = words(m.value)
	case "args":
		e.args, ok = words(m.value)
		ok = ok && (len(m.value) == 0 || m.value[0] != '"')
	case "env", "environment":
		e.env, ok = pairs(m.value)
	case "url", "serverUrl", "httpUrl":
		e.url, ok = scalar(m.value)
	case "headers", "http_headers":
		e.headers, ok = pairs(m.value)
	case "cwd":
		e.cwd, ok = scalar(m.value)
	case "envFile":
		e.envFile, ok = scalar(m.value)
	case "disabled":
		e.disabled = string(m.value) == "true"
	case "enabled":
		e.disabled = string(m.value) == "false"
	case "type", "transport", "name", "description":
	default:
		e.unknown = append(e.unknown, m.name)
	}
	return ok
}

// words of a list, or one word alone.
func words(raw json.RawMessage) ([]string, bool) {
	if one, ok := scalar(raw); ok {
		return []string{one}, true
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return nil, false
	}
	out := make([]string, 0, len(list))
	for _, raw := range list {
		word, ok := scalar(raw)
		if !ok {
			return nil, false
		}
		out = append(out, word)
	}
	return out, true
}

// scalar is the text of a string, number or boolean.
func scalar(raw json.RawMessage) (string, bool) {
	var text string
	if json.Unmarshal(raw, &text) == nil && len(raw) > 0 && raw[0] == '"' {
		return text, true
	}
	if len(raw) > 0 && strings.IndexByte("{[n", raw[0]) < 0 {
		return string(raw), true
	}
	return "", false
}

// pairs of an object, sorted by name. One that is null is left out.
func pairs(raw json.RawMessage) ([]pair, bool) {
	list, err := members(raw)
	if err != nil {
		return nil, string(raw) == "null"
	}
	var out []pair
	for _, m := range list {
		if string(m.value) == "null" {
			continue
		}
		value, ok := scalar(m.value)
		if !ok {
			return nil, false
		}
		out = append(out, pair{m.name, value})
	}
	slices.SortFunc(out, func(a, b pair) int { return strings.Compare(a.name, b.name) })
	return out, true
}
