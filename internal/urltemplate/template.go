// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package urltemplate fills the {placeholders} of a declared URL. Values fill
// single segments of its path and nothing else: scheme, host, the number of
// segments and the query of the URL itself are the declaration's. The operator
// parses a template to accept it, the shared server parses it again to use it.
package urltemplate

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"strings"
)

// Template is a parsed URL. It is immutable.
type Template struct {
	scheme, host string
	segments     [][]piece
	query        string
	queryKeys    map[string]bool
}

// piece of a path segment: a literal, or the name of a placeholder.
type piece struct {
	literal     string
	placeholder string
}

var placeholderPattern = regexp.MustCompile(`\{([^{}/]*)\}`)

var namePattern = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)

// Parse takes a URL apart. Only its path may hold {placeholders}.
func Parse(raw string) (*Template, error) {
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
	t := &Template{scheme: u.Scheme, host: u.Host, query: query, queryKeys: map[string]bool{}}
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, errors.New("the query of the url cannot be parsed")
	}
	for key := range values {
		t.queryKeys[key] = true
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

func (t *Template) parsePath(raw string) error {
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

// HasQuery reports whether the URL itself gives a query value of that name.
func (t *Template) HasQuery(name string) bool { return t.queryKeys[name] }

// Placeholders gives the names in the path.
func (t *Template) Placeholders() map[string]bool {
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

// MaxURL is the longest URL that Fill makes, in bytes.
const MaxURL = 32 << 10

// Fill puts the values of placeholders into the path, each as one segment or a
// part of one, percent-encoded, and appends query, which is encoded already.
// It refuses whatever would make another path of it than the one declared; the
// error is fit for who gave the values. An error of value is returned as it is.
func (t *Template) Fill(value func(name string) (string, error), query string) (*url.URL, error) {
	var path strings.Builder
	for _, segment := range t.segments {
		filled, err := fillSegment(segment, value)
		if err != nil {
			return nil, err
		}
		path.WriteByte('/')
		path.WriteString(filled)
	}
	full := t.scheme + "://" + t.host + path.String()
	if joined := joinQuery(t.query, query); joined != "" {
		full += "?" + joined
	}
	if len(full) > MaxURL {
		return nil, fmt.Errorf("the arguments make a URL of more than %d bytes", MaxURL)
	}
	u, err := url.Parse(full)
	if err != nil || !t.keeps(u, path.String()) {
		return nil, errors.New("the arguments do not fit into the URL")
	}
	return u, nil
}

// keeps checks after the fact what the encoding has ensured.
func (t *Template) keeps(u *url.URL, path string) bool {
	return u.Scheme == t.scheme && u.Host == t.host && u.User == nil && u.Fragment == "" && u.EscapedPath() == path
}

func fillSegment(segment []piece, value func(string) (string, error)) (string, error) {
	var b strings.Builder
	filled := false
	for _, p := range segment {
		if p.placeholder == "" {
			b.WriteString(p.literal)
			continue
		}
		filled = true
		text, err := value(p.placeholder)
		if err != nil {
			return "", err
		}
		if err := checkSegmentValue(p.placeholder, text); err != nil {
			return "", err
		}
		b.WriteString(url.PathEscape(text))
	}
	if filled && isDots(b.String()) {
		return "", errors.New("the arguments make a . or .. segment of the path")
	}
	return b.String(), nil
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
		return fmt.Errorf("argument %q is empty, it stands in the path", name)
	}
	decoded := text
	for range 3 {
		for part := range strings.FieldsFuncSeq(decoded, func(r rune) bool { return r == '/' || r == '\\' }) {
			if part == "." || part == ".." {
				return fmt.Errorf("argument %q holds a . or .. segment, it stands in the path", name)
			}
		}
		if strings.ContainsFunc(decoded, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return fmt.Errorf("argument %q holds a control character, it stands in the path", name)
		}
		next, err := url.PathUnescape(decoded)
		if err != nil || next == decoded {
			break
		}
		decoded = next
	}
	if path.Clean("/"+text) == "/" {
		return fmt.Errorf("argument %q is empty, it stands in the path", name)
	}
	return nil
}
