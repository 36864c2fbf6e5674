// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
	"github.com/espalier-dev/espalier/internal/sse"
)

// What an upstream says is taken apart here. The tests hold each of the
// decoders to what another reader finds, and what it makes to its bounds.

func FuzzIncoming(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":7,"result":{}}`, `{"jsonrpc":"2.0","id":"7","error":{"code":-32601,"message":"no","data":[1]}}`, `[{"jsonrpc":"2.0","id":7,"result":1},{"jsonrpc":"2.0","method":"x"}]`,
		`{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}`, `{"jsonrpc":"2.0","id":null,"method":"sampling/createMessage"}`, `{"jsonrpc":"2.0","id":7,"error":null}`, `{"jsonrpc":"2.0","id":7.0,"result":{}}`, "\ufeff{}", `{"id":7,"result":{}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		all := parseAll(data)
		if len(all) > wire.MaxBatch {
			t.Fatalf("%d messages", len(all))
		}
		for i := range all {
			m := &all[i]
			if m.isRequest() && (m.isNotification() || m.answers(7)) || m.isNotification() && m.answers(7) {
				t.Fatalf("%q is two things", data)
			}
			if m.isRequest() {
				if reply := m.reply(); !json.Valid(reply) || len(reply) > len(m.id)+200 {
					t.Fatalf("the reply %q", reply)
				}
			}
			if !m.answers(7) {
				continue
			}
			var id json.Number
			if err := json.Unmarshal(m.id, &id); err != nil || id.String() != "7" {
				t.Fatalf("%q answers 7", m.id)
			}
			result, err := m.outcome(http.StatusOK)
			var known *Error
			var rpc *RPCError
			switch {
			case err == nil && !json.Valid(result), err == nil && result[0] != '{':
				t.Fatalf("the result %q", result)
			case err != nil && !errors.As(err, &known) && !errors.As(err, &rpc):
				t.Fatalf("%T: %v", err, err)
			case rpc != nil && rpc.Data != nil && !json.Valid(rpc.Data):
				t.Fatalf("the data %q", rpc.Data)
			case err != nil && len(err.Error()) > 60:
				t.Fatalf("it says %q", err)
			}
		}
	})
}

func FuzzLines(f *testing.F) {
	f.Add([]byte("{}\nnoise\n{\"id\":12}"), int64(100))
	f.Add([]byte(`{"id":7,"result":"`+strings.Repeat("x", 2000)+"\"}\n{}\n"), int64(1000))
	f.Add([]byte(`{"result":"`+strings.Repeat("x", 70000)+`","id": "8"}`), int64(100))
	f.Add([]byte("\n\n\r\n"), int64(1))
	f.Fuzz(func(t *testing.T, stream []byte, limit int64) {
		limit = min(max(limit, 1), 1<<20)
		lines := bytes.SplitAfter(stream, []byte("\n"))
		if len(lines[len(lines)-1]) == 0 {
			lines = lines[:len(lines)-1]
		}
		for name, in := range map[string]io.Reader{"at once": bytes.NewReader(stream), "byte by byte": iotest.OneByteReader(bytes.NewReader(stream))} {
			r := &lineReader{r: bufio.NewReaderSize(in, 64<<10), limit: limit}
			for i, want := range lines {
				got, err := r.next()
				var large *largeLineError
				switch {
				case int64(len(want)) <= limit:
					if err != nil || !bytes.Equal(got, want) {
						t.Fatalf("%s: line %d is %q, %v; want %q", name, i, got, err, want)
					}
				case !errors.As(err, &large):
					t.Fatalf("%s: line %d of %d bytes: %q, %v", name, i, len(want), got, err)
				case !bytes.HasPrefix(want, large.head) || !bytes.HasSuffix(want, large.tail) || len(large.head) > keptEnds || len(large.tail) > keptEnds:
					t.Fatalf("%s: of line %d are kept %q and %q", name, i, large.head, large.tail)
				case len(large.ids()) > 2:
					t.Fatalf("%s: it may be of %v", name, large.ids())
				}
			}
			if got, err := r.next(); !errors.Is(err, io.EOF) {
				t.Fatalf("%s: after the end %q, %v", name, got, err)
			}
		}
	})
}

