// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"crypto/ed25519"
	"encoding/base64"
	"flag"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/hack/docs/page"
)

var update = flag.Bool("update", false, "write the pages anew")

// asked is a request that a client may make, and what the server is like.
type asked struct {
	// what the client did, in words.
	what string
	// objects are the MCPServer and what it serves, as YAML; empty is a server
	// without a catalog.
	objects string
	// ask makes the requests; the last answer counts.
	ask func(*shared) answer
	// do says what to do about it.
	do string
}

const anybody = `
kind: MCPServer
metadata: {name: weather, namespace: team-a}
spec: {limits: {maxMessageBytes: 1024, rules: [{tools: [ping], budget: {calls: 1, windowSeconds: 3600}}]}, sessions: {max: 1}}
---
kind: MCPTool
metadata: {name: ping, namespace: team-a}
spec: {serverRefs: [{name: weather}], expression: {text: "'pong'"}}
---
kind: MCPTool
metadata: {name: later, namespace: team-a}
spec: {serverRefs: [{name: weather}]}
`

const slowly = `
kind: MCPServer
metadata: {name: weather, namespace: team-a}
spec: {limits: {requestsPerSecond: 1, burst: 1}}
---
kind: MCPResource
metadata: {name: note, namespace: team-a}
spec: {serverRefs: [{name: weather}], uri: "docs://note", text: here}
`

const keyed = `
kind: MCPServer
metadata: {name: weather, namespace: team-a}
spec: {auth: {apiKeys: {secretRef: {name: callers}}}}
`

// unreachable is a server whose issuer of tokens does not answer.
const unreachable = `
kind: MCPServer
metadata: {name: weather, namespace: team-a}
spec: {auth: {jwt: {issuer: "https://login.example.com", audiences: [weather], jwksURI: "http://127.0.0.1:9/keys"}}}
`

// scoped is a server that knows the issuer's key and wants a scope.
func scoped() string {
	return `
kind: MCPServer
metadata: {name: weather, namespace: team-a}
spec: {auth: {jwt: {issuer: "https://login.example.com", audiences: [weather], requiredScopes: [forecasts.read], jwks: '` + issuerKeys() + `'}}}
`
}

var issuerKey = ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))

func issuerKeys() string {
	public, _ := issuerKey.Public().(ed25519.PublicKey)
	return `{"keys": [{"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig", "kid": "a", "x": "` + base64.RawURLEncoding.EncodeToString(public) + `"}]}`
}

// unscoped is a token of the issuer without a scope.
func unscoped() string {
	part := base64.RawURLEncoding.EncodeToString
	signed := part([]byte(`{"alg":"EdDSA","kid":"a"}`)) + "." +
		part([]byte(`{"iss":"https://login.example.com","aud":"weather","sub":"a","exp":4102444800}`))
	return signed + "." + part(ed25519.Sign(issuerKey, []byte(signed)))
}

func call(name string) func(*shared) answer {
	return func(s *shared) answer { return s.modern("tools/call", name, `"name":"`+name+`","arguments":{}`) }
}

func twice(ask func(*shared) answer) func(*shared) answer {
	return func(s *shared) answer { ask(s); return ask(s) }
}

func list(header, value string) func(*shared) answer {
	return func(s *shared) answer { return s.modern("tools/list", "", "", header, value) }
}

var initialize = func(s *shared) answer {
	return s.post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}`)
}

var answers = []asked{
	{"shows no credential", keyed, list("Accept-Language", "en"), "Send `Authorization: Bearer ...`, or for API keys `X-API-Key`."},
	{"shows a wrong credential", keyed, list("X-Api-Key", "wrong"), "Get a valid one. For API keys: a value of the Secret, changed at most seconds ago."},
	{"comes from a web page of another origin", anybody, list("Origin", "https://elsewhere.example.com"), "Name the page's origin in `spec.cors.allowedOrigins`, or the server's own in `spec.publicURL`."},
	{"calls another path", anybody, func(s *shared) answer {
		s.url = strings.TrimSuffix(s.url, "/mcp") + "/elsewhere"
		return s.post(`{}`)
	}, "Use the path of `status.url`, or of `spec.transports`."},
	{"goes on with a session that is over", anybody, func(s *shared) answer {
		return s.post(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "Mcp-Session-Id", "0-over", "Mcp-Protocol-Version", "2025-11-25")
	}, "Initialize again, as clients do by themselves. Sessions end when they were idle, and with their replica."},
	{"begins one session too many", anybody, twice(initialize), "Raise `spec.sessions.max`, or add replicas."},
	{"reads too often", slowly, twice(func(s *shared) answer { return s.modern("resources/read", "docs://note", `"uri":"docs://note"`) }), "Try again, or raise `spec.limits.requestsPerSecond`."},
	{"sends too much", anybody, func(s *shared) answer {
		return s.post(`{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("a", 2000) + `"}`)
	}, "Send less, or raise `spec.limits.maxMessageBytes`."},
	{"shows a token without a scope that is required", scoped(), list("Authorization", "Bearer "+unscoped()), "Ask the issuer for a token with all of `spec.auth.jwt.requiredScopes`."},
	{"shows a token while its issuer is away", unreachable, list("Authorization", "Bearer "+unscoped()), "See whether the pods reach the issuer's keys. Keys that are known are used for a day."},
	{"comes before a catalog is there", "", list("Accept-Language", "en"), "Wait. If it stays, see `Synced` of the MCPServer."},
	{"calls a tool that does not exist, or is not for it", anybody, call("nothing"), "Look at `tools/list` as that caller. What a caller may not see is answered in the same way."},
	{"calls a tool without a handler", anybody, call("later"), "Give the MCPTool `http`, `expression` or `upstream`."},
	{"calls more than its budget allows", anybody, twice(call("ping")), "Wait, or change the rule in `spec.limits.rules`. The budget is of a caller and a replica."},
}

// again is the one thing in the answers that depends on the time.
var again = regexp.MustCompile(`again in \d+ s`)

// TestAnswers asks a server, and holds the table of docs/troubleshooting.md to
// what it says.
func TestAnswers(t *testing.T) {
	var rows [][]string
	for _, a := range answers {
		got := a.ask(serve(t, a.objects))
		status := fmt.Sprintf("%d", got.status)
		if got.status == http.StatusOK && !strings.Contains(got.body, `"isError":true`) && !strings.Contains(got.body, `"error":{`) {
			t.Errorf("a client that %s is answered with %s", a.what, got.body)
		}
		body := again.ReplaceAllString(strings.TrimSpace(got.body), "again in 3600 s")
		rows = append(rows, []string{a.what, status, page.Code(body), a.do})
	}
	table := page.Table([]string{"a client that", "HTTP", "answer", "what to do"}, rows)
	current, err := page.CheckSection(filepath.Join(root, "docs", "troubleshooting.md"), "answers", table, *update)
	if err != nil || !current {
		t.Errorf("docs/troubleshooting.md has not the answers that are given (%v). Run: go test ./test/docs -run TestAnswers -update. They are:\n%s", err, table)
	}
}
