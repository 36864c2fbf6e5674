// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package decoders sees to it that whatever takes foreign bytes apart is
// fuzzed.
package decoders

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	root   = "../.."
	module = "github.com/espalier-dev/espalier/"
)

// decoders are functions that take bytes apart, by import path; a name that
// ends in * is a prefix.
var decoders = map[string][]string{
	"encoding/json":                     {"Unmarshal", "NewDecoder"},
	"encoding/base64":                   {"NewDecoder", "*Encoding"},
	"encoding/hex":                      {"Decode*"},
	"encoding/pem":                      {"Decode"},
	"crypto/x509":                       {"Parse*"},
	"bufio":                             {"NewReader*", "NewScanner"},
	"compress/gzip":                     {"NewReader"},
	"mime":                              {"ParseMediaType"},
	"net/url":                           {"Parse*"},
	"net/netip":                         {"Parse*"},
	"net/http":                          {"ReadRequest", "ReadResponse"},
	"github.com/coder/websocket":        {"Accept", "Dial"},
	"github.com/go-jose/go-jose/v4":     {"Parse*"},
	"github.com/go-jose/go-jose/v4/jwt": {"Parse*"},
	"go.yaml.in/yaml/v4":                {"Unmarshal", "NewDecoder"},
	module + "internal/mcpserver/wire":  {"Decode*", "Text"},
	module + "internal/sse":             {"NewReader"},
	module + "internal/jwks":            {"Parse"},
}

// elsewhere are the rooms that use a decoder and have no fuzz test of their
// own: "ROOM FuzzX" for one that reaches it, or why its bytes are not foreign.
var elsewhere = map[string]string{
	"mcpserver/duplex": "mcpserver FuzzConnection",
	"mcpserver/engine": "mcpserver FuzzHTTP",
	// The frames are the library's; what they hold is duplex's.
	"mcpserver/websocket": "mcpserver FuzzConnection",
	"clusterkeys":         "one field of the API server's own document; the keys are read by jwks",
	"catalog":             "fields of objects that the API server has accepted",
	"resources":           "fields of objects that the API server has accepted, and what was rendered here",
	"keys":                "it encodes, and reads the operator's own Secret by length",
	"mcpprobe/fakemcp":    "a server for tests",
	"plugin/reach":        "URLs of the user and of objects that the API server has accepted",
	"plugin/why":          "URLs of objects that the API server has accepted",
}

func TestDecodersAreFuzzed(t *testing.T) {
	uses, targets := map[string][]string{}, map[string][]string{}
	err := filepath.WalkDir(filepath.Join(root, "internal"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		room, err := filepath.Rel(filepath.Join(root, "internal"), filepath.Dir(path))
		if err != nil {
			return err
		}
		if room = filepath.ToSlash(room); strings.HasSuffix(room, "test") {
			return nil // Such as authtest: it is for tests alone.
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		if strings.HasSuffix(path, "_test.go") {
			targets[room] = append(targets[room], fuzzTests(file)...)
		} else if used := used(file); len(used) > 0 {
			uses[room] = append(uses[room], used...)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, room := range slices.Sorted(maps.Keys(uses)) {
		why, excused := elsewhere[room]
		switch {
		case len(targets[room]) > 0 && excused:
			t.Errorf("internal/%s has fuzz tests of its own: it needs no excuse", room)
		case len(targets[room]) == 0 && !excused:
			slices.Sort(uses[room])
			t.Errorf("internal/%s uses %s and has no fuzz test: write one, or say in elsewhere who reaches it or why its bytes are not foreign", room, strings.Join(slices.Compact(uses[room]), ", "))
		case excused:
			if other, target, named := strings.Cut(why, " Fuzz"); named && !slices.Contains(targets[other], "Fuzz"+target) {
				t.Errorf("internal/%s: there is no %q", room, why)
			}
		}
	}
	for room := range elsewhere {
		if uses[room] == nil {
			t.Errorf("internal/%s uses no decoder (any more): take it out of elsewhere", room)
		}
	}
}

// fuzzTests of a file.
func fuzzTests(file *ast.File) []string {
	var out []string
	for _, declaration := range file.Decls {
		if f, ok := declaration.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Fuzz") {
			out = append(out, f.Name.Name)
		}
	}
	return out
}

// used are the decoders that a file names.
func used(file *ast.File) []string {
	imported := map[string]string{}
	for _, spec := range file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil || decoders[path] == nil {
			continue
		}
		name := filepath.Base(strings.TrimSuffix(strings.TrimSuffix(path, "/v3"), "/v4"))
		if path == "github.com/go-jose/go-jose/v4" {
			name = "jose"
		}
		if spec.Name != nil {
			name = spec.Name.Name
		}
		imported[name] = path
	}
	var out []string
	ast.Inspect(file, func(n ast.Node) bool {
		selector, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if of, ok := selector.X.(*ast.Ident); ok && matches(decoders[imported[of.Name]], selector.Sel.Name) {
			out = append(out, of.Name+"."+selector.Sel.Name)
		}
		return true
	})
	return out
}

func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		if suffix, ok := strings.CutPrefix(p, "*"); ok {
			return strings.HasSuffix(name, suffix)
		}
		if prefix, ok := strings.CutSuffix(p, "*"); ok {
			return strings.HasPrefix(name, prefix)
		}
		return p == name
	})
}
