// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/json"
	"testing"
)

// FuzzMessage: the members of a message that is taken are those that another
// reader finds, byte by byte, and every refusal can be sent as an answer.
func FuzzMessage(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","_meta":{"a":{}},"arguments":{"a":[1]}}}`,
		`{"jsonrpc":"2.0","id":"\u0031","result":{}}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":""}}`, `[{"jsonrpc":"2.0","method":"a"},1,[]]`,
		`{"jsonrpc":"2.0","i\u0064":1,"method":"x","params":null}`, ` { "jsonrpc" : "2.0" , "method" : "x" , "params" : { } } `, `{"jsonrpc":"2.0","id":-,"method":"x"}`, `[`, `[]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var m Message
		if refusal := DecodeMessage(data, &m); refusal != nil {
			answers(t, AppendError(nil, m.ID, refusal))
		} else {
			sameMembers(t, data, &m)
		}
		batch, refusal := DecodeBatch(data)
		if refusal != nil {
			answers(t, AppendError(nil, nil, refusal))
			return
		}
		var theirs []json.RawMessage
		if err := json.Unmarshal(data, &theirs); err != nil || len(theirs) != len(batch) || len(batch) == 0 || len(batch) > MaxBatch || !IsBatch(data) {
			t.Fatalf("a batch of %d, others see %d, %v", len(batch), len(theirs), err)
		}
		for i := range batch {
			if !bytes.Equal(batch[i], theirs[i]) {
				t.Fatalf("element %d is %q, others see %q", i, batch[i], theirs[i])
			}
		}
	})
}

func answers(t *testing.T, answer []byte) {
	t.Helper()
	var m struct {
		Version string `json:"jsonrpc"`
		Error   *struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if err := json.Unmarshal(answer, &m); err != nil || m.Version != "2.0" || m.Error == nil || m.Error.Code == 0 || m.Error.Message == "" {
		t.Fatalf("the answer %q", answer)
	}
}

func sameMembers(t *testing.T, data []byte, m *Message) {
	t.Helper()
	var theirs, params, meta map[string]json.RawMessage
	if err := json.Unmarshal(data, &theirs); err != nil {
		t.Fatalf("%q is taken, and others say %v", data, err)
	}
	equal := func(name string, ours, want []byte) {
		t.Helper()
		if !bytes.Equal(ours, want) {
			t.Fatalf("%s is %q, others see %q", name, ours, want)
		}
	}
	equal("id", m.ID, theirs["id"])
	if m.IsResponse {
		equal("result", m.Result, theirs["result"])
		equal("error", m.Error, theirs["error"])
		return
	}
	var method string
	if err := json.Unmarshal(theirs["method"], &method); err != nil || method != m.Method || len(method) > maxMethod {
		t.Fatalf("the method %q, others see %q", m.Method, theirs["method"])
	}
	if json.Unmarshal(theirs["params"], &params) != nil || params == nil {
		if m.Params != nil {
			t.Fatalf("params %v out of nothing", m.Params)
		}
		return
	}
	members(t, m.Params, params)
	if json.Unmarshal(params["_meta"], &meta) == nil && meta != nil {
		members(t, m.Meta, meta)
	}
	if m.ID != nil {
		answer := AppendResult(nil, m.ID, []byte("{}"))
		if !json.Valid(answer) || !Valid(answer) {
			t.Fatalf("the answer %q", answer)
		}
	}
}

func members(t *testing.T, ours Object, theirs map[string]json.RawMessage) {
	t.Helper()
	if len(ours) != len(theirs) {
		t.Fatalf("%d members, others see %d", len(ours), len(theirs))
	}
	for key, raw := range theirs {
		if !bytes.Equal(ours.Get(key), raw) {
			t.Fatalf("%q is %q, others see %q", key, ours.Get(key), raw)
		}
		var text string
		isText := len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &text) == nil
		if got, ok := ours.Text(key); ok != isText || got != text {
			t.Fatalf("%q is the text %q, others see %q", key, got, text)
		}
	}
}

// FuzzOneLine: a valid value says the same on one line.
func FuzzOneLine(f *testing.F) {
	f.Add([]byte("{\n \"a\": [1,\r\n2]}"))
	f.Add([]byte("\"\u2028\""))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !Valid(raw) {
			return
		}
		line := OneLine(raw)
		if bytes.ContainsAny(line, "\r\n") || len(line) > len(raw) {
			t.Fatalf("%q becomes %q", raw, line)
		}
		var a, b bytes.Buffer
		if json.Compact(&a, raw) != nil || json.Compact(&b, line) != nil || !bytes.Equal(a.Bytes(), b.Bytes()) {
			t.Fatalf("%q becomes %q", raw, line)
		}
	})
}
