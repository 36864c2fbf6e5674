// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCompileInput(t *testing.T) {
	ladder := func(n int) string {
		var defs []string
		for i := range n {
			next := `{"$ref":"#/$defs/d` + string(rune('a'+i+1)) + `"}`
			defs = append(defs, `"d`+string(rune('a'+i))+`":{"anyOf":[`+next+`,`+next+`]}`)
		}
		defs = append(defs, `"d`+string(rune('a'+n))+`":{}`)
		return `{"type":"object","properties":{"x":{"$ref":"#/$defs/da"}},"$defs":{` + strings.Join(defs, ",") + `}}`
	}
	tests := []struct {
		name, schema, want string
	}{
		{"any object", `{"type":"object"}`, ""},
		{"draft-07", `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object"}`, ""},
		{"recursive through properties", `{"type":"object","properties":{"child":{"$ref":"#"}}}`, ""},
		{"local definition", `{"type":"object","properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"type":"string"}}}`, ""},
		{"small ladder", ladder(5), ""},
		{"no object", `{"type":"string"}`, `the schema of a tool's input must have "type": "object" at its root`},
		{"boolean", `true`, `the schema of a tool's input must have "type": "object" at its root`},
		{"not JSON", `{"type":`, "the schema is not JSON: unexpected end of JSON input"},
		{"list", `[]`, "a schema is an object or a boolean"},
		{"remote reference", `{"type":"object","properties":{"a":{"$ref":"https://example.com/s.json"}}}`, "https://example.com/s.json"},
		{"other dialect", `{"$schema":"http://json-schema.org/draft-04/schema#","type":"object"}`, "cannot validate version"},
		{"endless", `{"type":"object","$ref":"#"}`, `the schema refers to itself without end at "#"`},
		{"endless by two", `{"type":"object","properties":{"a":{"$ref":"#/$defs/b"}},"$defs":{"b":{"allOf":[{"$ref":"#/$defs/c"}]},"c":{"$ref":"#/$defs/b"}}}`, "without end"},
		{"endless by anchor", `{"type":"object","$anchor":"me","anyOf":[{"$ref":"#me"}]}`, "without end"},
		{"endless by id", `{"$id":"https://example.com/me","type":"object","allOf":[{"$ref":"https://example.com/me"}]}`, "without end"},
		{"exponential", ladder(20), "more than 20000 subschemas apply to one value"},
		{"bad pattern", `{"type":"object","properties":{"a":{"pattern":"("}}}`, "missing closing )"},
		{"unknown type", `{"type":"object","properties":{"a":{"type":"nonsense"}}}`, `"nonsense" at "#/properties/a" is no type of JSON Schema`},
		{"unknown type in a list", `{"type":"object","$defs":{"a":{"anyOf":[{"type":["string","date"]}]}}}`, `"date" at "#/$defs/a/anyOf/0"`},
		{"a property called type", `{"type":"object","properties":{"type":{"type":"string"}},"default":{"type":"nonsense"}}`, ""},
		{"too large", `{"type":"object","description":"` + strings.Repeat("x", MaxBytes) + `"}`, "at most 65536 are allowed"},
		{"header", `{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"Region"}}}`, ""},
		{"header as a property's name", `{"type":"object","properties":{"x-mcp-header":{"type":"string"}}}`, ""},
		{"header on a number", `{"type":"object","properties":{"a":{"type":"number","x-mcp-header":"Region"}}}`, "wants the type"},
		{"header with a line break", `{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A\r\nB"}}}`, "not a header name"},
		{"header twice", `{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}}`, "used twice"},
		{"header in items", `{"type":"object","properties":{"a":{"type":"array","items":{"type":"string","x-mcp-header":"A"}}}}`, "may stand only"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := CompileInput(json.RawMessage(tt.schema))
			if tt.want == "" {
				if err != nil {
					t.Fatalf("refused: %v", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v, want %q", err, tt.want)
			}
			if _, again := CompileInput(json.RawMessage(tt.schema)); again.Error() != err.Error() {
				t.Fatalf("the text is not deterministic: %v, then %v", err, again)
			}
		})
	}
}

