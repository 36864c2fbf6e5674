// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package call

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
	"github.com/espalier-dev/espalier/internal/plugin/env"
)

// FuzzArguments: whatever a server's schema is, what comes of a person's words
// is a JSON object, or an error.
func FuzzArguments(f *testing.F) {
	f.Add([]byte(forecast), "place.names.en=Oslo", "tags=1")
	f.Add([]byte(`{"$ref":"#"}`), "a.b=1", "a:={}")
	f.Add([]byte(`{"anyOf":[{"$ref":"#"},{"$ref":"#/anyOf/0"}],"required":["x",1]}`), "a=1", "a=2")
	f.Add([]byte(`{"properties":{"a":{"type":["array","string"],"items":false,"enum":[1,"x",null]}}}`), "a=x", ".=")
	f.Fuzz(func(t *testing.T, schema []byte, one, two string) {
		s := shapeOf(schema)
		args, err := assemble([]string{one, two}, s)
		if err == nil && !wire.IsObject(args) {
			t.Errorf("%q and %q give %s", one, two, args)
		}
		if err == nil {
			_ = missing(args, s)
		}
		offered, _ := offer(s, []string{one}, two)
		for _, word := range offered {
			if strings.ContainsAny(word, "\n\x1b") {
				t.Errorf("a shell is offered %q", word)
			}
		}
	})
}

// FuzzResult: any result is printed, or is an error; a terminal sees no escape
// in what is said about it.
func FuzzResult(f *testing.F) {
	f.Add([]byte(`{"content":[{"type":"text","text":"x"},{"type":"image","data":"AA==","mimeType":"image/\u001bpng"}],"structuredContent":[1]}`))
	f.Add([]byte(`{"content":[{"type":"resource","resource":{"blob":"?"}},{"type":"\u001b[2J","resource":{}}],"isError":true}`))
	f.Add([]byte(`{"content":{}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, format := range formats {
			streams, _, out, errOut := genericiooptions.NewTestIOStreams()
			c := &command{Env: env.New(streams), output: format}
			_ = c.print("tool", raw)
			if strings.Contains(errOut.String(), "\x1b") {
				t.Errorf("said %q", errOut)
			}
			if format != "text" && out.Len() > 0 && !wire.Valid(out.Bytes()[:out.Len()-1]) {
				t.Errorf("-o %s printed %q", format, out)
			}
		}
	})
}

// FuzzQuestion: whatever a server asks, the answer is a JSON object or an error,
// and what a person is shown moves no cursor.
func FuzzQuestion(f *testing.F) {
	f.Add([]byte(`{"message":"m","requestedSchema":{"type":"object","required":["a"],"properties":{"a":{"type":"integer","default":"\u001b"},"b":{"enum":["x"]}}}}`), "1\nx\ny\n")
	f.Add([]byte(`{"mode":"url","message":"m","url":"https://x/\u001b[2J"}`), "y\n")
	f.Add([]byte(`{"requestedSchema":{"properties":{"\u001b":{"type":"array"}}}}`), "a,b\ny\n")
	f.Fuzz(func(t *testing.T, params []byte, lines string) {
		a, said := person(lines)
		answer, err := a.ask(t.Context(), mcp.MethodElicit, json.RawMessage(params))
		if err == nil && !wire.IsObject(answer) {
			t.Errorf("answered %s", answer)
		}
		// What the person typed is told back to them as it was.
		if strings.Contains(said.String(), "\x1b") && !strings.Contains(lines, "\x1b") {
			t.Errorf("shown %q", said)
		}
	})
}

// FuzzRounds: questions of a round are answered all, or not at all.
func FuzzRounds(f *testing.F) {
	f.Add([]byte(`{"q":{"method":"elicitation/create","params":{"message":"m"}},"r":{"method":"roots/list"}}`))
	f.Add([]byte(`{"a\"b":{"method":"elicitation/create","params":{"message":"m","requestedSchema":{}}}}`))
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		a, _ := person("y\ny\ny\n")
		out, err := a.askAll(t.Context(), raw)
		if err == nil && out != nil && !wire.Valid(out) {
			t.Errorf("answered %s", out)
		}
	})
}
