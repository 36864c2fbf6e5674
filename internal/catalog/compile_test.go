// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"strings"
	"testing"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
)

// TestCompileVerdicts has every reason that a tool has by itself.
func TestCompileVerdicts(t *testing.T) {
	tests := map[string]struct {
		spec     string
		accepted bool
		reason   string
		message  string // a part of it
	}{
		"expression": {
			spec: `expression: {text: "'pong'"}`, accepted: true, reason: mcpv1.ReasonAccepted, message: "sound",
		},
		"http": {
			spec:     `http: {method: GET, url: "http://api/x/{city}", path: [{name: city, expression: args.town}]}`,
			accepted: true, reason: mcpv1.ReasonAccepted, message: "sound",
		},
		"no handler": {
			spec: `description: later`, accepted: true, reason: mcpv1.ReasonNoExecutor, message: `"no executor configured"`,
		},
		"a long name": {
			spec:     `{name: ` + strings.Repeat("n", 65) + `, expression: {text: "''"}}`,
			accepted: true, reason: mcpv1.ReasonAccepted, message: "64 characters",
		},
		"input schema of another type": {
			spec: `inputSchema: {type: string}`, reason: mcpv1.ReasonInvalidInputSchema, message: "spec.inputSchema: ",
		},
		"input schema that leaves the document": {
			spec:   `inputSchema: {type: object, properties: {a: {$ref: "https://example.com/a.json"}}}`,
			reason: mcpv1.ReasonInvalidInputSchema, message: "spec.inputSchema: ",
		},
		"output schema": {
			spec: `outputSchema: {type: 1}`, reason: mcpv1.ReasonInvalidOutputSchema, message: "spec.outputSchema: ",
		},
		"meta that is a list": {
			spec: `meta: [1]`, reason: mcpv1.ReasonInvalidMeta, message: "not an object",
		},
		"meta that is too large": {
			spec: `meta: {k: ` + strings.Repeat("x", 64<<10) + `}`, reason: mcpv1.ReasonInvalidMeta, message: "at most 65536",
		},
		"expression that does not parse": {
			spec: `expression: {text: "1 +"}`, reason: mcpv1.ReasonInvalidExpression, message: "spec.expression.text: 1:",
		},
		"expression of another type": {
			spec: `expression: {text: "1"}`, reason: mcpv1.ReasonInvalidExpression, message: "wanted is a string",
		},
		"expression over what a call does not have": {
			spec: `expression: {text: response.body}`, reason: mcpv1.ReasonInvalidExpression, message: "response",
		},
		"query expression": {
			spec:   `http: {method: GET, url: "http://api", query: [{name: q, expression: "{}"}]}`,
			reason: mcpv1.ReasonInvalidExpression, message: "spec.http.query q: ",
		},
		"header expression": {
			spec:   `http: {method: GET, url: "http://api", headers: [{name: X-A, expression: "["}]}`,
			reason: mcpv1.ReasonInvalidExpression, message: "spec.http.headers X-A: ",
		},
		"body expression": {
			spec:   `http: {method: POST, url: "http://api", body: {expression: nope}}`,
			reason: mcpv1.ReasonInvalidExpression, message: "spec.http.body: ",
		},
		"result expression": {
			spec:   `http: {method: GET, url: "http://api", result: {text: response.boddy}}`,
			reason: mcpv1.ReasonInvalidExpression, message: "boddy",
		},
		"content expression": {
			spec:   `expression: {content: [{type: Text, expression: "b'x'"}]}`,
			reason: mcpv1.ReasonInvalidExpression, message: "spec.expression.content: ",
		},
		"isError": {
			spec:   `expression: {text: "''", isError: "'yes'"}`,
			reason: mcpv1.ReasonInvalidExpression, message: "spec.expression.isError: ",
		},
		"url that does not parse": {
			spec: `http: {method: GET, url: "http://api/%zz"}`, reason: mcpv1.ReasonInvalidURL, message: "Escape",
		},
		"path parameter without a placeholder": {
			spec:   `http: {method: GET, url: "http://api/{a}", path: [{name: b, value: x}]}`,
			reason: mcpv1.ReasonInvalidURL, message: `"b"`,
		},
		"placeholder that nothing fills": {
			spec:   `{inputSchema: {type: object, properties: {a: {type: string}}}, http: {method: GET, url: "http://api/{b}"}}`,
			reason: mcpv1.ReasonInvalidURL, message: "{b}",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := CompileTool(tool(t, "a", test.spec))
			v := c.Verdict
			if v.Accepted != test.accepted || v.Reason != test.reason || !strings.Contains(v.Message, test.message) {
				t.Errorf("verdict %+v, want accepted %v, reason %s and %q in the message", v, test.accepted, test.reason, test.message)
			}
			if (c.Tool != nil) != test.accepted {
				t.Errorf("entry %v of a tool with accepted %v", c.Tool, test.accepted)
			}
			if again := CompileTool(tool(t, "a", test.spec)); again.Verdict != v || again.EntryDigest != c.EntryDigest {
				t.Errorf("compiled again: %+v, first %+v", again.Verdict, v)
			}
			if len(v.Message) > 1000 || strings.ContainsAny(v.Message, "\n\r") {
				t.Errorf("message of %d bytes: %q", len(v.Message), v.Message)
			}
		})
	}
}

// TestEntryDigest: what is not on the wire is a version of the tool all the
// same; what is no part of a tool is not.
func TestEntryDigest(t *testing.T) {
	base := CompileTool(tool(t, "a", `{expression: {text: "'1'"}, metadata: {a: "1", b: "2"}}`))
	tests := map[string]struct {
		spec                string
		sameEntry, sameWire bool
	}{
		"the same in another order": {`{metadata: {b: "2", a: "1"}, expression: {text: "'1'"}}`, true, true},
		"another expression":        {`{expression: {text: "'2'"}, metadata: {a: "1", b: "2"}}`, false, true},
		"other metadata":            {`{expression: {text: "'1'"}, metadata: {a: "1"}}`, false, true},
		"another title":             {`{title: T, expression: {text: "'1'"}, metadata: {a: "1", b: "2"}}`, false, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := CompileTool(tool(t, "a", test.spec))
			if same := c.EntryDigest == base.EntryDigest; same != test.sameEntry {
				t.Errorf("same entry: %v, want %v", same, test.sameEntry)
			}
			if same := c.Wire.Digest == base.Wire.Digest; same != test.sameWire {
				t.Errorf("same wire digest: %v, want %v", same, test.sameWire)
			}
		})
	}
}
