// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/espalier-dev/espalier/internal/serverconfig"
)

const everyRef = `
http:
  method: GET
  url: https://api/x
  headers:
  - {name: Authorization, prefix: "Bearer ", secretKeyRef: {name: z, key: token}}
  - {name: X-Tenant, configMapKeyRef: {name: c, key: tenant}}
  - {name: X-Again, secretKeyRef: {name: z, key: token}}
  - {name: X-Plain, value: ""}
  tls:
    serverName: api.internal
    ca: {configMapKeyRef: {name: ca, key: ca.crt}}
    clientCertificateRef: {name: cert}
`

// TestRefs: every place that names a Secret or ConfigMap is found, once, and
// only paths reach the config.
func TestRefs(t *testing.T) {
	c := CompileTool(tool(t, "a", everyRef))
	want := []Ref{
		{Kind: RefConfigMap, Name: "c", Key: "tenant"},
		{Kind: RefConfigMap, Name: "ca", Key: "ca.crt"},
		{Kind: RefSecret, Name: "cert", Key: "tls.crt"},
		{Kind: RefSecret, Name: "cert", Key: "tls.key"},
		{Kind: RefSecret, Name: "z", Key: "token"},
	}
	if diff := cmp.Diff(want, c.Refs); diff != "" {
		t.Errorf("refs (-want +got):\n%s", diff)
	}
	empty := ""
	connection := serverconfig.Connection{
		URL: "https://api/x",
		Headers: []serverconfig.Value{
			{Name: "Authorization", Prefix: "Bearer ", File: "secrets/z/token"},
			{Name: "X-Tenant", File: "configmaps/c/tenant"},
			{Name: "X-Again", File: "secrets/z/token"},
			{Name: "X-Plain", Value: &empty},
		},
		TLS: &serverconfig.TLS{
			ServerName: "api.internal", CAFile: "configmaps/ca/ca.crt",
			CertFile: "secrets/cert/tls.crt", KeyFile: "secrets/cert/tls.key",
		},
	}
	if diff := cmp.Diff(connection, c.Tool.HTTP.Connection); diff != "" {
		t.Errorf("connection (-want +got):\n%s", diff)
	}
}

func TestSortRefs(t *testing.T) {
	got := SortRefs([]Ref{
		{Kind: RefSecret, Name: "b", Key: "k", Optional: true},
		{Kind: RefSecret, Name: "a", Key: "k"},
		{Kind: RefSecret, Name: "b", Key: "k"},
		{Kind: RefConfigMap, Name: "z", Key: "k", Optional: true},
	})
	want := []Ref{
		{Kind: RefConfigMap, Name: "z", Key: "k", Optional: true},
		{Kind: RefSecret, Name: "a", Key: "k"},
		{Kind: RefSecret, Name: "b", Key: "k"}, // needed once, so not optional
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestHandlers: defaults of an HTTP handler, and that an empty query differs
// from none.
func TestHandlers(t *testing.T) {

	tests := map[string]struct {
		spec string
		want *serverconfig.HTTP
	}{
		"defaults": {
			`http: {method: GET, url: "http://api"}`,
			&serverconfig.HTTP{Connection: serverconfig.Connection{URL: "http://api"}, Method: "GET", TimeoutSeconds: 30},
		},
		"an empty query": {
			`http: {method: GET, url: "http://api", query: []}`,
			&serverconfig.HTTP{Connection: serverconfig.Connection{URL: "http://api"}, Method: "GET", TimeoutSeconds: 30, QuerySet: true},
		},
		"everything": {
			`http: {method: PUT, url: "http://api/{id}", path: [{name: id, expression: args.key}], query: [{name: q, expression: args.q}],
			  body: {expression: args, mediaType: application/json}, timeoutSeconds: 5, retries: 2, result: {text: "'ok'", isError: "response.status > 299"}}`,
			&serverconfig.HTTP{
				Connection: serverconfig.Connection{URL: "http://api/{id}"}, Method: "PUT", TimeoutSeconds: 5, Retries: 2, QuerySet: true,
				Path:   []serverconfig.Value{{Name: "id", Expression: "args.key"}},
				Query:  []serverconfig.Value{{Name: "q", Expression: "args.q"}},
				Body:   &serverconfig.Body{Expression: "args", MediaType: "application/json"},
				Result: &serverconfig.Result{Text: "'ok'", IsError: "response.status > 299"},
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := CompileTool(tool(t, "a", test.spec))
			if c.Tool == nil {
				t.Fatalf("refused: %+v", c.Verdict)
			}
			if diff := cmp.Diff(test.want, c.Tool.HTTP); diff != "" {
				t.Errorf("handler (-want +got):\n%s", diff)
			}
		})
	}
}

// TestDefinition: the wire object, byte for byte.
func TestDefinition(t *testing.T) {
	tests := map[string]struct{ spec, want string }{
		"minimal": {`{}`, `{"name":"a","inputSchema":{"type":"object"}}`},
		"maximal": {
			`{name: b, title: "<T>", description: "D & d", icons: [{src: "https://i"}], meta: {"x/y": 1},
			  inputSchema: {type: object, properties: {num: {type: integer}}}, outputSchema: {type: string}, annotations: {readOnlyHint: false}, metadata: {off: wire}}`,
			`{"name":"b","title":"<T>","description":"D & d","icons":[{"src":"https://i"}],"inputSchema":{"properties":{"num":{"type":"integer"}},"type":"object"},` +
				`"outputSchema":{"type":"string"},"annotations":{"readOnlyHint":false},"_meta":{"x/y":1}}`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := CompileTool(tool(t, "a", test.spec))
			if c.Tool == nil {
				t.Fatalf("refused: %+v", c.Verdict)
			}
			if got := string(c.Tool.Definition); got != test.want {
				t.Errorf("definition\n got %s\nwant %s", got, test.want)
			}
		})
	}
}
