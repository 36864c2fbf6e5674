// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package streamhttp

import (
	"encoding/base64"
	"mime"
	"net/http"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/upstream/client"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
	"github.com/espalier-dev/espalier/internal/schema"
)

// FuzzMedia: of content types, those are JSON that the standard library finds
// to be; of what is accepted, only what was named.
func FuzzMedia(f *testing.F) {
	for _, seed := range []string{
		"application/json", "Application/JSON; charset=utf-8", "application/json, text/event-stream", "*/*;q=0", "text/*;q=0.0,application/*", "", ",,", "application/jsonx", "text/event-stream;q=0.001", ";q=0",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		if kind, _, err := mime.ParseMediaType(value); err == nil && (kind == mediaJSON) != isJSON(value) {
			t.Fatalf("%q is JSON: %t", value, isJSON(value))
		}
		lower := strings.ToLower(value)
		for _, kind := range []string{mediaJSON, mediaStream} {
			group, _, _ := strings.Cut(kind, "/")
			named := strings.Contains(lower, kind) || strings.Contains(lower, group+"/*") || strings.Contains(lower, "*/*")
			anything := false
			for part := range strings.SplitSeq(value, ",") {
				base, _, _ := strings.Cut(part, ";")
				anything = anything || strings.TrimSpace(base) != ""
			}
			if accepts([]string{value}, kind) && anything && !named {
				t.Fatalf("%q accepts %s", value, kind)
			}
		}
	})
}

// FuzzMirrored: what our own client mirrors into a header, this side finds to
// be the argument; what another header says, it does not.
func FuzzMirrored(f *testing.F) {
	params := []schema.HeaderParam{{Name: "A", Path: []string{"a"}}}
	for _, seed := range []string{
		`"text"`, `""`, `" x"`, `"=?base64?eA==?="`, `"=?base64?"`, `"\u00e4\n"`, `1`, `-0`, `1e3`, `0.1`, `9007199254740993`, `18446744073709551615`, `-9223372036854775808`, `true`, `null`, `[]`, `{}`, `1e21`, `1e308`, `4.9e-324`,
	} {
		f.Add([]byte(seed), "42.0")
	}
	f.Add([]byte(`9007199254740992`), "9007199254740993")
	f.Add([]byte(`42`), "42.0")
	f.Add([]byte(`42`), "0x2a")
	f.Add([]byte(`true`), "True")
	f.Fuzz(func(t *testing.T, raw []byte, other string) {
		value, err := wire.Decode(raw)
		if err != nil {
			return
		}
		args := map[string]any{"a": value}
		header := client.Mirror(params, args)
		for _, values := range header {
			for _, v := range values {
				if strings.ContainsFunc(v, func(r rune) bool { return r < ' ' || r > '~' }) || v != strings.TrimSpace(v) {
					t.Fatalf("%s is mirrored as %q", raw, v)
				}
			}
		}
		mirrored := header[mcp.HeaderParamPrefix+"A"]
		switch value.(type) {
		case nil, string, bool, int64, uint64, float64:
			if !matchesParam(header, params[0], args) {
				t.Fatalf("%s is mirrored as %q, which does not match", raw, mirrored)
			}
		}
		foreign := http.Header{mcp.HeaderParamPrefix + "A": {other}}
		if !matchesParam(foreign, params[0], args) {
			return
		}
		// It matches: then it is the same value, spelled in another way.
		switch value := value.(type) {
		case string:
			inner, encoded := strings.CutPrefix(strings.TrimSuffix(other, sentinelSuffix), sentinelPrefix)
			decoded, err := base64.StdEncoding.DecodeString(inner)
			if other != value && (!encoded || err != nil || string(decoded) != value) {
				t.Fatalf("%q matches %s", other, raw)
			}
		case int64, uint64:
			if digits := strings.Trim(other, "+-.0123456789eE"); digits != "" {
				t.Fatalf("%q matches %s", other, raw)
			}
			if exact, err := wire.Decode([]byte(other)); err == nil && exact != args["a"] {
				if _, isFloat := exact.(float64); !isFloat {
					t.Fatalf("%q matches %s", other, raw)
				}
			}
		case bool:
			if other != mirrored[0] {
				t.Fatalf("%q matches %s", other, raw)
			}
		case []any, map[string]any, nil:
			t.Fatalf("%q matches %s", other, raw)
		}
	})
}
