// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package streamhttp

import (
	"context"
	"encoding/base64"
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/engine"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
	"github.com/espalier-dev/espalier/internal/schema"
)

// checkHeaders holds the mirrored headers of a modern request against its
// body, so that what routed on the former and what runs the latter agree.
func checkHeaders(ctx context.Context, header http.Header, request *engine.Request) (int, *wire.Error) {
	m := request.Message
	if method, ok := single(header, mcp.HeaderMethod); !ok || method != m.Method {
		return mismatch("Mcp-Method does not match the method of the body")
	}
	if m.Method == mcp.MethodSubscriptionsListen && !accepts(header["Accept"], mediaStream) {
		return http.StatusNotAcceptable, &wire.Error{Code: mcp.CodeInvalidRequest, Message: "send Accept: application/json, text/event-stream"}
	}
	key := mcp.MirroredName(m.Method)
	if key == "" {
		return 0, nil
	}
	name, ok := m.Params.Text(key)
	if !ok {
		return 0, nil // The method refuses it.
	}
	if got, ok := single(header, mcp.HeaderName); !ok || !equalText(got, name) {
		return mismatch("Mcp-Name does not match the " + key + " of the body")
	}
	if m.Method != mcp.MethodToolsCall {
		return 0, nil
	}
	tool := request.Tool(ctx, name) // A rule of a hidden tool would betray it.
	if tool == nil || len(tool.Input.Headers()) == 0 {
		return 0, nil
	}
	args, invalid := request.Arguments()
	if invalid != nil {
		return http.StatusBadRequest, invalid
	}
	for _, param := range tool.Input.Headers() {
		if !matchesParam(header, param, args) {
			return mismatch(mcp.HeaderParamPrefix + param.Name + " does not match the argument")
		}
	}
	return 0, nil
}

// single gives the value of a header that stands exactly once.
func single(header http.Header, name string) (string, bool) {
	values := header[name]
	if len(values) != 1 {
		return "", false
	}
	return values[0], true
}

func matchesParam(header http.Header, param schema.HeaderParam, args map[string]any) bool {
	values := header[http.CanonicalHeaderKey(mcp.HeaderParamPrefix+param.Name)]
	want := valueAt(args, param.Path)
	if want == nil {
		return len(values) == 0
	}
	if len(values) != 1 {
		return false
	}
	switch want := want.(type) {
	case string:
		return equalText(values[0], want)
	case bool:
		return values[0] == strconv.FormatBool(want)
	case int64:
		return equalNumber(values[0], float64(want), strconv.FormatInt(want, 10))
	case uint64:
		return equalNumber(values[0], float64(want), strconv.FormatUint(want, 10))
	case float64:
		return equalNumber(values[0], want, strconv.FormatFloat(want, 'f', -1, 64))
	}
	return false
}

func valueAt(args map[string]any, path []string) any {
	var current any = args
	for _, name := range path {
		object, ok := current.(map[string]any)
		if !ok {
			return nil
		}
		current = object[name]
	}
	return current
}

const (
	sentinelPrefix = "=?base64?"
	sentinelSuffix = "?="
)

// equalText compares a header's value, decoded if it is encoded, with a text.
func equalText(header, want string) bool {
	if encoded, ok := strings.CutPrefix(header, sentinelPrefix); ok && strings.HasSuffix(encoded, sentinelSuffix) {
		decoded, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(encoded, sentinelSuffix))
		return err == nil && string(decoded) == want
	}
	for _, c := range []byte(header) {
		if c < ' ' && c != '\t' || c > '~' {
			return false
		}
	}
	return header == want
}

// maxExact is up to where a float64 tells any two integers apart.
const maxExact = 1 << 53

// equalNumber compares numbers, not their spelling: 42.0 is 42. Beyond what a
// float64 can tell apart only the exact spelling will do.
func equalNumber(header string, want float64, exact string) bool {
	if header == exact {
		return true
	}
	got, err := strconv.ParseFloat(header, 64)
	return err == nil && got == want && math.Abs(want) < maxExact && strings.Trim(header, "+-.0123456789eE") == ""
}
