// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package call

import (
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/plugin/env"
)

const forecast = `{
  "type": "object", "required": ["city"], "additionalProperties": false,
  "properties": {
    "city": {"type": "string", "description": "The city to look at"},
    "days": {"type": "integer"}, "share": {"type": "number"}, "long": {"type": "boolean"},
    "unit": {"enum": ["celsius", "fahrenheit"]}, "level": {"type": "integer", "enum": [1, 2]},
    "tags": {"type": "array", "items": {"type": "integer"}},
    "maybe": {"type": ["string", "null"]}, "either": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
    "any": {}, "dotted.name": {"type": "integer"},
    "place": {"$ref": "#/$defs/place"}
  },
  "$defs": {"place": {"type": "object", "properties": {"lat": {"type": "number"}, "names": {"type": "object", "additionalProperties": {"type": "string"}}}}}
}`

// TestAssemble: each value has the type that the schema says.
func TestAssemble(t *testing.T) {
	tests := map[string]struct {
		words []string
		want  string
	}{
		"none":         {nil, `{}`},
		"text":         {[]string{"city=5"}, `{"city":"5"}`},
		"empty":        {[]string{"city="}, `{"city":""}`},
		"equals sign":  {[]string{"city=a=b"}, `{"city":"a=b"}`},
		"numbers":      {[]string{"days=3", "share=0.5", "long=true"}, `{"days":3,"long":true,"share":0.5}`},
		"large":        {[]string{"days=9007199254740993"}, `{"days":9007199254740993}`},
		"choice":       {[]string{"unit=celsius", "level=2"}, `{"level":2,"unit":"celsius"}`},
		"list":         {[]string{"tags=1", "tags=2"}, `{"tags":[1,2]}`},
		"whole list":   {[]string{"tags=[1,2]"}, `{"tags":[1,2]}`},
		"null":         {[]string{"maybe=null"}, `{"maybe":null}`},
		"text or null": {[]string{"maybe=x"}, `{"maybe":"x"}`},
		"either":       {[]string{"either=5"}, `{"either":5}`},
		"or text":      {[]string{"either=five"}, `{"either":"five"}`},
		"any":          {[]string{`any={"a":[1]}`}, `{"any":{"a":[1]}}`},
		"any text":     {[]string{"any=hello"}, `{"any":"hello"}`},
		"dots":         {[]string{"dotted.name=1"}, `{"dotted.name":1}`},
		"nested":       {[]string{"place.lat=59.9", "place.names.en=Oslo", "place.names.de=5"}, `{"place":{"lat":59.9,"names":{"de":"5","en":"Oslo"}}}`},
		"JSON":         {[]string{`city:="quoted"`, `place:={"lat":1}`}, `{"city":"quoted","place":{"lat":1}}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := assemble(test.words, shapeOf([]byte(forecast)))
			if err != nil || string(got) != test.want {
				t.Errorf("got %s, %v, want %s", got, err, test.want)
			}
		})
	}
}

// TestAssembleRefused: the error names the argument and what is expected.
func TestAssembleRefused(t *testing.T) {
	tests := map[string]struct {
		words      []string
		want, hint string
	}{
		"no value":       {[]string{"city"}, `"city" is no argument`, "name=value"},
		"no name":        {[]string{"=x"}, `"=x" is no argument`, "name=value"},
		"unknown":        {[]string{"town=x"}, `there is no argument "town"`, "any, city, days"},
		"nested unknown": {[]string{"place.x=1"}, `there is no argument "place.x"`, "place.lat, place.names"},
		"integer":        {[]string{"days=1.5"}, `"days" is to be an integer, and "1.5" is not`, ""},
		"leading zero":   {[]string{"days=007"}, `"days" is to be an integer, and "007" is not`, ""},
		"number":         {[]string{"share=half"}, `"share" is to be a number, and "half" is not`, ""},
		"boolean":        {[]string{"long=yes"}, `"long" is to be true or false, and "yes" is not`, ""},
		"choice":         {[]string{"unit=kelvin"}, `"unit" is to be one of celsius, fahrenheit, and "kelvin" is not`, ""},
		"element":        {[]string{"tags=1", "tags=x"}, `"tags" is to be an integer, and "x" is not`, ""},
		"object":         {[]string{"place=x"}, `"place" is to be an object, and "x" is not`, ""},
		"twice":          {[]string{"city=a", "city=b"}, `"city" is given twice`, ""},
		"both":           {[]string{"place.lat=1", `place:={}`}, `"place" is given twice`, ""},
		"bad JSON":       {[]string{"days:=x"}, `what follows := is no JSON`, "name:=JSON"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := assemble(test.words, shapeOf([]byte(forecast)))
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(env.HintOf(err), test.hint) {
				t.Errorf("got %s, %v, hint %q", got, err, env.HintOf(err))
			}
		})
	}
}

// TestOpenSchemas: a schema that declares nothing takes all names.
func TestOpenSchemas(t *testing.T) {
	for _, schema := range []string{`{"type":"object"}`, `{"type":"object","properties":{"a":{}},"additionalProperties":true}`, ``} {
		got, err := assemble([]string{"x.y=1", "z=t"}, shapeOf([]byte(schema)))
		if err != nil || string(got) != `{"x":{"y":1},"z":"t"}` {
			t.Errorf("%s: got %s, %v", schema, got, err)
		}
	}
}

// TestMissing names each argument with what it is.
func TestMissing(t *testing.T) {
	s := shapeOf([]byte(`{"required":["a","b"],"properties":{"a":{"type":"string","description":"The first"},"b":{"type":"integer"}}}`))
	err := missing([]byte(`{}`), s)
	if err == nil || err.Error() != `arguments "a", "b" are missing` || env.HintOf(err) != "a=... is text: The first\nb=... is an integer" {
		t.Errorf("got %v, hint %q", err, env.HintOf(err))
	}
	if err := missing([]byte(`{"a":"","b":null}`), s); err != nil {
		t.Error(err)
	}
}

// TestRecursiveSchema: references in a circle end.
func TestRecursiveSchema(t *testing.T) {
	s := shapeOf([]byte(`{"type":"object","properties":{"a":{"$ref":"#/properties/b"},"b":{"$ref":"#/properties/a"},"n":{"$ref":"#"}}}`))
	got, err := assemble([]string{"a=1", "n.n.a=2"}, s)
	if err != nil || string(got) != `{"a":1,"n":{"n":{"a":2}}}` {
		t.Errorf("got %s, %v", got, err)
	}
}
