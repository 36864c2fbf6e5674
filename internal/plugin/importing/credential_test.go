// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package importing

import (
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
)

func TestSecret(t *testing.T) {
	for _, p := range []pair{
		{"API_KEY", "abc"}, {"apiKey", "abc"}, {"OPENAI_API_KEY", "x"}, {"GITHUB_PAT", "x1"}, {"DB_PASSWORD", "1234"}, {"PIN", "1"},
		{"Authorization", "x"}, {"X-Auth-Token", "x"}, {"Cookie", "a=b"}, {"SLACK_WEBHOOK_URL", "https://hooks.example.com/x"},
		{"ACCESSTOKEN", "x"}, {"token", "t0k3n"}, {"ANYTHING", "ghp_0123456789abcdef"}, {"X", "sk-proj-0123456789"}, {"X", "eyJhbGciOiJIUzI1NiJ9.e30.abc"},
		{"DATABASE_URL", "postgres://a:b@c/d"}, {"X", "https://u:p@example.com"}, {"X", "https://example.com?access_token=abc"},
		{"X", "-----BEGIN RSA PRIVATE KEY-----\nabc"}, {"X", "a8F3kd92LsPq01ZxMn48"}, {"X", "0123456789abcdef0123456789abcdef"},
		{"X", "mongodb+srv://ada:p%w@host/db"}, {"clientSecret", "x"},
	} {
		if !secret(p.name, p.value) {
			t.Errorf("%s=%s is taken for none", p.name, p.value)
		}
	}
	for _, p := range []pair{
		{"MAX_TOKENS", "4096"}, {"TOKEN_LIMIT", "x"}, {"LOG_LEVEL", "debug"}, {"API_KEY", ""}, {"AUTH", "true"}, {"CLIENT_ID", "my-app"},
		{"PATH", "/usr/bin:/bin"}, {"GOOGLE_APPLICATION_CREDENTIALS", "/Users/ada/key.json"}, {"TOKEN_URL", "https://login.example.com/token"},
		{"X", "@modelcontextprotocol/server-filesystem"}, {"X", "mcp-server-fetch==2025.4.7"}, {"X", "https://mcp.example.com/v1/mcp?profile=work"},
		{"X", "0.0.0.0"}, {"MONKEY", "banana"}, {"AUTHOR", "Ada"}, {"COMPASS", "north"}, {"X", "https://user@example.com:8080"[8:]}, {"X", "internationalization-of-things"},
	} {
		if secret(p.name, p.value) {
			t.Errorf("%s=%s is taken for a credential", p.name, p.value)
		}
	}
}

func TestNames(t *testing.T) {
	long := strings.Repeat("a", 60)
	n := names{}
	for _, test := range [][2]string{
		{"Memory", "memory"}, {"memory", "memory-2"}, {"MEMORY!", "memory-3"}, {"my server (v2)", "my-server-v2"}, {"@scope/name", "scope-name"},
		{"2nd", "mcp-2nd"}, {"", "server"}, {"日本", "server-2"}, {"--x--", "x"}, {long, long[:50]}, {long + "b", long[:48] + "-2"}, {"memory-2", "memory-2-2"},
	} {
		if got := n.take(test[0]); got != test[1] {
			t.Errorf("%q becomes %q, want %q", test[0], got, test[1])
		}
	}
}

// A shell takes apart what line puts together, without a surprise.
func TestQuote(t *testing.T) {
	for _, test := range [][2]string{
		{"a-b=c", "'a-b=c'"}, {"a b", "'a b'"}, {"it's", `'it'\''s'`}, {"$HOME", "'$HOME'"}, {"", "''"}, {"@x/y@1.2.3", "@x/y@1.2.3"}, {"`id`", "'`id`'"}, {"~", "'~'"},
	} {
		if got := quote(test[0]); got != test[1] {
			t.Errorf("%q becomes %s, want %s", test[0], got, test[1])
		}
	}
}

func FuzzImport(f *testing.F) {
	f.Add([]byte(`{"mcpServers":{"a":{"command":"npx","args":["-y","x@1","--token","y"],"env":{"A_KEY":"b","C":1}}}}`))
	f.Add([]byte(`{"servers":{"a":{"url":"https://u:p@h/?api_key=x","headers":{"Authorization":"Bearer ${input:a}"}}},"inputs":[{"id":"a"}]}`))
	f.Add([]byte(`{"a":{"command":"docker","args":["run","-ite","A=b","-v","/a:/b","i/m","${B:-c}"]},"A":{"url":"http://localhost"}}`))
	f.Add([]byte(`{"mcp":{"servers":{"":{"command":["uvx","--from","git+x","y"]}}}} // c`))
	label := regexp.MustCompile(`^[a-z]([-a-z0-9]*[a-z0-9])?$`)
	f.Fuzz(func(t *testing.T, raw []byte) {
		in, err := parse(raw)
		if err != nil {
			if len(err.Error()) > 100 {
				t.Fatalf("an error of %d bytes", len(err.Error()))
			}
			return
		}
		o := &Options{NPXImage: DefaultNPXImage, UVXImage: DefaultUVXImage, Inspect: known}
		results := o.convert(t.Context(), in)
		if len(results) != len(in.entries) {
			t.Fatalf("%d of %d servers", len(results), len(in.entries))
		}
		seen := map[string]bool{}
		for _, r := range results {
			if seen[r.name] || len(r.name) > maxName || !label.MatchString(r.name) {
				t.Fatalf("the name %q", r.name)
			}
			seen[r.name] = true
		}
		w := &writer{file: "x"}
		text, _, err := w.all(results)
		if err != nil {
			t.Fatal(err)
		}
		for document := range strings.SplitSeq(text, "\n---\n") {
			var server mcpv1.MCPServer
			if strings.Contains(document, "\nkind: MCPServer\n") {
				if err := yaml.UnmarshalStrict([]byte(document), &server); err != nil {
					t.Fatalf("%v of\n%s", err, document)
				}
				if server.Spec.Stdio == nil == (server.Spec.External == nil) {
					t.Fatalf("it is of no type, or of two:\n%s", document)
				}
			}
		}
	})
}
