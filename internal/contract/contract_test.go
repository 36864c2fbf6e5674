// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func mustOf(t *testing.T, raw string) Tool {
	t.Helper()
	tool, err := Of(json.RawMessage(raw))
	if err != nil {
		t.Fatalf("Of(%s): %v", raw, err)
	}
	return tool
}

// The digests are a public promise: people pin them in their specs. These
// were computed apart from this code, with sha256sum.
func TestOfIsStable(t *testing.T) {
	got := mustOf(t, `{"name":"alpha","inputSchema":{"type":"object"}}`)
	want := Tool{
		Name:   "alpha",
		Digest: "v1:sha256:1f4a7ef3deb3561c27f4a56e469df803e6d4ededd2562039d1695b087301e1c6",
		Fields: Fields{InputSchema: "sha256:a2c799262a3ce3c19ef5cdd983bf3d12b43ab3c426227091b909dcb7054738c0"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("digest moved (-want +got):\n%s", diff)
	}
}

func TestOfEqualMeaning(t *testing.T) {
	base := `{"name":"a","title":"T","description":"d","inputSchema":{"type":"object","maximum":10,"x":1.5},"annotations":{"readOnlyHint":true},"_meta":{"k":"v"}}`
	for name, other := range map[string]string{
		"order and spacing": "{ \"_meta\": {\"k\":\"v\"},\n\"annotations\":{\"readOnlyHint\":true},\"inputSchema\":{\"x\":1.5,\"maximum\":10,\"type\":\"object\"},\"description\":\"d\",\"title\":\"T\",\"name\":\"a\"}",
		"number notation":   strings.NewReplacer(`"maximum":10`, `"maximum":1e1`, `1.5`, `15e-1`).Replace(base),
		"string escapes":    strings.Replace(base, `"d"`, `"\u0064"`, 1),
		"icons":             strings.Replace(base, `"title"`, `"icons":[{"src":"https://x/i.png"}],"title"`, 1),
		"null is absent":    strings.Replace(base, `"title"`, `"outputSchema":null,"execution":null,"title"`, 1),
	} {
		if diff := cmp.Diff(mustOf(t, base), mustOf(t, other)); diff != "" {
			t.Errorf("%s: digests differ (-base +other):\n%s", name, diff)
		}
	}
}

func TestDiffering(t *testing.T) {
	base := `{"name":"a","title":"T","description":"d","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true},"_meta":{"k":"v"}}`
	for change, want := range map[string]string{
		`"T"|"U"`: "title", `"d"|"e"`: "description", `"type":"object"|"type":"object","a":1`: "inputSchema",
		`true|false`: "annotations", `"v"|"w"`: "other", `"title"|"outputSchema":{},"title"`: "outputSchema",
		`,"_meta":{"k":"v"}|`: "other",
	} {
		old, replacement, _ := strings.Cut(change, "|")
		a, b := mustOf(t, base), mustOf(t, strings.Replace(base, old, replacement, 1))
		if diff := cmp.Diff([]string{want}, Differing(a.Fields, b.Fields)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", change, diff)
		}
		if a.Digest == b.Digest {
			t.Errorf("%s: digest of the whole did not move", change)
		}
	}
	a, b := mustOf(t, base), mustOf(t, strings.Replace(base, `"a"`, `"b"`, 1))
	if a.Digest == b.Digest || len(Differing(a.Fields, b.Fields)) != 0 {
		t.Error("a name belongs to the digest of the whole and to no field")
	}
}

func TestOfRefuses(t *testing.T) {
	for raw, want := range map[string]error{
		``: ErrMalformed, `null`: ErrMalformed, `[]`: ErrMalformed, `"x"`: ErrMalformed, `{}`: ErrMalformed,
		`{"name":null}`: ErrMalformed, `{"name":1}`: ErrMalformed, `{"name":"a","name":"b"}`: ErrMalformed,
		`{"name":"a","x":1e400}`: ErrMalformed, `{"name":"\ud800"}`: ErrMalformed, "{\"name\":\"\xff\"}": ErrMalformed,
		`{"name":"a"`: ErrMalformed, `{"name":"a"}}`: ErrMalformed,
		`{"name":"a","x":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}`: ErrMalformed,
		`{"name":"` + strings.Repeat("a", MaxBytes) + `"}`:                                 ErrTooLarge,
	} {
		if _, err := Of(json.RawMessage(raw)); !errors.Is(err, want) {
			t.Errorf("Of(%.40q) = %v, want %v", raw, err, want)
		}
	}
	secret := `{"name":"a","hunter2":1e400}`
	if _, err := Of(json.RawMessage(secret)); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("error %v quotes the definition", err)
	}
}

func TestOfText(t *testing.T) {
	if OfText("") != "" || OfText("a") == OfText("b") || !strings.HasPrefix(OfText("a"), "v1:sha256:") {
		t.Error("OfText: empty for empty, distinct, prefixed")
	}
}

func FuzzOf(f *testing.F) {
	f.Add([]byte(`{"name":"a","inputSchema":{"type":"object"}}`))
	f.Add([]byte(`{"name":"\u202e","x":[1,2.50,{"y":null}],"_meta":{}}`))
	f.Add([]byte(`{"name":"a","name":"b"}`))
	f.Add([]byte(`{"title":"t","name":"a","outputSchema":null,"description":"\ud83d\ude00","icons":[1]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		a, err := Of(raw)
		if err != nil {
			if len(err.Error()) > 200 {
				t.Fatalf("an error of %d bytes", len(err.Error()))
			}
			return
		}
		if !strings.HasPrefix(a.Digest, Version+":sha256:") || len(a.Digest) != len(Version)+len(":sha256:")+64 {
			t.Fatalf("the digest %q", a.Digest)
		}
		// However it is written, it is the same tool.
		var members map[string]json.RawMessage
		if err := json.Unmarshal(raw, &members); err != nil {
			t.Fatalf("it has a digest, and others say %v", err)
		}
		indented, err := json.MarshalIndent(members, "", "\t")
		if err != nil {
			t.Fatal(err)
		}
		for _, other := range [][]byte{append([]byte(" "), raw...), indented} {
			if b, err := Of(other); err != nil || a != b {
				t.Fatalf("%q is %v, %q is %v, %v", raw, a, other, b, err)
			}
		}
		// One more member is another tool, and only Other tells of it.
		if _, taken := members["x-added"]; taken {
			return
		}
		members["x-added"] = json.RawMessage(`"fuzz"`)
		changed, err := json.Marshal(members)
		if err != nil || len(changed) > MaxBytes {
			return
		}
		if c, err := Of(changed); err != nil || c.Digest == a.Digest || !slices.Equal(Differing(a.Fields, c.Fields), []string{"other"}) {
			t.Fatalf("%q is %v, with a member more %v, %v", raw, a, c, err)
		}
	})
}
