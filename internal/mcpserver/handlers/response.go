// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
)

// maxShownBody is how much of an error's text a caller sees, in bytes.
const maxShownBody = 512

// answer makes the tool's result of the backend's answer.
func (h *httpHandler) answer(ctx context.Context, c *call.Call, a *answer) (*call.Result, error) {
	if h.result.isError == nil && (a.status >= http.StatusBadRequest || a.status < http.StatusOK || isRedirect(a.status)) {
		// An author who does not look at the status gets errors as errors.
		return statusResult(a), nil
	}
	if h.result.isDefault() && h.result.isError == nil {
		return h.defaultResult(a), nil
	}
	vars := c.Vars()
	vars["response"] = responseVar(a)
	if !h.result.isDefault() {
		return h.result.eval(ctx, vars)
	}
	out := h.defaultResult(a)
	var err error
	out.IsError, err = h.result.evalIsError(ctx, vars)
	return out, err
}

// isRedirect: one that was not followed.
func isRedirect(status int) bool { return status >= 300 && status < 400 }

// statusResult tells of a status that is no success, with a little of its text.
func statusResult(a *answer) *call.Result {
	text := fmt.Sprintf("HTTP %d %s", a.status, http.StatusText(a.status))
	if kind := mediaKind(a); kind == kindJSON || kind == kindText {
		shown := strings.TrimSpace(strings.ToValidUTF8(string(a.body), "\uFFFD"))
		if len(shown) > maxShownBody {
			shown = strings.ToValidUTF8(shown[:maxShownBody], "") + "…"
		}
		if shown != "" {
			text += ": " + shown
		}
	}
	return &call.Result{Content: textContent(text), IsError: true}
}

// defaultResult maps by media type.
func (h *httpHandler) defaultResult(a *answer) *call.Result {
	if len(bytes.TrimSpace(a.body)) == 0 {
		return &call.Result{}
	}
	mimeType, _, _ := mime.ParseMediaType(a.header.Get("Content-Type"))
	switch mediaKind(a) {
	case kindJSON:
		// The text stays as the backend wrote it; what goes into the message
		// itself must have no line breaks, for streams.
		return &call.Result{Structured: compact(a.body), Content: textContent(string(bytes.TrimSpace(a.body)))}
	case kindText:
		return &call.Result{Content: textContent(strings.ToValidUTF8(string(a.body), "\uFFFD"))}
	case kindImage:
		return &call.Result{Content: append(appendBinary([]byte{'['}, "image", mimeType, a.body), ']')}
	case kindAudio:
		return &call.Result{Content: append(appendBinary([]byte{'['}, "audio", mimeType, a.body), ']')}
	}
	if mimeType == "" {
		mimeType = "application/octet-stream"
	}
	return &call.Result{Content: append(appendResource([]byte{'['}, toolURI(h.tool), mimeType, a.body), ']')}
}

func compact(raw []byte) json.RawMessage {
	var buf bytes.Buffer
	if err := json.Compact(&buf, raw); err != nil {
		return raw // It was read before: it is JSON.
	}
	return buf.Bytes()
}

type kind int

const (
	kindBinary kind = iota
	kindJSON
	kindText
	kindImage
	kindAudio
)

// mediaKind goes by the media type, and by the bytes where that is absent or
// wrong: what claims to be JSON and is not is text, what claims to be text and
// is not UTF-8 is still shown as text.
func mediaKind(a *answer) kind {
	base, _, err := mime.ParseMediaType(a.header.Get("Content-Type"))
	switch {
	case err != nil || base == "":
		return sniff(a.body)
	case isJSONType(base):
		if wire.Valid(a.body) {
			return kindJSON
		}
		return sniff(a.body)
	case strings.HasPrefix(base, "text/"), base == "application/xml", base == "application/yaml", base == "application/javascript",
		strings.HasSuffix(base, "+xml") && !strings.HasPrefix(base, "image/"):
		return kindText
	case strings.HasPrefix(base, "image/"):
		return kindImage
	case strings.HasPrefix(base, "audio/"):
		return kindAudio
	}
	return kindBinary
}

func sniff(body []byte) kind {
	trimmed := bytes.TrimSpace(body)
	if len(trimmed) > 0 && (trimmed[0] == '{' || trimmed[0] == '[') && wire.Valid(body) {
		return kindJSON
	}
	if utf8.Valid(body) && !bytes.ContainsRune(body, 0) {
		return kindText
	}
	return kindBinary
}

func isJSONType(base string) bool {
	return base == mediaJSON || base == "text/json" || strings.HasSuffix(base, "+json")
}

// responseVar is the variable "response" of expressions: header names are in
// lower case, repeated headers joined; body is the decoded JSON, text or bytes.
func responseVar(a *answer) map[string]any {
	headers := make(map[string]string, len(a.header))
	for name, values := range a.header {
		headers[strings.ToLower(name)] = strings.Join(values, ", ")
	}
	var body any
	switch mediaKind(a) {
	case kindJSON:
		decoded, err := wire.Decode(a.body)
		if err != nil {
			decoded = string(a.body)
		}
		body = decoded
	case kindText:
		body = strings.ToValidUTF8(string(a.body), "\uFFFD")
	default:
		body = a.body
	}
	return map[string]any{"status": int64(a.status), "headers": headers, "body": body}
}
