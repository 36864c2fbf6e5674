// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package api tests the CRDs on a real API server: what they accept, what they
// refuse and in which words, what they default, and how they merge.
package api

import (
	"testing"

	"github.com/espalier-dev/espalier/test/apiserver"
)

var server *apiserver.Server

func TestMain(m *testing.M) {
	apiserver.Main(m, func(s *apiserver.Server) { server = s })
}
