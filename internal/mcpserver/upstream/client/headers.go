// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/schema"
)

// HeaderText writes text as a mirrored header has it: as it is where that can
// be, else in base64.
func HeaderText(text string) string {
	plain := text == strings.TrimSpace(text) && !strings.HasPrefix(text, "=?base64?")
	for _, c := range []byte(text) {
		plain = plain && c >= ' ' && c <= '~'
	}
	if plain {
		return text
	}
	return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(text)) + "?="
}

// Mirror gives the headers for arguments that a schema wants mirrored.
func Mirror(params []schema.HeaderParam, args map[string]any) http.Header {
	if len(params) == 0 {
		return nil
	}
	out := http.Header{}
	for _, p := range params {
		var value any = args
		for _, name := range p.Path {
			object, _ := value.(map[string]any)
			value = object[name]
		}
		name := http.CanonicalHeaderKey(mcp.HeaderParamPrefix + p.Name)
		switch v := value.(type) {
		case string:
			out[name] = []string{HeaderText(v)}
		case bool:
			out[name] = []string{strconv.FormatBool(v)}
		case int64:
			out[name] = []string{strconv.FormatInt(v, 10)}
		case uint64:
			out[name] = []string{strconv.FormatUint(v, 10)}
		case float64:
			out[name] = []string{strconv.FormatFloat(v, 'f', -1, 64)}
		}
	}
	return out
}
