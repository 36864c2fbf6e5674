// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package api

// patterns has examples for every pattern, by its text.
var patterns = map[string]examples{
	// Base64 of the standard, not of URLs. What Go could not decode must not be stored: one object would fail the list of all.
	"^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$": {
		good: []string{`aa+/`, `aaaaaa==`, `aaa=`}, bad: []string{`aaaaa`, `aa-_`, `aaaa=`, `a a=`, `=aaa`},
	},
	`^[-._a-zA-Z0-9]+$`: {
		good: []string{`tls.crt`, `TOKEN_1`, `"-"`},
		bad:  []string{`a/b`, `"a b"`, `ä`},
	},
	"^[A-Za-z0-9!#$%&'*+.^_|~-]+$": {
		good: []string{`X-Api-Key`, `"x!#$%&'*+.^_|~-9"`},
		bad:  []string{`"X Y"`, `"X:"`, `"X\r\nY"`, `"(x)"`},
	},
	`^[ -~]*$`: {
		good: []string{`"Bearer "`, `"~ token=1"`},
		bad:  []string{`"a\r\nX: y"`, `"a\tb"`, `"ä"`, `"\0"`},
	},
	`^[^\s]+$`: {
		good: []string{`node`, `registry.example.com:5000/a/b:1@sha256:00`},
		bad:  []string{`"a b"`, `" a"`, `"a\n"`},
	},
	`^v1:sha256:[0-9a-f]{64}$`: {
		good: []string{"v1:sha256:" + zeros},
		bad:  []string{"sha256:" + zeros + "000", "v1:sha512:" + zeros, "v1:sha256:" + zeros[1:] + "G"},
	},
	`^sha256:[0-9a-f]{64}$`: {
		good: []string{"sha256:" + zeros},
		bad:  []string{"sha512:" + zeros, "sha256:" + zeros[1:] + "A"},
	},
	`^https?://[A-Za-z0-9.\[\]:_-]+(/[^?#\s]*)?$`: {
		good: []string{`https://mcp.example.com`, `http://[::1]:8080/a/b`, `https://mcp.example.com/`},
		bad: []string{`ftp://a.example.com`, `https://u:p@a.example.com`, `https://a.example.com/?q`, `https://a.example.com/#f`,
			`"https://a.example.com/a b"`, `https://`, `//a.example.com`},
	},
	`^https?://[A-Za-z0-9.\[\]:_-]+([/?][^#\s]*)?$`: {
		good: []string{`https://login.example.com/keys?p=x`, `http://[::1]:8080`, `https://login.example.com?x`},
		bad:  []string{`ftp://a.example.com`, `https://u:p@a.example.com`, `https://a.example.com/#f`, `"https://a.example.com/a b"`},
	},
	`^[!#-\[\]-~]+$`: {
		good: []string{`tools:read`, `https://example.com/scope`, `"!"`},
		bad:  []string{`"a b"`, `'a"b'`, `'a\b'`, `ä`},
	},
	`^https?://([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?([/?][!"$-z|~]*)?$`: {
		good: []string{`http://idp`, `https://login.example.com/realms/a/token?x=1`, `"https://[fd00::1]:8443/token"`},
		bad:  []string{`ftp://idp/token`, `http://user:pw@idp/token`, `"http://idp/{tenant}/token"`, `"http://{idp}/token"`, `"http://idp/token#a"`, `"http://idp/to ken"`, `"http://idp/a\nb"`},
	},
	`^[ -~]+$`: {
		good: []string{`a`, `"a b:c"`},
		bad:  []string{`"a\nb"`, `é`},
	},
	`^[A-Za-z][A-Za-z0-9+.-]*:[!"$-~]+$`: {
		good: []string{`"https://api.example.com"`, `urn:example:api`},
		bad:  []string{`/api`, `"https://a#b"`, `"https://a b"`, `"abc:"`},
	},
	`^\S+$`: {
		good: []string{`"docs://*"`, `"docs://{id}/a?b"`, `"*"`},
		bad:  []string{`"docs://a b"`, `" "`, `"docs://a\n"`},
	},
	`^system:serviceaccount:[a-z0-9*?-]+:[a-z0-9.*?-]+$`: {
		good: []string{`system:serviceaccount:team-a:agent`, `"system:serviceaccount:*:*"`, `system:serviceaccount:a:b.c`},
		bad:  []string{`team-a/agent`, `system:serviceaccount:team-a`, `"system:*"`, `system:serviceaccount:a:b:c`},
	},
	`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`: {
		good: []string{`keys`, `a.b-c`, `"1"`},
		bad:  []string{`Keys`, `a/b`, `..`, `-a`},
	},
	`^/[^?#\s]*$`: {
		good: []string{`/`, `/mcp/v1`},
		bad:  []string{`mcp`, `/mcp?x=1`, `/mcp#x`, `"/m cp"`},
	},
	`^/[A-Za-z0-9._~/-]+$`: {
		good: []string{`/mcp`, `/a/b-c_d.e~f`},
		bad:  []string{`mcp`, `/a?b`, `/{a}`, `/a%2fb`, `"/a b"`},
	},
	`^https?://[A-Za-z0-9.\[\]:_-]+$`: {
		good: []string{`https://app.example.com`, `http://localhost:3000`, `http://[::1]:3000`},
		bad:  []string{`https://app.example.com/`, `"*"`, `null-origin`, `https://*.example.com`, `https://u@app.example.com`},
	},
	`^[A-Za-z0-9_.*?-]+$`: {
		good: []string{`get_*`, `a?c.d-e`, `"*"`},
		bad:  []string{`"a b"`, `"{a,b}"`, `"[ab]"`, `a/b`},
	},
	`^[A-Za-z0-9.\[\]:_-]+$`: {
		good: []string{`localhost:8080`, `"[::1]:80"`, `a.example.com`},
		bad:  []string{`a/b`, `"a b"`, `"a\r\nb"`, `u@a.example.com`},
	},
	`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`: {
		good: []string{`data`, `"0"`, `a-b`},
		bad:  []string{`-a`, `a-`, `A`, `a.b`},
	},
	`^/`: {
		good: []string{`/`, `/a b`},
		bad:  []string{`a`, `" /a"`},
	},
	`^[A-Za-z0-9_.-]+$`: {
		good: []string{`orders_`, `service_1`, `a.B-1`, `a-b.c`},
		bad:  []string{`"a b"`, `a/`, `a/b`, `a*`, `ä`},
	},
	`^[A-Za-z0-9_.-]{1,128}$`: {
		good: []string{`get_forecast`, `A.b-C`, `"1"`},
		bad:  []string{`"a b"`, `a/b`, `ä`, `"a*"`},
	},
	`^[A-Za-z0-9_]+$`: {
		good: []string{`service_1`, `"1"`},
		bad:  []string{`a-b`, `a.b`, `"a b"`, `ä`},
	},
	`^[A-Za-z0-9.+-]+/[A-Za-z0-9.+*-]+(; ?[A-Za-z0-9-]+=[A-Za-z0-9._-]+)*$`: {
		good: []string{`text/markdown`, `text/plain; charset=utf-8`, `application/vnd.api+json`, `text/x; a=1; b=2`},
		bad:  []string{`json`, `text/`, `"text/plain\r\nX: y"`, `"text/plain; x"`},
	},
	`^(https://|data:image/)`: {
		good: []string{`https://example.com/i.png`, `"data:image/png;base64,AA=="`},
		bad:  []string{`http://example.com/i.png`, `"javascript:alert(1)"`, `"data:text/html,x"`, `"x https://"`},
	},
	`^[A-Za-z0-9.+-]+/[A-Za-z0-9.+*-]+(; ?charset=[A-Za-z0-9-]+)?$`: {
		good: []string{`application/json`, `text/plain; charset=utf-8`, `text/plain;charset=utf-8`, `application/vnd.api+json`},
		bad:  []string{`json`, `text/plain; x=y`, `"text/plain\r\nX: y"`, `/json`},
	},
}
