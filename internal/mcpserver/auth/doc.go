// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package auth recognises callers by what their HTTP request shows: a token
// of an issuer, a token of a service account of the cluster, an API key, or
// the token of the operator's probe. It decides who somebody is and whether
// they may come in at all; what they then see is decided by package access.
//
// Nothing of a credential is ever logged or sent anywhere. Keys of issuers are
// fetched once, kept, and fetched again when a token names one that is not
// known, at most every few seconds, whoever asks.
package auth
