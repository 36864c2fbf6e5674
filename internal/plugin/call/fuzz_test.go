// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package call

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/espalier-dev/espalier/internal/plugin/env"
)

// FuzzResult: whatever a tool gives is printed, or refused; what goes to a
// script as JSON is JSON.
func FuzzResult(f *testing.F) {
	for _, seed := range []string{
		`{"content":[{"type":"text","text":"a\u001b[2J"}],"isError":true}`, `{"structuredContent":{"n":1e400}}`, `{"content":null}`, `[]`,
		`{"content":[{"type":"image","data":"AAAA","mimeType":"image/png"},{"type":"resource","resource":{"uri":"x:/..","blob":"!"}}]}`,
	} {
		for i := range formats {
			f.Add([]byte(seed), i)
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte, format int) {
		streams, _, out, _ := genericiooptions.NewTestIOStreams()
		c := &command{Env: env.New(streams), output: formats[uint(format)%uint(len(formats))]}
		err := c.print("tool", raw)
		if (err == nil || errors.Is(err, env.No)) && c.output != "text" && !json.Valid(out.Bytes()) {
			t.Errorf("%q as %s: %q", raw, c.output, out)
		}
	})
}

// FuzzSchema: whatever a tool's schema is, the words that are offered for it
// are fit for a line of a shell, and words make an object or an error.
func FuzzSchema(f *testing.F) {
	for _, seed := range []string{
		`{"type":"object","properties":{"a":{"type":"array","items":{"$ref":"#/$defs/n"}},"b.c":{"enum":["x","\u202e"]}},"required":["a","a"],"$defs":{"n":{"type":"number"}}}`,
		`{"$ref":"#"}`, `{"properties":{"a":{"$ref":"#/properties/a"}}}`, `{"required":{},"properties":[]}`, `null`, `{"allOf":[{"$ref":"#"},{"$ref":"#"}]}`,
	} {
		f.Add([]byte(seed), "a.b=1")
		f.Add([]byte(seed), "b:={}")
		f.Add([]byte(seed), "")
	}
	f.Fuzz(func(t *testing.T, raw []byte, word string) {
		s := shapeOf(raw)
		if strings.ContainsFunc(word, unicode.IsControl) {
			return // What the user wrote is offered back as it is.
		}
		offered, _ := offer(s, nil, word)
		for _, o := range offered {
			value, description, _ := strings.Cut(o, "\t")
			if strings.ContainsFunc(value, unicode.IsControl) || strings.ContainsFunc(description, unicode.IsControl) {
				t.Errorf("offers %q", o)
			}
		}
		args, err := assemble([]string{word}, s)
		if err == nil && !json.Valid(args) {
			t.Errorf("%q makes %q", word, args)
		}
		if err == nil {
			_ = missing(args, s)
		}
		_ = fields(raw, s)
		_ = describe(raw)
	})
}
