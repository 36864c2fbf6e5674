// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package call

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
	"github.com/espalier-dev/espalier/internal/plugin/env"
)

// person is one who types lines at a terminal.
func person(lines string) (*asker, *strings.Builder) {
	var said strings.Builder
	e := env.New(genericiooptions.IOStreams{In: strings.NewReader(lines), Out: &said, ErrOut: &said})
	return &asker{env: e, shown: newProgress(e), person: true, turn: make(chan struct{}, 1)}, &said
}

// TestPerson: a form is filled in line by line, mistyped answers are asked
// again, and nothing is sent without a yes.
func TestPerson(t *testing.T) {
	const form = `{"message":"Who \u001b[2J are you?","requestedSchema":{"type":"object","required":["age"],"properties":{
	  "name":{"type":"string","default":"nobody"},"age":{"type":"integer","description":"In years"},"note":{"type":"string"}}}}`
	tests := map[string]struct{ params, lines, want string }{
		"filled":      {form, "\nold\n7\n\ny\n", `{"action":"accept","content":{"age":7,"name":"nobody"}}`},
		"all":         {form, "Ann\n7\nhi\nyes\n", `{"action":"accept","content":{"age":7,"name":"Ann","note":"hi"}}`},
		"not sent":    {form, "Ann\n7\nhi\n\n", `{"action":"decline"}`},
		"opened":      {`{"mode":"url","message":"Sign in","url":"https://x/y"}`, "y\n", `{"action":"accept"}`},
		"not opened":  {`{"mode":"url","message":"Sign in","url":"https://x/y"}`, "n\n", `{"action":"decline"}`},
		"empty form":  {`{"message":"Sure?","requestedSchema":{"type":"object","properties":{}}}`, "y\n", `{"action":"accept","content":{}}`},
		"no one left": {form, "Ann\n", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			a, said := person(test.lines)
			got, err := a.ask(ctx, mcp.MethodElicit, json.RawMessage(test.params))
			if (err != nil) != (test.want == "") && !strings.Contains(test.want, "decline") || err == nil && string(got) != test.want {
				t.Errorf("got %s, %v, want %s\n%s", got, err, test.want, said)
			}
			if strings.Contains(said.String(), "\x1b") {
				t.Errorf("the server's words move the cursor: %q", said)
			}
		})
	}
}

// TestNotAsked: what is no question to a person is not answered by one.
func TestNotAsked(t *testing.T) {
	a, _ := person("y\n")
	if got, err := a.ask(t.Context(), mcp.MethodCreateMessage, json.RawMessage(`{}`)); err == nil {
		t.Errorf("got %s", got)
	}
}

// TestProgressText shows what is known of how far a call is.
func TestProgressText(t *testing.T) {
	tests := map[string]string{
		`{"progress":1,"total":4,"message":"a\u001bb"}`: `[######                  ]  25% a\x1bb`,
		`{"progress":9,"total":4}`:                      `[########################] 100% `,
		`{"progress":3,"message":"m"}`:                  `3 m`,
		`{"message":"m"}`:                               `m`,
	}
	for params, want := range tests {
		object, err := wire.DecodeObject([]byte(params))
		if err != nil {
			t.Fatal(err)
		}
		if got := progressText(object); got != want {
			t.Errorf("%s: got %q, want %q", params, got, want)
		}
	}
}
