// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"encoding/json"
	"testing"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/mcpserver/upstream/client"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// FuzzDefinition: of an upstream's definition all stays as it was written but
// what the name and the override say.
func FuzzDefinition(f *testing.F) {
	for _, seed := range []string{
		`{"name":"a","description":"","inputSchema":{"type":"object"},"x":[1, 2.50]}`, `{"description":null,"n\u0061me":"a"}`, `{}`, `{"name":"a","title":1,"execution":{"taskSupport":"required"}}`, `{"execution":[],"name":{}}`,
	} {
		f.Add([]byte(seed), "u_a", "Title", "")
	}
	f.Add([]byte(`{"name":"a"}`), "\xff\"", "", "said")
	f.Fuzz(func(t *testing.T, raw []byte, name, title, description string) {
		definition, err := wire.DecodeObject(raw)
		if err != nil {
			return
		}
		_ = needsTask(definition)
		out := encode(adapted(definition, "u", name, &serverconfig.Override{Title: title, Description: description}))
		var before, after map[string]json.RawMessage
		if err := json.Unmarshal(raw, &before); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(out, &after); err != nil || !wire.Valid(out) {
			t.Fatalf("%q becomes %q: %v", raw, out, err)
		}
		want := map[string]bool{"name": true, "description": true}
		if title != "" {
			want["title"] = true
		}
		for key, value := range before {
			if !want[key] && string(after[key]) != string(value) {
				t.Fatalf("%q was %q and is %q", key, value, after[key])
			}
			want[key] = true
		}
		if len(after) != len(want) {
			t.Fatalf("%q becomes %q", raw, out)
		}
		var said string
		if err := json.Unmarshal(after["description"], &said); err != nil || said == "" {
			t.Fatalf("the description %q", after["description"])
		}
	})
}

// FuzzVisits: whatever an upstream sends a person to URLs with, the question
// that is made of it is one that the caller's program can read.
func FuzzVisits(f *testing.F) {
	for _, seed := range []string{
		`{"elicitations":[{"url":"https://a","elicitationId":"1","mode":"form"}]}`, `{"elicitations":[]}`, `{"elicitations":[1]}`, `{"elicitations":{}}`, `[]`, ``, `{"elicitations":[{"a":1,"a":2}]}`,
	} {
		f.Add([]byte(seed), "open it")
	}
	f.Fuzz(func(t *testing.T, data []byte, message string) {
		if !wire.Valid(data) {
			return // It came out of a message that was.
		}
		c := &call.Call{Client: &caller{modern: true, declares: `{"elicitation":{"url":{}}}`}}
		rpc := &client.RPCError{Code: mcp.CodeURLElicitationRequired, Message: message, Data: data}
		result, failure := translated(c, "u", rpc)
		if (result == nil) == (failure == nil) {
			t.Fatalf("%v, %v", result, failure)
		}
		if failure != nil {
			return
		}
		var requests map[string]struct {
			Method string
			Params struct{ Mode string }
		}
		if err := json.Unmarshal(result.Input.Requests, &requests); err != nil || len(requests) == 0 || len(requests) > maxQuestions {
			t.Fatalf("the questions %q: %v", result.Input.Requests, err)
		}
		for key, request := range requests {
			if request.Method != mcp.MethodElicit || request.Params.Mode != "url" {
				t.Fatalf("%s asks %+v", key, request)
			}
		}
	})
}
