// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterkeys

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/espalier-dev/espalier/internal/jwks"
)

// FuzzCanonical: what is taken is a key set still, says the same when it is
// written in another order, and is its own canonical form.
func FuzzCanonical(f *testing.F) {
	const one = `{"kty":"OKP","crv":"Ed25519","kid":"a","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}`
	const two = `{"kid":"b","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo","crv":"Ed25519","kty":"OKP","n":1e3}`
	for _, seed := range []string{`{"keys":[` + one + `,` + two + `]}`, `{"keys":[` + two + `,null]}`, `{"keys":[` + one + `,1]}`, `{"Keys":[` + one + `]}`, `null`} {
		f.Add([]byte(seed))
	}
	f.Add([]byte(`{"keys":[` + string(bytes.Repeat([]byte(`{"kty":"x"},`), jwks.MaxKeys-1)) + one + `,` + one + `]}`))
	f.Add([]byte(`{"keys":[` + one + string(bytes.Repeat([]byte(`,{"a":1,"kty":"x"}`), jwks.MaxKeys)) + `]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		_ = issuerOf(raw)
		set, ok := canonical(raw)
		if !ok {
			return
		}
		keys, err := jwks.Parse(set)
		if err != nil {
			t.Fatalf("%s is no key set: %v", set, err)
		}
		if known, err := jwks.Parse(raw); err != nil || len(known) != len(keys) {
			t.Fatalf("%d keys of %d, %v", len(keys), len(known), err)
		}
		if again, ok := canonical(set); !ok || !bytes.Equal(again, set) {
			t.Fatalf("%s, then %s", set, again)
		}
		var reversed struct {
			Keys []json.RawMessage `json:"keys"`
		}
		if err := json.Unmarshal(set, &reversed); err != nil {
			t.Fatal(err)
		}
		for i, j := 0, len(reversed.Keys)-1; i < j; i, j = i+1, j-1 {
			reversed.Keys[i], reversed.Keys[j] = reversed.Keys[j], reversed.Keys[i]
		}
		other, err := json.MarshalIndent(reversed, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if again, ok := canonical(other); !ok || !bytes.Equal(again, set) {
			t.Fatalf("%s, in another order %s", set, again)
		}
	})
}
