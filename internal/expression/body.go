// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package expression

import "strings"

// Media types of request bodies that are encoded from structured values.
const (
	MediaTypeJSON = "application/json"
	MediaTypeForm = "application/x-www-form-urlencoded"
)

// BodyKind is what an expression must give for a request body of mediaType:
// any value for JSON (the default, for an empty mediaType), a map for a form,
// a string or bytes for all else.
func BodyKind(mediaType string) Kind {
	base, _, _ := strings.Cut(mediaType, ";")
	switch base = strings.ToLower(strings.TrimSpace(base)); {
	case base == "", base == MediaTypeJSON, strings.HasSuffix(base, "+json"):
		return Any
	case base == MediaTypeForm:
		return Map
	default:
		return StringOrBytes
	}
}
