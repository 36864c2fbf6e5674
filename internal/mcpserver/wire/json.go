// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package wire reads and writes JSON-RPC messages. A message is scanned once;
// what is passed on travels as the bytes it came in. The reader is stricter
// than encoding/json where laxness makes two readers see two things: keys are
// compared exactly, a key that stands twice is refused, text must be UTF-8.
package wire

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// MaxDepth is how deep arrays and objects of a message may nest.
const MaxDepth = 128

var (
	errSyntax    = errors.New("not valid JSON")
	errDepth     = errors.New("nested too deeply")
	errUTF8      = errors.New("text that is not UTF-8")
	errDuplicate = errors.New("an object has a key twice")
	errNumber    = errors.New("a number out of range")
)

type scanner struct {
	data []byte
	pos  int
}

func (s *scanner) space() {
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case ' ', '\t', '\r', '\n':
			s.pos++
		default:
			return
		}
	}
}

// peek gives the next byte that is no space, or 0 at the end.
func (s *scanner) peek() byte {
	s.space()
	if s.pos < len(s.data) {
		return s.data[s.pos]
	}
	return 0
}

func (s *scanner) literal(word string) error {
	if len(s.data)-s.pos < len(word) || string(s.data[s.pos:s.pos+len(word)]) != word {
		return errSyntax
	}
	s.pos += len(word)
	return nil
}

// skip moves over one value and checks it.
func (s *scanner) skip(depth int) error {
	switch c := s.peek(); c {
	case '{':
		return s.object(depth, func([]byte, bool) error { return s.skip(depth + 1) })
	case '[':
		return s.array(depth, func() error { return s.skip(depth + 1) })
	case '"':
		_, _, err := s.rawString()
		return err
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	case 'n':
		return s.literal("null")
	default:
		_, err := s.number()
		return err
	}
}

// object calls member at each value; key is raw, without its quotes, and
// escaped says whether it holds escapes.
func (s *scanner) object(depth int, member func(key []byte, escaped bool) error) error {
	if depth >= MaxDepth {
		return errDepth
	}
	s.pos++ // {
	if s.peek() == '}' {
		s.pos++
		return nil
	}
	for {
		if s.peek() != '"' {
			return errSyntax
		}
		key, escaped, err := s.rawString()
		if err != nil {
			return err
		}
		if s.peek() != ':' {
			return errSyntax
		}
		s.pos++
		if err := member(key, escaped); err != nil {
			return err
		}
		switch s.peek() {
		case ',':
			s.pos++
		case '}':
			s.pos++
			return nil
		default:
			return errSyntax
		}
	}
}

func (s *scanner) array(depth int, element func() error) error {
	if depth >= MaxDepth {
		return errDepth
	}
	s.pos++ // [
	if s.peek() == ']' {
		s.pos++
		return nil
	}
	for {
		if err := element(); err != nil {
			return err
		}
		switch s.peek() {
		case ',':
			s.pos++
		case ']':
			s.pos++
			return nil
		default:
			return errSyntax
		}
	}
}

