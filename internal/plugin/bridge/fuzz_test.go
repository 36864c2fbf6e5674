// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"bytes"
	"encoding/json"
	"testing"
)

// FuzzParse: whatever a server sends, what reaches the client is one line that
// holds one JSON value, the same as was sent.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"result":{}}`))
	f.Add([]byte("[{\"jsonrpc\":\"2.0\",\r\n\"method\":\"x\"}, {\"jsonrpc\":\"2.0\",\"id\":\"a\\u0062\",\"error\":{\"code\":1e2}}]"))
	f.Add([]byte("{\"jsonrpc\":\"2.0\",\"method\":\"\u2028\"}"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		p, ok := parse(raw)
		if !ok {
			return
		}
		var want, got bytes.Buffer
		if bytes.ContainsAny(p.raw, "\r\n") || json.Compact(&got, p.raw) != nil || json.Compact(&want, raw) != nil || !bytes.Equal(got.Bytes(), want.Bytes()) {
			t.Fatalf("%q became %q", raw, p.raw)
		}
		for i := range p.parts {
			_ = p.parts[i].code()
			_ = subscription(&p.parts[i])
		}
	})
}

// FuzzRead: what the client sends goes on as it is, but for the space around.
func FuzzRead(f *testing.F) {
	f.Add([]byte(` {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","_meta":{}}}` + "\r\n"))
	f.Add([]byte(`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"result":{}}]`))
	f.Fuzz(func(t *testing.T, line []byte) {
		m, invalid := read(line)
		if invalid != nil {
			return
		}
		if !bytes.Equal(m.raw, bytes.TrimSpace(line)) || !json.Valid(m.raw) || bytes.ContainsAny(m.raw, "\n") != bytes.ContainsAny(bytes.TrimSpace(line), "\n") {
			t.Fatalf("%q became %q", line, m.raw)
		}
		if m.isRequest() == m.answered() {
			t.Fatalf("%q: a request has ids that are not answered, and nothing else has", line)
		}
	})
}