func TestValidate(t *testing.T) {
	s, err := CompileInput(json.RawMessage(`{"type":"object","required":["city"],"properties":{
		"city":{"type":"string","minLength":1},"days":{"type":"integer","maximum":7},"ratio":{"type":"number"},
		"list":{"type":"array","items":{"type":"object","properties":{"n":{"type":"integer"}}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name  string
		value map[string]any
		want  string
	}{
		{"good", map[string]any{"city": "Bern", "days": int64(3), "ratio": 1.5}, ""},
		{"missing", map[string]any{}, `required: missing properties: ["city"]`},
		{"wrong type", map[string]any{"city": int64(3)}, `city: type: 3 has type "integer", want "string"`},
		{"too many", map[string]any{"city": "x", "days": int64(9)}, `days: maximum: 9/1 is greater than 7.000000`},
		{"nested", map[string]any{"city": "x", "list": []any{map[string]any{"n": "a"}}}, `list[].n: type: a has type "string", want "integer"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := ""
			if err := s.Validate(tt.value); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCoerce(t *testing.T) {
	s, err := CompileInput(json.RawMessage(`{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"integer"},
		"c":{"type":"array","items":{"type":"number"}},"d":{"type":"object","properties":{"e":{"type":"number"}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	value := map[string]any{"a": int64(3), "b": 4.0, "c": []any{int64(1), 2.5}, "d": map[string]any{"e": int64(5)}, "f": int64(6)}
	s.Coerce(value)
	want := map[string]any{"a": 3.0, "b": int64(4), "c": []any{1.0, 2.5}, "d": map[string]any{"e": 5.0}, "f": int64(6)}
	if diff := cmp.Diff(want, value); diff != "" {
		t.Error(diff)
	}
}

func TestErrorsAreBounded(t *testing.T) {
	s, err := CompileInput(json.RawMessage(`{"type":"object","properties":{"a":{"type":"integer"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	err = s.Validate(map[string]any{"a": strings.Repeat("x\n", 10_000)})
	if err == nil || len(err.Error()) > maxError || strings.ContainsAny(err.Error(), "\r\n") {
		t.Fatalf("got %v", err)
	}
}

func FuzzCompile(f *testing.F) {
	f.Add(`{"type":"object","properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"$anchor":"b","allOf":[{"$dynamicRef":"#b"}]}}}`)
	f.Add(`{"type":"object","$id":"x","$ref":"x#/properties","properties":{"":{"pattern":"a*"}}}`)
	f.Add(`{"type":"object","properties":{"` + strings.Repeat("a", 2000) + `":{"x-mcp-header":"?"}}}`)
	f.Add(`{"type":"object","properties":{"a":{"type":"integer","x-mcp-header":"A"},"c":{"items":{"type":"number"}}},"additionalProperties":false}`)
	f.Fuzz(func(t *testing.T, raw string) {
		s, err := CompileInput(json.RawMessage(raw))
		if err != nil {
			if len(err.Error()) > 2*maxError || strings.ContainsAny(err.Error(), "\r\n") {
				t.Fatalf("an error of %d bytes: %.300q", len(err.Error()), err)
			}
			return
		}
		for _, h := range s.Headers() {
			if !isToken(h.Name) || len(h.Path) == 0 || h.Type != "string" && h.Type != "integer" && h.Type != "boolean" {
				t.Fatalf("the header %+v", h)
			}
		}
		args := map[string]any{"a": "b", "c": []any{int64(1), map[string]any{}}}
		before := s.Validate(args)
		if before != nil && (len(before.Error()) > maxError || strings.ContainsAny(before.Error(), "\r\n")) {
			t.Fatalf("it says %q", before)
		}
		// Numbers of another kind are the same numbers.
		s.Coerce(args)
		if after := s.Validate(args); (after == nil) != (before == nil) {
			t.Fatalf("%v, and coerced %v", before, after)
		}
		if _, err := Compile(json.RawMessage(raw)); err != nil {
			t.Fatalf("as an input it compiles, else %v", err)
		}
	})
}