// rawString gives what stands between the quotes.
func (s *scanner) rawString() (raw []byte, escaped bool, err error) {
	start := s.pos + 1
	ascii := true
	for i := start; i < len(s.data); i++ {
		switch c := s.data[i]; {
		case c == '"':
			s.pos = i + 1
			raw = s.data[start:i]
			if !ascii && !utf8.Valid(raw) {
				return nil, false, errUTF8
			}
			return raw, escaped, nil
		case c == '\\':
			escaped = true
			n, ok := escapeLength(s.data[i:])
			if !ok {
				return nil, false, errSyntax
			}
			i += n - 1
		case c < ' ':
			return nil, false, errSyntax
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	return nil, false, errSyntax
}

func escapeLength(b []byte) (int, bool) {
	if len(b) < 2 {
		return 0, false
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2, true
	case 'u':
		_, ok := hex4(b)
		return 6, ok
	}
	return 0, false
}

// hex4 reads \uXXXX at the start of b.
func hex4(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range b[2:6] {
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c >= 'a' && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case c >= 'A' && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	return r, true
}

// unquote gives the text of a raw string that rawString accepted.
func unquote(raw []byte, escaped bool) string {
	if !escaped {
		return string(raw)
	}
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); {
		if raw[i] != '\\' {
			out = append(out, raw[i])
			i++
			continue
		}
		switch raw[i+1] {
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r, _ := hex4(raw[i:])
			i += 6
			if utf16.IsSurrogate(r) {
				low, ok := hex4(raw[i:])
				if pair := utf16.DecodeRune(r, low); ok && pair != utf8.RuneError {
					i += 6
					r = pair
				} else {
					r = utf8.RuneError
				}
			}
			out = utf8.AppendRune(out, r)
			continue
		default: // " \ /
			out = append(out, raw[i+1])
		}
		i += 2
	}
	return string(out)
}

// number moves over a number and reports whether it is an integer as written.
func (s *scanner) number() (integer bool, err error) {
	s.one("-")
	if !s.one("0") && !s.digits() {
		return false, errSyntax
	}
	integer = true
	if s.one(".") {
		integer = false
		if !s.digits() {
			return false, errSyntax
		}
	}
	if s.one("eE") {
		integer = false
		s.one("+-")
		if !s.digits() {
			return false, errSyntax
		}
	}
	return integer, nil
}

// one moves over the next byte if it is one of those given.
func (s *scanner) one(of string) bool {
	if s.pos < len(s.data) && strings.IndexByte(of, s.data[s.pos]) >= 0 {
		s.pos++
		return true
	}
	return false
}

// digits moves over digits and reports whether there were any.
func (s *scanner) digits() bool {
	start := s.pos
	for s.pos < len(s.data) && s.data[s.pos] >= '0' && s.data[s.pos] <= '9' {
		s.pos++
	}
	return s.pos > start
}

// value decodes one value: nil, bool, int64, uint64, float64, string, []any,
// map[string]any. An integer keeps its exact value where 64 bits hold it.
func (s *scanner) value(depth int) (any, error) {
	switch s.peek() {
	case '{':
		m := map[string]any{}
		err := s.object(depth, func(key []byte, escaped bool) error {
			name := unquote(key, escaped)
			if _, twice := m[name]; twice {
				return errDuplicate
			}
			v, err := s.value(depth + 1)
			m[name] = v
			return err
		})
		return m, err
	case '[':
		list := []any{}
		err := s.array(depth, func() error {
			v, err := s.value(depth + 1)
			list = append(list, v)
			return err
		})
		return list, err
	case '"':
		raw, escaped, err := s.rawString()
		if err != nil {
			return nil, err
		}
		return unquote(raw, escaped), nil
	case 't':
		return true, s.literal("true")
	case 'f':
		return false, s.literal("false")
	case 'n':
		return nil, s.literal("null")
	default:
		return s.numberValue()
	}
}

func (s *scanner) numberValue() (any, error) {
	start := s.pos
	integer, err := s.number()
	if err != nil {
		return nil, err
	}
	text := string(s.data[start:s.pos])
	if integer {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n, nil
		}
		if n, err := strconv.ParseUint(text, 10, 64); err == nil {
			return n, nil
		}
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(f, 0) {
		return nil, errNumber
	}
	return f, nil
}

// end checks that nothing follows the value.
func (s *scanner) end() error {
	if s.space(); s.pos != len(s.data) {
		return errSyntax
	}
	return nil
}

// Decode gives the Go value of a whole JSON document.
func Decode(data []byte) (any, error) {
	s := scanner{data: data}
	v, err := s.value(0)
	if err != nil {
		return nil, err
	}
	return v, s.end()
}

// Valid reports whether data is one JSON document that this package takes.
func Valid(data []byte) bool {
	s := scanner{data: data}
	return s.skip(0) == nil && s.end() == nil
}
