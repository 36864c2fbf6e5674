// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package charttest tests charts/espalier by rendering it with Helm's own
// engine. All of it is in its tests.
package charttest
