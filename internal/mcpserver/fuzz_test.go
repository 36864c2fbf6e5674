// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/mcpserver"
	"github.com/espalier-dev/espalier/internal/mcpserver/memory"
	"github.com/espalier-dev/espalier/internal/mcpserver/metrics"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// The whole server against whatever a client may send.

// fuzzedServer serves one of each kind.
func fuzzedServer(f *testing.F) (*fixture, *memory.Transport) {
	f.Helper()
	mem := memory.New(metrics.New("test"), slog.New(slog.DiscardHandler))
	server := start(f, kinds(func(c *serverconfig.Config) {
		c.Tools = append(c.Tools, tool("echo", func(t *serverconfig.Tool) {
			t.Expression = &serverconfig.Result{Structured: "args"}
			t.Definition = json.RawMessage(`{"name":"echo","inputSchema":{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"},"n":{"type":"number"}}}}`)
		}))
	}), func(o *mcpserver.Options) {
		o.Log = slog.New(slog.DiscardHandler)
		o.Transports = append(o.Transports, mem)
	})
	return server, mem
}

var fuzzedMessages = []string{
	`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{` + modernMeta + `}}`,
	`{"jsonrpc":"2.0","id":"a","method":"tools/list","params":{"cursor":"bzo",` + modernMeta + `}}`,
	`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"a":"x","n":1e3},` + modernMeta + `}}`,
	`{"jsonrpc":"2.0","id":3,"method":"resources/read","params":{"uri":"x:t/%2f",` + modernMeta + `}}`,
	`{"jsonrpc":"2.0","id":3,"method":"resources/templates/list","params":{` + modernMeta + `}}`,
	`{"jsonrpc":"2.0","id":4,"method":"prompts/get","params":{"name":"p","arguments":{"a":1},` + modernMeta + `}}`,
	`{"jsonrpc":"2.0","id":5,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":""},` + modernMeta + `}}`,
	`{"jsonrpc":"2.0","id":6,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"roots":{}},"clientInfo":{"name":"f","version":"1"}}}`,
	`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
	`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`,
	`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"t"}}`,
	`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"t","inputResponses":{},"requestState":"espalier1.a.b",` + modernMeta + `}}`,
	`{"jsonrpc":"2.0","id":8,"method":"logging/setLevel","params":{"level":"debug"}}`,
	`{"jsonrpc":"2.0","id":8,"result":{}}`,
	`[{"jsonrpc":"2.0","id":9,"method":"ping"},{"jsonrpc":"2.0","id":9,"method":"tools/list"},1]`,
	`{"jsonrpc":"2.0","id":{},"method":"ping"}`, `{`, ``, `[]`, `null`,
}

// FuzzHTTP: any body with any headers is answered by one of the statuses that
// a client must expect, with JSON-RPC, to the id that was asked with.
func FuzzHTTP(f *testing.F) {
	server, _ := fuzzedServer(f)
	for _, body := range fuzzedMessages {
		var m struct {
			Method string
			Params struct{ Name, URI string }
		}
		_ = json.Unmarshal([]byte(body), &m)
		f.Add([]byte(body), "2026-07-28", m.Method, m.Params.Name+m.Params.URI, "")
		f.Add([]byte(body), "2025-03-26", "", "", "")
	}
	f.Add([]byte(fuzzedMessages[10]), "", "", "", "abcdefgh.X")
	f.Fuzz(func(t *testing.T, body []byte, version, method, name, session string) {
		r, err := http.NewRequest(http.MethodPost, server.url(), bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json"}}
		for key, value := range map[string]string{"Mcp-Protocol-Version": version, "Mcp-Method": method, "Mcp-Name": name, "Mcp-Session-Id": session} {
			if strings.ContainsFunc(value, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }) {
				return // No client can send it.
			}
			if value != "" {
				r.Header.Set(key, value)
			}
		}
		response, err := server.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		answer, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		switch response.StatusCode {
		case http.StatusOK, http.StatusBadRequest, http.StatusNotFound, http.StatusNotAcceptable, http.StatusTooManyRequests:
			checkAnswer(t, body, answer)
		case http.StatusAccepted:
			if len(answer) > 0 {
				t.Fatalf("accepted with %q", answer)
			}
		default:
			t.Fatalf("%q is answered by %d %q", body, response.StatusCode, answer)
		}
		// A session that was opened is ended: there are not many.
		if id := response.Header.Get("Mcp-Session-Id"); id != "" {
			end, err := http.NewRequest(http.MethodDelete, server.url(), nil)
			must(t, err)
			end.Header.Set("Mcp-Session-Id", id)
			ended, err := server.client.Do(end)
			must(t, err)
			must(t, ended.Body.Close())
			if ended.StatusCode != http.StatusNoContent {
				t.Fatalf("its session ends by %d", ended.StatusCode)
			}
		}
	})
}

// response is what is looked at of an answer.
type response struct {
	JSONRPC       string
	ID            json.RawMessage
	Result, Error json.RawMessage
	Method        string
}

func checkAnswer(t *testing.T, asked, answer []byte) {
	t.Helper()
	var all []response
	if json.Unmarshal(answer, &all) != nil {
		var one response
		if err := json.Unmarshal(answer, &one); err != nil {
			t.Fatalf("%q is answered by %q: %v", asked, answer, err)
		}
		all = []response{one}
		var request struct{ ID json.RawMessage }
		if json.Unmarshal(asked, &request) == nil && one.ID != nil && !bytes.Equal(one.ID, request.ID) {
			// encoding/json takes keys of any case.
			if !bytes.Contains(asked, one.ID) {
				t.Fatalf("%q is answered with the id %s", asked, one.ID)
			}
		}
	}
	for _, one := range all {
		if one.JSONRPC != "2.0" || (one.Result == nil) == (one.Error == nil) {
			t.Fatalf("%q is answered by %q", asked, answer)
		}
	}
}

// FuzzConnection: whatever messages come on one connection, it goes on, and
// all that is said on it is JSON-RPC on one line.
func FuzzConnection(f *testing.F) {
	_, mem := fuzzedServer(f)
	f.Add([]byte(strings.Join(fuzzedMessages, "\n")))
	for _, message := range fuzzedMessages {
		f.Add([]byte(message))
	}
	f.Add([]byte(fuzzedMessages[7] + "\n" + fuzzedMessages[8] + "\n" + fuzzedMessages[14]))
	f.Add([]byte(strings.ReplaceAll(fuzzedMessages[7], "2025-06-18", "2025-03-26") + "\n" + fuzzedMessages[8] + "\n" + fuzzedMessages[14]))
	f.Fuzz(func(t *testing.T, data []byte) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		conn := mem.Dial(ctx)
		if conn == nil {
			t.Fatal("no connection")
		}
		defer conn.Close()
		const last = `"the last of them"`
		done := make(chan string, 1)
		go func() {
			for {
				raw, err := conn.Read(ctx, 64<<20)
				switch {
				case err != nil:
					done <- err.Error()
					return
				case bytes.ContainsAny(raw, "\r\n"):
					done <- "more than a line: " + string(raw)
					return
				}
				var one response
				var batch []response
				switch {
				case json.Unmarshal(raw, &batch) == nil:
				case json.Unmarshal(raw, &one) != nil, one.JSONRPC != "2.0", one.Method == "" && (one.Result == nil) == (one.Error == nil):
					done <- "it says " + string(raw)
					return
				case string(one.ID) == last:
					done <- ""
					return
				}
			}
		}()
		if bytes.Contains(data, []byte("the last")) {
			return
		}
		for message := range bytes.SplitSeq(data, []byte("\n")) {
			if conn.Write(ctx, message) != nil {
				break // The reader tells why.
			}
		}
		_ = conn.Write(ctx, []byte(strings.Replace(fuzzedMessages[0], `"id":1`, `"id":`+last, 1)))
		if problem := <-done; problem != "" {
			t.Fatalf("%q: %s", data, problem)
		}
	})
}
