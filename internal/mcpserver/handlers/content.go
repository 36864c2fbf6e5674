// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/url"

	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
)

// toolURI names what a tool gave and nobody named. The backend's address is
// nobody's business.
func toolURI(tool string) string { return "urn:espalier:tool:" + url.PathEscape(tool) }

// textContent is content of one text block.
func textContent(text string) json.RawMessage {
	out := append(make([]byte, 0, len(text)+32), '[')
	return append(appendText(out, text), ']')
}

func appendText(dst []byte, text string) []byte {
	dst = append(dst, `{"type":"text","text":`...)
	return append(wire.AppendString(dst, text), '}')
}

// appendBinary writes an image or audio block.
func appendBinary(dst []byte, kind, mimeType string, data []byte) []byte {
	dst = append(dst, `{"type":`...)
	dst = wire.AppendString(dst, kind)
	dst = append(dst, `,"data":"`...)
	dst = base64.StdEncoding.AppendEncode(dst, data)
	dst = append(dst, '"')
	return append(appendMIMEType(dst, mimeType), '}')
}

// appendResource writes an embedded resource: text for a string, else a blob.
func appendResource(dst []byte, uri, mimeType string, value any) []byte {
	dst = append(dst, `{"type":"resource","resource":`...)
	return append(appendContent(dst, uri, mimeType, value), '}')
}

// appendLink writes a link to a resource.
func appendLink(dst []byte, uri, name, mimeType string) []byte {
	dst = append(dst, `{"type":"resource_link","uri":`...)
	dst = wire.AppendString(dst, uri)
	dst = wire.AppendField(dst, "name", wire.AppendString(nil, name))
	dst = appendMIMEType(dst, mimeType)
	return append(dst, '}')
}

func appendMIMEType(dst []byte, mimeType string) []byte {
	if mimeType == "" {
		return dst
	}
	return wire.AppendField(dst, "mimeType", wire.AppendString(nil, mimeType))
}

// encode writes a plain value as JSON as it stands, without escaping HTML.
func encode(value any) (json.RawMessage, error) {
	if text, ok := value.(string); ok {
		return wire.AppendString(nil, text), nil
	}
	var buf bytes.Buffer
	encoder := json.NewEncoder(&buf)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, call.Fail(call.InvalidResult, "the result is not JSON")
	}
	return bytes.TrimRight(buf.Bytes(), "\n"), nil
}
