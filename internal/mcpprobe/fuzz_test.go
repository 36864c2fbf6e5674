// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpprobe

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/sse"
)

// One fuzz test for each decoder of foreign bytes. What must hold: no panic,
// bounds kept, nothing unprintable let through, and the same answer as
// encoding/json where that has one.

func FuzzWalk(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"a":1,"b":[1,{"c":"}"}],"a":null}`, `[1, "x\"]" ,{"y":[]}]`, `{"\u0061":"\ud83d\ude00"}`, ` [ ] `, `{"":{}}`, `"x"`, `{"a" : -1.5e3 , "b":true}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if !json.Valid(data) {
			return
		}
		var object map[string]json.RawMessage
		if json.Unmarshal(data, &object) == nil && object != nil {
			got := map[string][]byte{}
			if !walkObject(data, func(k string, v []byte) bool { got[k] = v; return true }) {
				t.Fatal("no object")
			}
			if len(got) != len(object) {
				t.Fatalf("%d members, want %d", len(got), len(object))
			}
			for key, value := range object {
				if !bytes.Equal(bytes.TrimSpace(value), got[key]) {
					t.Errorf("%q: %q, want %q", key, got[key], value)
				}
			}
		}
		var array []json.RawMessage
		if json.Unmarshal(data, &array) == nil && array != nil {
			var got [][]byte
			if !walkArray(data, func(v []byte) bool { got = append(got, v); return true }) {
				t.Fatal("no array")
			}
			if len(got) != len(array) {
				t.Fatalf("%d elements, want %d", len(got), len(array))
			}
			for i := range array {
				if !bytes.Equal(bytes.TrimSpace(array[i]), got[i]) {
					t.Errorf("element %d: %q, want %q", i, got[i], array[i])
				}
			}
		}
	})
}

func FuzzEvents(f *testing.F) {
	for _, seed := range []string{
		"data: seed\n\n", "id: 1\ndata\n\ndata: y\r\n\r\n", ": c\n\ndata: one\ndata: two\n\n", "\xef\xbb\xbfevent: ping\rdata: {}\r\r", "data: cut", "\n\n\n", ":\n", "retry: 1\nx:y\n\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		const limit = 1 << 16
		one := collect(t, bytes.NewReader(data), limit)
		// However the bytes arrive, the events are the same.
		if two := collect(t, dribble{bytes.NewReader(data)}, limit); two != one {
			t.Errorf("%q byte by byte, %q at once", two, one)
		}
		// As are they with other line ends.
		if !bytes.ContainsRune(data, '\r') {
			crlf := bytes.ReplaceAll(data, []byte("\n"), []byte("\r\n"))
			if three := collect(t, bytes.NewReader(crlf), 2*limit); len(data) < limit && three != one {
				t.Errorf("%q with CRLF, %q with LF", three, one)
			}
		}
	})
}

func collect(t *testing.T, r io.Reader, limit int64) string {
	events := sse.NewReader(&boundReader{ctx: t.Context(), r: r, left: limit, limit: limit})
	var all strings.Builder
	for {
		ev, err := events.Next()
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.As(err, new(tooLargeError)) {
				t.Errorf("error %v", err)
			}
			return all.String()
		}
		if len(ev.Data) == 0 || int64(all.Len()) > 2*limit {
			t.Errorf("event %+v, %d bytes in all", ev, all.Len())
		}
		all.WriteString(ev.Kind + "|" + string(ev.Data) + "\n")
	}
}

// dribble gives one byte at a time.
type dribble struct{ r io.Reader }

// Read is io.Reader's.
func (d dribble) Read(p []byte) (int, error) { return d.r.Read(p[:min(1, len(p))]) }

