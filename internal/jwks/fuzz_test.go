// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package jwks

import (
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