func FuzzHandshake(f *testing.F) {
	for _, seed := range []string{
		`{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true}},"ttlMs":5000,"cacheScope":"private"}`,
		`{"protocolVersion":"2025-06-18","capabilities":{}}`, `{"supportedVersions":[1,null],"ttlMs":-1}`, `{"supportedVersions":["2026-07-28"],"ttlMs":1e300}`, `{"ttlMs":"5","capabilities":[]}`, `[]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		s := &Session{options: &Options{}}
		offered, err := s.discovered(raw)
		if err == nil {
			if !s.revision.modern || s.revision.version != mcp.ModernVersions[0] || len(offered) == 0 {
				t.Fatalf("agreed on %+v of %q", s.revision, offered)
			}
			if s.ttl != nil && (*s.ttl < 0 || *s.ttl > time.Hour) {
				t.Fatalf("ttl %s", *s.ttl)
			}
		} else if s.revision != (revision{}) {
			t.Fatalf("%v, and %+v", err, s.revision)
		}
		if v := newestLegacy(offered); v != "" && !mcp.IsLegacy(v) {
			t.Fatalf("%q is legacy", v)
		}
		object, err := wire.DecodeObject(raw)
		if err != nil {
			return
		}
		s.declared(object.Get("capabilities"))
		a := s.abilities
		if a.ToolsChanged && !a.Tools || a.PromptsChanged && !a.Prompts || a.ResourcesChanged && !a.Resources || a.Subscribe && !a.Resources {
			t.Fatalf("%q declares %+v", object.Get("capabilities"), a)
		}
	})
}

func FuzzPage(f *testing.F) {
	for _, seed := range []string{
		`{"tools":[{"name":"a"},{"name":"a"},null,1,{"name":""},{"name":1},{"uri":"x"}],"nextCursor":"c","ttlMs":1}`, `{"tools":{}}`, `{"tools":[]}`, `{"tools":[{"name":"\ud800"}],"cacheScope":1}`, `{"tools":[{"name":"a","name":"b"}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		page, err := wire.DecodeObject(raw)
		if err != nil {
			return
		}
		entries, ok := elements(page.Get("tools"))
		var theirs []json.RawMessage
		if isList := json.Unmarshal(page.Get("tools"), &theirs) == nil && theirs != nil; isList != ok || len(theirs) != len(entries) {
			t.Fatalf("%d entries, others see %d", len(entries), len(theirs))
		}
		for _, one := range entries {
			entry, ok := entryOf(one, "name")
			if !ok {
				continue
			}
			var definition map[string]any
			if err := json.Unmarshal(entry.Definition, &definition); err != nil || definition["name"] != any(entry.Name) || entry.ID != entry.Name {
				t.Fatalf("%q is %q, %q; others see %v, %v", one, entry.ID, entry.Name, definition["name"], err)
			}
		}
		lists := &Lists{}
		lists.limit(page)
		if lists.TTL != nil && (*lists.TTL < 0 || *lists.TTL > time.Hour) {
			t.Fatalf("ttl %s", *lists.TTL)
		}
	})
}

// FuzzEndpoint: the first event of HTTP with SSE leads nowhere but to the
// origin that was asked.
func FuzzEndpoint(f *testing.F) {
	for _, seed := range []string{
		"/messages?sessionId=1", "http://host.example.com:8080/x", "http://HOST.example.com:8080", "//evil.example.com/", "https://host.example.com:8080/", "http://u@host.example.com:8080/", "\\evil.example.com", "javascript:x", "?", "\r\nevent: x",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data string) {
		const origin = "http://host.example.com:8080/sse"
		c := newSSE(&Options{URL: origin, HTTP: &http.Client{}}, func(incoming) {}, nil)
		defer c.abort()
		err := c.first(sse.NewReader(strings.NewReader("event: endpoint\ndata: " + data + "\n\n")))
		target, parseErr := url.Parse(c.posts)
		if parseErr != nil || target.Scheme != "http" || !strings.EqualFold(target.Host, "host.example.com:8080") || target.User != nil {
			t.Fatalf("%q leads to %q (%v, %v)", data, c.posts, err, parseErr)
		}
		if err != nil && c.posts != origin {
			t.Fatalf("%v, and %q", err, c.posts)
		}
	})
}

// FuzzHeaders: no header of an answer makes a session id that cannot stand in
// a header again, and content types are read as the standard library does.
func FuzzHeaders(f *testing.F) {
	f.Add("abc", "application/json")
	f.Add("a b", "Text/Event-Stream; charset=\"")
	f.Add(strings.Repeat("x", maxSession+1), "")
	f.Add("\x00\u00e4", ";")
	f.Fuzz(func(t *testing.T, id, contentType string) {
		c := newHTTP(&Options{URL: "http://h/", HTTP: &http.Client{}}, func(incoming) {}, nil)
		defer c.abort()
		c.open(http.Header{mcp.HeaderSessionID: {id}})
		if _, got := c.state(); got != "" {
			if got != id || len(got) > maxSession || strconv.QuoteToASCII(got) != strconv.Quote(got) || strings.ContainsAny(got, " \t\r\n") {
				t.Fatalf("the session is %q", got)
			}
		}
		kind := MediaType(http.Header{"Content-Type": {contentType}})
		if kind != strings.ToLower(kind) || strings.ContainsAny(kind, "; \r\n") || !strings.Contains(strings.ToLower(contentType), kind) {
			t.Fatalf("%q is %q", contentType, kind)
		}
	})
}