func FuzzMessages(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"result":{}}`, `[{"jsonrpc":"2.0","id":"x","method":"ping"},1]`,
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32022,"message":"2025-06-18","data":{"supported":["2024-11-05"]}}}`,
		"\xef\xbb\xbf{}", `{"jsonrpc":"2.0","id":1e0,"error":1}`, `null`, ``, `{"jsonrpc":"2.0","method":"x","id":[]}`,
		`{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		messages, _ := parseMessages(data)
		if len(messages) > maxBatch {
			t.Errorf("%d messages", len(messages))
		}
		for _, m := range messages {
			if m.err != nil {
				e := parseRPCError(m.err)
				if len(e.versions) > maxOffered {
					t.Errorf("%d versions", len(e.versions))
				}
				for _, v := range e.versions {
					if !mcp.WellFormedVersion(v) {
						t.Errorf("version %q", v)
					}
				}
			}
			if r, ok := replyTo(m); ok && m.isRequest() {
				if encoded, err := json.Marshal(r); err != nil || len(encoded) > 512 {
					t.Errorf("reply %s, %v", encoded, err)
				}
			}
		}
	})
}

func FuzzChallenge(f *testing.F) {
	for _, seed := range []string{
		`Bearer`, `Bearer resource_metadata="https://x/.well-known/y", scope="a b"`, `Basic realm="Bearer x"`, `Digest a="\"", Bearer`, `bearer=1`, `"`, `Basic realm="a`, `,, ,`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		c := parseChallenge(http.Header{"Www-Authenticate": {value}})
		lower := strings.ToLower(value)
		if c.bearer && !strings.Contains(lower, "bearer") || c.metadata && !strings.Contains(lower, "resource_metadata") {
			t.Errorf("%q gives %+v", value, c)
		}
	})
}

func FuzzReport(f *testing.F) {
	f.Add([]byte(`{"version":1,"catalogState":"Loaded","catalogDigest":"sha256:` + strings.Repeat("0", 64) + `"}`))
	f.Add([]byte(`{"version":1,"catalogState":"Invalid","missing":["\u202e"],"credentials":[{"path":"secrets/a/b","present":true,"loadedAt":"2026-11-30T00:00:00Z"}],"notServed":[{"kind":"tool","name":"x\n","reason":"R"}]}`))
	f.Add([]byte(`{"version":1,"catalogState":"Loaded","upstreams":[{"name":"\u001b","state":"x y","phase":"\n","message":"\u202e","child":{"state":"?","signal":"a b"},"skippedNames":[{"name":"\u0000","reason":""}]}],"drift":[{"name":"\t","parts":["\r"],"digest":"v1:x"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		report, err := decodeReport(data)
		if err != nil {
			return
		}
		everyText(t, reflect.ValueOf(report))
	})
}

func FuzzToolList(f *testing.F) {
	for _, seed := range []string{
		`{"tools":[{"name":"a","inputSchema":{}},{"name":"a"}]}`, `{"tools":[null,1,{"name":"\u0000"},{"name":""}]}`, `{"tools":null}`, `{"tools":{}}`, `{"tools":[],"nextCursor":"x"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if !json.Valid(data) {
			return
		}
		var warned warnings
		w := &lister{exchange: &exchange{bounds: DefaultBounds()}, warnings: &warned}
		set := newToolSet(&warned, nil)
		walk := &walk{lister: w, listing: toolsListing, visit: set.add}
		_ = walk.take(data)
		tools := set.sorted()
		for i, tool := range tools {
			printable(t, tool.Name)
			if i > 0 && tools[i-1].Name >= tool.Name {
				t.Errorf("%q after %q", tool.Name, tools[i-1].Name)
			}
		}
		told, _ := warned.sorted()
		for _, warning := range told {
			printable(t, warning.Name)
		}
	})
}

func FuzzHandshake(f *testing.F) {
	f.Add([]byte(`{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"a","version":"1"},"ttlMs":1}`))
	f.Add([]byte(`{"supportedVersions":["2026-07-28"],"capabilities":{},"_meta":{"mcp.espalier.dev/catalog-digest":"x"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if !json.Valid(data) {
			return
		}
		var h handshake
		h.fill(data, []string{"secret"})
		printable(t, append(h.capabilities, h.server.Name, h.server.Version, h.catalogDigest)...)
		if len(h.capabilities) > maxCapabilities {
			t.Errorf("%d capabilities", len(h.capabilities))
		}
	})
}

func FuzzEscape(f *testing.F) {
	f.Add("a")
	f.Add("\u202e\xff\n\\")
	f.Fuzz(func(t *testing.T, s string) {
		printable(t, EscapeName(s), words(s, nil))
		if len(EscapeName(s)) > MaxNameBytes {
			t.Errorf("%d bytes", len(EscapeName(s)))
		}
	})
}

// printable fails on what may not stand in a status.
func printable(t *testing.T, all ...string) {
	t.Helper()
	for _, s := range all {
		if !utf8.ValidString(s) || strings.ContainsAny(s, "\n\r\t\x00\x1b\u202e\u2028") {
			t.Errorf("%q is not printable", s)
		}
	}
}
