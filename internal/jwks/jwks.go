// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package jwks reads JSON Web Key Sets (RFC 7517) for the verification of
// signatures: public keys of the algorithms that are accepted, nothing else.
package jwks

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"

	"github.com/go-jose/go-jose/v4"
)

// MaxKeys of one set that are looked at.
const MaxKeys = 64

// Algorithms that tokens may be signed by: asymmetric ones only. "none" and
// the HMACs, by which a public key could be misused as a secret, are not among
// them and never will be.
var Algorithms = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512,
	jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
}

var (
	errNotASet = errors.New(`it is no JSON Web Key Set: an object with a list "keys"`)
	errNoKeys  = errors.New("it holds no public key for signatures")
)

// Parse gives the public signature keys of a set. Keys of other kinds and
// uses are left out; a set without any is an error.
func Parse(raw []byte) ([]jose.JSONWebKey, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(raw, &set); err != nil || set.Keys == nil {
		return nil, errNotASet
	}
	var out []jose.JSONWebKey
	for _, one := range set.Keys[:min(len(set.Keys), MaxKeys)] {
		var key jose.JSONWebKey
		// Sets hold keys of kinds that no library knows yet.
		if key.UnmarshalJSON(one) == nil && usable(&key) {
			out = append(out, key)
		}
	}
	if out == nil {
		return nil, errNoKeys
	}
	return out, nil
}

// usable: public (IsPublic is false for symmetric and private keys), sound,
// and meant for signatures.
func usable(key *jose.JSONWebKey) bool {
	if !key.Valid() || !key.IsPublic() || key.Use != "" && key.Use != "sig" {
		return false
	}
	return key.Algorithm == "" || slices.Contains(Algorithms, jose.SignatureAlgorithm(key.Algorithm))
}

// Pick gives the keys that may have made a signature: those of the key id,
// or, for a token without one, all. A key that names an algorithm is for that
// one alone.
func Pick(keys []jose.JSONWebKey, kid, algorithm string) []jose.JSONWebKey {
	var out []jose.JSONWebKey
	for _, key := range keys {
		if (kid == "" || key.KeyID == kid) && (key.Algorithm == "" || key.Algorithm == algorithm) {
			out = append(out, key)
		}
	}
	return out
}

// Canonical gives a set in one order and without white space, where it has a
// key that Parse takes: replicas of a server may write it differently, and a
// catalog's digest must not change for that. Keys beyond those that are looked
// at are left out: in another order they would take the place of others.
func Canonical(raw []byte) (json.RawMessage, bool) {
	if _, err := Parse(raw); err != nil {
		return nil, false
	}
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if json.Unmarshal(raw, &set) != nil {
		return nil, false
	}
	set.Keys = set.Keys[:min(len(set.Keys), MaxKeys)]
	for i, key := range set.Keys {
		var members map[string]any
		if json.Unmarshal(key, &members) != nil {
			return nil, false
		}
		set.Keys[i], _ = json.Marshal(members) // Decoded a moment ago.
	}
	slices.SortFunc(set.Keys, func(a, b json.RawMessage) int { return bytes.Compare(a, b) })
	out, err := json.Marshal(set)
	return out, err == nil
}
