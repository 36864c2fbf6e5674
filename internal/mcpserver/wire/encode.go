// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf8"
)

// Error is a JSON-RPC error.
type Error struct {
	Code    int
	Message string
	// Data is a raw JSON value, nil for none.
	Data json.RawMessage
}

func (e *Error) Error() string { return e.Message }

const hexDigits = "0123456789abcdef"

// AppendString writes text as a JSON string. Bytes that are no UTF-8 become
// U+FFFD.
func AppendString(dst []byte, text string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(text); {
		c := text[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(text[i:])
			if r == utf8.RuneError && size == 1 {
				dst = append(dst, text[start:i]...)
				dst = append(dst, "\uFFFD"...)
				start = i + 1
			}
			i += size
			continue
		}
		dst = append(dst, text[start:i]...)
		dst = appendEscape(dst, c)
		i++
		start = i
	}
	dst = append(dst, text[start:]...)
	return append(dst, '"')
}

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}

// AppendResult writes an answer; result is a raw JSON object.
func AppendResult(dst, id, result []byte) []byte {
	dst = AppendResultHead(dst, id)
	dst = append(dst, result...)
	return append(dst, '}')
}

// AppendResultHead writes an answer up to its result; a "}" must follow that.
func AppendResultHead(dst, id []byte) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	dst = append(dst, id...)
	return append(dst, `,"result":`...)
}

// AppendError writes an error answer. A nil id is left out: MCP's ids are
// strings or numbers, never null.
func AppendError(dst, id []byte, e *Error) []byte {
	dst = append(dst, `{"jsonrpc":"2.0"`...)
	if id != nil {
		dst = append(dst, `,"id":`...)
		dst = append(dst, id...)
	}
	dst = append(dst, `,"error":{"code":`...)
	dst = strconv.AppendInt(dst, int64(e.Code), 10)
	dst = append(dst, `,"message":`...)
	dst = AppendString(dst, e.Message)
	if e.Data != nil {
		dst = append(dst, `,"data":`...)
		dst = append(dst, e.Data...)
	}
	return append(dst, "}}"...)
}

// AppendField writes ,"key":value.
func AppendField(dst []byte, key string, raw []byte) []byte {
	dst = append(dst, ',')
	dst = AppendString(dst, key)
	dst = append(dst, ':')
	return append(dst, raw...)
}

// Data gives {"reason": reason} for Error.Data.
func Data(reason string) json.RawMessage {
	return append(AppendString([]byte(`{"reason":`), reason), '}')
}

// OneLine gives a valid JSON value without line breaks, as streams have it.
func OneLine(raw []byte) []byte {
	if !bytes.ContainsAny(raw, "\r\n") {
		return raw
	}
	var line bytes.Buffer
	if json.Compact(&line, raw) != nil {
		return []byte("null") // It was valid, so this does not happen.
	}
	return line.Bytes()
}
