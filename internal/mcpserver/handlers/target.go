// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"strings"

	"github.com/espalier-dev/espalier/internal/mcpserver/call"
)

// target is a compiled URL. Arguments fill single segments of its path and
// nothing else: scheme, host and the number of segments are the declaration's.
type target struct {
	scheme, host string
	segments     [][]piece
	// fixed is the query that the URL itself carries.
	fixed     string
	fixedKeys map[string]bool
}

// piece of a path segment: a literal, or the name of a placeholder.
type piece struct {
	literal     string
	placeholder string
}

var placeholderPattern = regexp.MustCompile(`\{([^{}/]*)\}`)

var namePattern = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)

// parseTarget takes a URL apart. Only its path may hold {placeholders}.
func parseTarget(raw string) (*target, error) {
	plain := placeholderPattern.ReplaceAllString(raw, "x")
	u, err := url.Parse(plain)
	if err != nil {
		return nil, errors.New("the url cannot be parsed")
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("the url must begin with http:// or https://")
	case u.Host == "":
		return nil, errors.New("the url has no host")
	case u.User != nil:
		return nil, errors.New("the url must not hold credentials: use headers")
	case strings.Contains(raw, "#"):
		return nil, errors.New("the url must not hold a fragment")
	}
	_, rest, _ := strings.Cut(raw, "://")
	authority, pathAndQuery := cutAny(rest, "/?")
	if strings.ContainsAny(authority, "{}") || !strings.EqualFold(authority, u.Host) {
		return nil, errors.New("placeholders may stand only in the path of the url")
	}
	pathPart, query, _ := strings.Cut(pathAndQuery, "?")
	if strings.ContainsAny(query, "{}") {
		return nil, errors.New("placeholders may stand only in the path of the url: name query values in query")
	}
	t := &target{scheme: u.Scheme, host: u.Host, fixed: query, fixedKeys: map[string]bool{}}
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, errors.New("the query of the url cannot be parsed")
	}
	for key := range values {
		t.fixedKeys[key] = true
	}
	return t, t.parsePath(pathPart)
}

// cutAny cuts s before the first of any of the characters.
func cutAny(s, characters string) (before, after string) {
	if i := strings.IndexAny(s, characters); i >= 0 {
		return s[:i], s[i:]
	}
	return s, ""
}

func (t *target) parsePath(raw string) error {
	if raw == "" {
		raw = "/"
	}
	for segment := range strings.SplitSeq(raw[1:], "/") {
		var pieces []piece
		last := 0
		for _, at := range placeholderPattern.FindAllStringSubmatchIndex(segment, -1) {
			name := segment[at[2]:at[3]]
			if !namePattern.MatchString(name) {
				return fmt.Errorf("the placeholder {%.40s} has no valid name", name)
			}
			if at[0] > last {
				pieces = append(pieces, piece{literal: segment[last:at[0]]})
			}
			pieces = append(pieces, piece{placeholder: name})
			last = at[1]
		}
		if last < len(segment) || segment == "" {
			pieces = append(pieces, piece{literal: segment[last:]})
		}
		if err := checkLiterals(pieces); err != nil {
			return err
		}
		t.segments = append(t.segments, pieces)
	}
	return nil
}

func checkLiterals(pieces []piece) error {
	for _, p := range pieces {
		if strings.ContainsAny(p.literal, "{} \\") {
			return errors.New("the path of the url holds a stray brace, space or backslash")
		}
		if len(pieces) == 1 && p.placeholder == "" && isDots(p.literal) {
			return errors.New("the path of the url must not hold . or .. segments")
		}
	}
	return nil
}

func isDots(segment string) bool {
	decoded, err := url.PathUnescape(segment)
	return err != nil || decoded == "." || decoded == ".."
}

// placeholders gives the names in the path.
func (t *target) placeholders() map[string]bool {
	names := map[string]bool{}
	for _, segment := range t.segments {
		for _, p := range segment {
			if p.placeholder != "" {
				names[p.placeholder] = true
			}
		}
	}
	return names
}

// maxURL is the longest URL that is sent, in bytes.
const maxURL = 32 << 10

// build fills the path and joins the query. It refuses whatever would make
// another path of it than the one declared.
func (t *target) build(value func(name string) (string, error), query string) (*url.URL, error) {
	var b strings.Builder
	for _, segment := range t.segments {
		b.WriteByte('/')
		start := b.Len()
		filled := false
		for _, p := range segment {
			if p.placeholder == "" {
				b.WriteString(p.literal)
				continue
			}
			filled = true
			text, err := value(p.placeholder)
			if err != nil {
				return nil, err
			}
			if err := checkSegmentValue(p.placeholder, text); err != nil {
				return nil, err
			}
			b.WriteString(url.PathEscape(text))
		}
		if filled && isDots(b.String()[start:]) {
			return nil, call.Fail(call.InvalidArguments, "the arguments make a . or .. segment of the path")
		}
	}
	escaped := b.String()
	full := t.scheme + "://" + t.host + escaped
	if joined := joinQuery(t.fixed, query); joined != "" {
		full += "?" + joined
	}
	if len(full) > maxURL {
		return nil, call.Fail(call.InvalidArguments, "the arguments make a URL of more than %d bytes", maxURL)
	}
	u, err := url.Parse(full)
	if err != nil || u.Scheme != t.scheme || u.Host != t.host || u.User != nil || u.Fragment != "" || u.EscapedPath() != escaped {
		return nil, call.Fail(call.InvalidArguments, "the arguments do not fit into the URL")
	}
	return u, nil
}

func joinQuery(fixed, more string) string {
	if fixed == "" || more == "" {
		return fixed + more
	}
	return fixed + "&" + more
}

// checkSegmentValue refuses values that a backend, or something before it,
// could read as more than one plain segment: many decode %2F before they
// resolve "..", and some decode twice.
func checkSegmentValue(name, text string) error {
	if text == "" {
		return call.Fail(call.InvalidArguments, "argument %q is empty, it stands in the path", name)
	}
	decoded := text
	for range 3 {
		for part := range strings.FieldsFuncSeq(decoded, func(r rune) bool { return r == '/' || r == '\\' }) {
			if part == "." || part == ".." {
				return call.Fail(call.InvalidArguments, "argument %q holds a . or .. segment, it stands in the path", name)
			}
		}
		if strings.ContainsFunc(decoded, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return call.Fail(call.InvalidArguments, "argument %q holds a control character, it stands in the path", name)
		}
		next, err := url.PathUnescape(decoded)
		if err != nil || next == decoded {
			break
		}
		decoded = next
	}
	if path.Clean("/"+text) == "/" {
		return call.Fail(call.InvalidArguments, "argument %q is empty, it stands in the path", name)
	}
	return nil
}
