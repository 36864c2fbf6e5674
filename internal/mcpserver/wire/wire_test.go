// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDecodeMessage(t *testing.T) {
	tests := []struct {
		name, in string
		want     string // method, or the error's text
	}{
		{"request", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","_meta":{"x":1}}}`, "tools/call"},
		{"notification", ` {"jsonrpc":"2.0","method":"notifications/initialized"} `, "notifications/initialized"},
		{"null params", `{"jsonrpc":"2.0","id":"a","method":"ping","params":null}`, "ping"},
		{"escaped key and method", `{"jsonrpc":"2.0","id":1,"\u006dethod":"pi\u006eg"}`, "ping"},
		{"empty", ``, "the message cannot be read: not valid JSON"},
		{"trailing", `{"jsonrpc":"2.0","id":1,"method":"ping"} x`, "the message cannot be read: not valid JSON"},
		{"doubled key", `{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}`, "the message cannot be read: an object has a key twice"},
		{"doubled key by escape", `{"jsonrpc":"2.0","id":1,"method":"ping","\u006dethod":"x"}`, "the message cannot be read: an object has a key twice"},
		{"other case is another key", `{"jsonrpc":"2.0","id":1,"Method":"ping"}`, "method must be a string"},
		{"null id", `{"jsonrpc":"2.0","id":null,"method":"ping"}`, "id must be a string or a number of at most 256 bytes"},
		{"object id", `{"jsonrpc":"2.0","id":{},"method":"ping"}`, "id must be a string or a number of at most 256 bytes"},
		{"version", `{"jsonrpc":"1.0","id":1,"method":"ping"}`, `jsonrpc must be "2.0"`},
		{"list params", `{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}`, "params must be an object"},
		{"text meta", `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":""}}`, "params._meta must be an object"},
		{"batch", `[]`, "batches belong to revision 2025-03-26: send one message per request"},
		{"deep", `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}}`, "the message cannot be read: nested too deeply"},
		{"bad UTF-8", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", "the message cannot be read: text that is not UTF-8"},
		{"byte order mark", "\ufeff{}", "the message cannot be read: not valid JSON"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var m Message
			var got string
			if err := DecodeMessage([]byte(tt.in), &m); err != nil {
				got = err.Message
			} else {
				got = m.Method
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDecode(t *testing.T) {
	got, err := Decode([]byte(`{"a":[1,-2,1.5,1e2,18446744073709551615,9007199254740993],"b":"x\u00e9\ud83d\ude00\ud800\n","c":null,"d":{"e":true}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"a": []any{int64(1), int64(-2), 1.5, 100.0, uint64(18446744073709551615), int64(9007199254740993)},
		"b": "xé😀\uFFFD\n", "c": nil, "d": map[string]any{"e": true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, bad := range []string{"01", "1.", "-", "1e", "+1", "1e999", `"\x"`, `"\u12"`, "\"\n\"", "[1,]", "{,}", "tru", `{"a":1,"a":2}`, "NaN"} {
		if v, err := Decode([]byte(bad)); err == nil {
			t.Errorf("%s: accepted as %v", bad, v)
		}
	}
}

func TestAppendString(t *testing.T) {
	for _, text := range []string{"", "plain", "é漢😀", "\x00\x1f\"\\\n\r\t\x7f", "a\xffb\xc3", "</script>\u2028"} {
		var back string
		out := AppendString(nil, text)
		if err := json.Unmarshal(out, &back); err != nil {
			t.Fatalf("%q: %v", out, err)
		}
		if want := strings.ToValidUTF8(text, "\uFFFD"); back != want && text != "a\xffb\xc3" {
			t.Errorf("got %q, want %q", back, want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"a":[1,2.5e3,null,"\ud83d\ude00"]}}}`, `[1`, `"\u`, `{"a":{}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var m Message
		_ = DecodeMessage(data, &m)
		_, _ = DecodeBatch(data)
		value, err := Decode(data)
		if (err == nil) != Valid(data) && !errors.Is(err, errDuplicate) && !errors.Is(err, errNumber) {
			t.Fatalf("Decode says %v, Valid %v", err, Valid(data))
		}
		if err != nil {
			return
		}
		// Whatever is accepted here, encoding/json reads alike.
		if !json.Valid(data) {
			t.Fatalf("accepted %q, which is not JSON", data)
		}
		var theirs any
		if err := json.Unmarshal(data, &theirs); err != nil {
			t.Fatal(err)
		}
		ours, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		var back any
		if err := json.Unmarshal(ours, &back); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(theirs, back); diff != "" {
			t.Fatal(diff)
		}
	})
}

func FuzzAppendString(f *testing.F) {
	f.Add("a\xff\"")
	f.Fuzz(func(t *testing.T, text string) {
		out := AppendString(nil, text)
		if !json.Valid(out) || !Valid(out) {
			t.Fatalf("%q is not JSON", out)
		}
		theirs, _ := json.Marshal(text)
		var a, b string
		if json.Unmarshal(out, &a) != nil || json.Unmarshal(theirs, &b) != nil || a != b {
			t.Fatalf("got %q, want %q", a, b)
		}
	})
}

func BenchmarkDecodeMessage(b *testing.B) {
	data := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`)
	b.ReportAllocs()
	for b.Loop() {
		var m Message
		if err := DecodeMessage(data, &m); err != nil {
			b.Fatal(err)
		}
		if bytes.Equal(m.ID, nil) {
			b.Fatal("no id")
		}
	}
}
