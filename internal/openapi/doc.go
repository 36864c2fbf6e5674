// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package openapi makes tools of the operations of an OpenAPI 3 document. It
// is pure: bytes in, definitions and mappings out. Documents are foreign: they
// are bounded, nothing that they refer to elsewhere is fetched, and what
// cannot be mapped is left out by itself and named.
package openapi
