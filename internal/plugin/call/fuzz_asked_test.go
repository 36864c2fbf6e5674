// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package call

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
)

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
