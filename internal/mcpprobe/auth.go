// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpprobe

import (
	"net/http"
	"strings"
)

// challenge is what WWW-Authenticate says, as far as it matters here.
type challenge struct {
	// bearer: a Bearer challenge, as MCP's authorization uses.
	bearer bool
	// metadata: it names OAuth resource metadata. The URL is never fetched.
	metadata bool
}

// maxChallenge bounds what is looked at of the header.
const maxChallenge = 8 << 10

func parseChallenge(h http.Header) challenge {
	var c challenge
	for _, value := range h.Values("Www-Authenticate") {
		value = strings.ToLower(cut(value, maxChallenge))
		for token := range strings.FieldsFuncSeq(outsideQuotes(value), func(r rune) bool { return r == ' ' || r == ',' || r == '\t' }) {
			name, _, isParam := strings.Cut(token, "=")
			c.bearer = c.bearer || (name == "bearer" && !isParam)
			c.metadata = c.metadata || (name == "resource_metadata" && isParam)
		}
	}
	return c
}

// outsideQuotes blanks quoted strings, so that nothing in them is taken for a
// scheme or a parameter.
func outsideQuotes(s string) string {
	var b strings.Builder
	quoted, escaped := false, false
	for _, c := range []byte(s) {
		switch {
		case escaped:
			escaped = false
		case quoted && c == '\\':
			escaped = true
		case c == '"':
			quoted = !quoted
			b.WriteByte('"')
		case !quoted:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// evident reports whether the challenge is that of MCP's authorization.
func (c challenge) evident() bool { return c.bearer || c.metadata }

// authOutcome judges 401, and 403 that is about the credential.
// evident: this or an earlier answer shows that it is MCP.
func authOutcome(credential, evident bool) Outcome {
	switch {
	case credential:
		return AuthRejected
	case evident:
		return AuthRequired
	}
	return AuthUnverified
}

// hostRefused reports whether the text of a 403 is about the Host header.
// Server SDKs say it in their own words; all of them name the header.
func hostRefused(text string) bool {
	text = strings.ToLower(text)
	for _, s := range []string{"invalid host", "host header", "host not allowed", "disallowed host", "host is not allowed", "unknown host", "rebinding", "non-localhost"} {
		if strings.Contains(text, s) {
			return true
		}
	}
	return false
}
