// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package harness is what the end-to-end tests stand on: a cluster with the
// operator in it, namespaces that enforce Pod Security restricted, clients
// that speak MCP to single pods, and watches that count writes.
//
// Its functions fail the running spec through Gomega; they return no errors.
package harness
