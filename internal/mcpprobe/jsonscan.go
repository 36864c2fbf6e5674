// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpprobe

import (
	"bytes"
	"encoding/json"
)

// The functions here walk JSON that json.Valid has accepted, without copying
// it and without building values: a hostile body of 10 MiB would cost
// hundreds as a map, and a list must be cut before it is held. Unlike
// encoding/json they take keys as they are written, case included.

// walkObject calls visit for each member of the object at the beginning of
// data, until visit says false. It reports whether data is an object.
func walkObject(data []byte, visit func(key string, value []byte) bool) bool {
	data = bytes.TrimLeft(data, jsonSpace)
	if len(data) == 0 || data[0] != '{' {
		return false
	}
	i := skipSpace(data, 1)
	for i < len(data) && data[i] != '}' {
		end := skipValue(data, i)
		key, ok := stringOf(data[i:end])
		if !ok {
			return false
		}
		i = skipSpace(data, end)
		i = skipSpace(data, i+1) // the colon
		end = skipValue(data, i)
		if end <= i || !visit(key, data[i:end]) {
			return true
		}
		i = skipSeparator(data, end)
	}
	return true
}

// walkArray calls visit for each element of the array at the beginning of
// data, until visit says false. It reports whether data is an array.
func walkArray(data []byte, visit func(value []byte) bool) bool {
	data = bytes.TrimLeft(data, jsonSpace)
	if len(data) == 0 || data[0] != '[' {
		return false
	}
	i := skipSpace(data, 1)
	for i < len(data) && data[i] != ']' {
		end := skipValue(data, i)
		if end <= i || !visit(data[i:end]) {
			return true
		}
		i = skipSeparator(data, end)
	}
	return true
}

// member gives the value of one key of an object; the last one counts when
// it is repeated, as it does for encoding/json.
func member(data []byte, key string) (value []byte, ok bool) {
	walkObject(data, func(k string, v []byte) bool {
		if k == key {
			value, ok = v, true
		}
		return true
	})
	return value, ok
}

// stringMember gives the string under one key of an object.
func stringMember(data []byte, key string) (string, bool) {
	value, ok := member(data, key)
	if !ok {
		return "", false
	}
	return stringOf(value)
}

// stringOf decodes a JSON string.
func stringOf(value []byte) (string, bool) {
	if len(value) < 2 || value[0] != '"' {
		return "", false
	}
	if bytes.IndexByte(value, '\\') < 0 && isASCII(value) {
		return string(value[1 : len(value)-1]), true
	}
	var s string
	err := json.Unmarshal(value, &s)
	return s, err == nil
}

func isASCII(b []byte) bool {
	for _, c := range b {
		if c >= 0x80 {
			return false
		}
	}
	return true
}

func isObject(value []byte) bool { return len(value) > 0 && value[0] == '{' }
func isNull(value []byte) bool   { return string(value) == "null" }

const jsonSpace = " \t\r\n"

func skipSpace(data []byte, i int) int {
	for i < len(data) && (data[i] == ' ' || data[i] == '\t' || data[i] == '\r' || data[i] == '\n') {
		i++
	}
	return i
}

// skipSeparator passes spaces and one comma.
func skipSeparator(data []byte, i int) int {
	i = skipSpace(data, i)
	if i < len(data) && data[i] == ',' {
		i = skipSpace(data, i+1)
	}
	return i
}

// skipValue gives the index behind the value that begins at i.
func skipValue(data []byte, i int) int {
	depth := 0
	for i < len(data) {
		switch data[i] {
		case '"':
			i = skipString(data, i)
		case '{', '[':
			depth++
			i++
		case '}', ']':
			if depth == 0 {
				return i
			}
			depth--
			i++
		case ',', ':', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return i
			}
			i++
			continue
		default:
			i = skipScalar(data, i)
		}
		if depth == 0 {
			return i
		}
	}
	return i
}

func skipString(data []byte, i int) int {
	for i++; i < len(data); i++ {
		switch data[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(data)
}

func skipScalar(data []byte, i int) int {
	for i < len(data) && bytes.IndexByte([]byte(`{}[]",: `+"\t\r\n"), data[i]) < 0 {
		i++
	}
	return i
}
