// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package jwks

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/go-jose/go-jose/v4"
)

const publicKeys = `{"keys":[` +
	`{"kty":"OKP","crv":"Ed25519","kid":"ed","use":"sig","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"},` +
	`{"kty":"EC","crv":"P-256","kid":"ec","alg":"ES256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}]}`

// FuzzParse: of whatever set, only public keys of accepted algorithms come
// out, no more than may be looked at, and writing them makes the same set.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		publicKeys, `{"keys":[]}`, `{"keys":null}`, `[]`, `{"keys":[1,null,{"kty":"oct","k":"c2VjcmV0"}]}`,
		`{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo","d":"nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A"}]}`,
		`{"keys":[{"kty":"RSA","n":"AQAB","e":"AQAB"}]}`, `{"keys":[{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}]}`, `{"keys":[{"kty":"RSA","n":"","e":""}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		keys, err := Parse(raw)
		if err != nil {
			if keys != nil {
				t.Fatal("keys and an error")
			}
			return
		}
		if len(keys) == 0 || len(keys) > MaxKeys {
			t.Fatalf("%d keys and no error", len(keys))
		}
		for _, key := range keys {
			if !key.IsPublic() || !key.Valid() {
				t.Fatalf("a key that is private or unsound: %+v", key)
			}
		}
		again, err := json.Marshal(jose.JSONWebKeySet{Keys: keys})
		if err != nil {
			t.Fatal(err)
		}
		if same, err := Parse(again); err != nil || len(same) != len(keys) {
			t.Fatalf("%d keys, then %d: %v", len(keys), len(same), err)
		}
		if picked := Pick(keys, "", "RS256"); len(picked) > len(keys) {
			t.Fatalf("%d of %d keys", len(picked), len(keys))
		}
	})
}

// FuzzCanonical: what is taken is a key set still, says the same when it is
// written in another order, and is its own canonical form.
func FuzzCanonical(f *testing.F) {
	const one = `{"kty":"OKP","crv":"Ed25519","kid":"a","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}`
	const two = `{"kid":"b","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo","crv":"Ed25519","kty":"OKP","n":1e3}`
	for _, seed := range []string{`{"keys":[` + one + `,` + two + `]}`, `{"keys":[` + two + `,null]}`, `{"keys":[` + one + `,1]}`, `{"Keys":[` + one + `]}`, `null`} {
		f.Add([]byte(seed))
	}
	f.Add([]byte(`{"keys":[` + string(bytes.Repeat([]byte(`{"kty":"x"},`), MaxKeys-1)) + one + `,` + one + `]}`))
	f.Add([]byte(`{"keys":[` + one + string(bytes.Repeat([]byte(`,{"a":1,"kty":"x"}`), MaxKeys)) + `]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		set, ok := Canonical(raw)
		if !ok {
			return
		}
		keys, err := Parse(set)
		if err != nil {
			t.Fatalf("%s is no key set: %v", set, err)
		}
		if known, err := Parse(raw); err != nil || len(known) != len(keys) {
			t.Fatalf("%d keys of %d, %v", len(keys), len(known), err)
		}
		if again, ok := Canonical(set); !ok || !bytes.Equal(again, set) {
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
		if again, ok := Canonical(other); !ok || !bytes.Equal(again, set) {
			t.Fatalf("%s, in another order %s", set, again)
		}
	})
}
