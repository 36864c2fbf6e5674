// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpprobe

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxNameBytes is the length of the longest escaped name.
const MaxNameBytes = 256

// EscapeName makes a name from a peer fit for a status: what is not graphic
// (control characters, bidirectional marks, odd spaces) and the backslash are
// written as Go escapes, all else stays byte for byte. What is longer than
// MaxNameBytes ends in "~" and a hash of the whole, so that different names
// stay different.
func EscapeName(name string) string { return escape(name, MaxNameBytes) }

func escape(s string, limit int) string {
	var b strings.Builder
	for i, r := range s {
		if b.Len() > limit {
			break
		}
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(s[i:]); size == 1 {
				fmt.Fprintf(&b, `\x%02x`, s[i])
				continue
			}
		}
		writeRune(&b, r)
	}
	if b.Len() <= limit {
		return b.String()
	}
	sum := sha256.Sum256([]byte(s))
	tail := "~" + hex.EncodeToString(sum[:4])
	return cut(b.String(), limit-len(tail)) + tail
}

func writeRune(b *strings.Builder, r rune) {
	switch {
	case r == '\\':
		b.WriteString(`\\`)
	case r == ' ' || (unicode.IsGraphic(r) && !unicode.IsSpace(r)):
		b.WriteRune(r)
	case r < 0x80:
		fmt.Fprintf(b, `\x%02x`, r)
	case r < 0x10000:
		fmt.Fprintf(b, `\u%04x`, r)
	default:
		fmt.Fprintf(b, `\U%08x`, r)
	}
}

// cut shortens s to at most n bytes at the border of a rune.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// maxWords bounds what Diagnostics keep of a peer's words.
const maxWords = 200

// words makes a peer's words printable and strikes out the secrets.
func words(s string, secrets []string) string {
	// Secrets first, on more than is kept: a cut must not leave half of one.
	s = cut(s, 16*maxWords)
	s = struck(s, secrets)
	var b strings.Builder
	for _, r := range cut(s, maxWords) {
		writeRune(&b, r)
	}
	return b.String()
}

// struck replaces the secrets in a name: a peer that was given one may have
// made a name of it.
func struck(s string, secrets []string) string {
	for _, secret := range secrets {
		s = strings.ReplaceAll(s, secret, "[secret]")
	}
	return s
}

// Strike replaces the secret values of headers, and their parts, in a text that
// is to be shown.
func Strike(text string, values ...string) string { return struck(text, secretsOf(values...)) }

// secretsOf are the strings of t that must not come back in Diagnostics, the
// longest first. A value like "Bearer x" is kept whole and by its parts.
func secretsOf(values ...string) []string {
	var secrets []string
	for _, value := range values {
		for _, part := range append(strings.Fields(value), value) {
			if len(part) >= 4 && !slices.Contains([]string{"bearer", "basic", "token"}, strings.ToLower(part)) {
				secrets = append(secrets, part)
			}
		}
	}
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	return slices.Compact(secrets)
}
