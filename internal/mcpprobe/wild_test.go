// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpprobe_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/mcpprobe/fakemcp"
)

// What hangs, at each step and in each way: the outcome names the step, and
// the probe ends with its time.
func TestHangs(t *testing.T) {
	part := func(contentType, piece string) fakemcp.Handler {
		return func(c *fakemcp.Call) {
			c.W.Header().Set("Content-Type", contentType)
			c.Send(piece)
			c.Hang()
		}
	}
	resources := map[string]any{"resources": map[string]any{}, "prompts": map[string]any{}}
	both := map[string]any{"tools": map[string]any{}, "resources": map[string]any{}}
	for name, tc := range map[string]struct {
		modern       bool
		capabilities map[string]any
		method       string
		does         fakemcp.Handler
		want         result
	}{
		"everything":                       {method: fakemcp.Any, want: failed(mcpprobe.Timeout, mcpprobe.StepInitialize)},
		"discover of a modern server":      {modern: true, method: mcp.MethodDiscover, want: failed(mcpprobe.Timeout, mcpprobe.StepDiscover)},
		"initialize":                       {method: mcp.MethodInitialize, want: failed(mcpprobe.Timeout, mcpprobe.StepInitialize)},
		"the notification":                 {method: mcp.NotificationInitialized, want: failed(mcpprobe.Timeout, mcpprobe.StepInitialized)},
		"tools":                            {method: mcp.MethodToolsList, want: failed(mcpprobe.Timeout, mcpprobe.StepTools)},
		"tools of a modern server":         {modern: true, method: mcp.MethodToolsList, want: failed(mcpprobe.Timeout, mcpprobe.StepTools)},
		"resources, for which it is there": {capabilities: resources, method: mcp.MethodResourcesList, want: result{Outcome: mcpprobe.Timeout, Step: mcpprobe.StepResources, Tools: "-"}},
		"prompts, for which it is there":   {capabilities: resources, method: mcp.MethodPromptsList, want: result{Outcome: mcpprobe.Timeout, Step: mcpprobe.StepPrompts, Tools: "-"}},
		"resources beside tools":           {capabilities: both, method: mcp.MethodResourcesList, want: proved},
		"in a JSON body":                   {method: mcp.MethodToolsList, does: part("application/json", `{"jsonrpc":"2.0",`), want: failed(mcpprobe.Timeout, mcpprobe.StepTools)},
		"in an event":                      {method: mcp.MethodToolsList, does: part("text/event-stream", `data: {"jsonrpc"`), want: failed(mcpprobe.Timeout, mcpprobe.StepTools)},
		"after keep-alives":                {method: mcp.MethodToolsList, does: part("text/event-stream", ": x\n\n"), want: failed(mcpprobe.Timeout, mcpprobe.StepTools)},
		"in the body of a refusal": {method: mcp.MethodToolsList, does: func(c *fakemcp.Call) {
			c.W.WriteHeader(http.StatusServiceUnavailable)
			c.Send("wait")
			c.Hang()
		}, want: failed(mcpprobe.ListFailed, mcpprobe.StepTools)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			does := tc.does
			if does == nil {
				does = (*fakemcp.Call).Hang
			}
			fake := eras(tc.modern, !tc.modern).On(tc.method, does)
			if tc.capabilities != nil {
				fake.Settings.Capabilities = tc.capabilities
			}
			b := newBench(t, fake)
			b.target.Timeout, b.bounds.EndTime = 4*quick, 4*quick
			r := b.probe()
			wantResult(t, r, tc.want)
			if r.Latency > 2*b.target.Timeout {
				t.Errorf("took %s", r.Latency)
			}
			if fake.OpenSessions() != 0 {
				t.Error("session left open")
			}
		})
	}
}

// Forms of JSON that mean the same.
func TestFormsOfJSON(t *testing.T) {
	for name, form := range map[string]string{
		"members in another order": `{"result":%[2]s,"id":%[1]s,"jsonrpc":"2.0"}`,
		"id as a decimal":          `{"jsonrpc":"2.0","id":%[1]s.0,"result":%[2]s}`,
		"id with an exponent":      `{"jsonrpc":"2.0","id":%[1]se0,"result":%[2]s}`,
		"escaped keys":             `{"jsonrpc":"2.0","\u0069d":%[1]s,"r\u0065sult":%[2]s}`,
		"escaped version":          `{"jsonrpc":"\u0032.0","id":%[1]s,"result":%[2]s}`,
		"a null error beside":      `{"jsonrpc":"2.0","id":%[1]s,"error":null,"result":%[2]s}`,
		"a repeated result":        `{"jsonrpc":"2.0","id":%[1]s,"result":{},"result":%[2]s}`,
		"lines and tabs":           "{\r\n\t\"jsonrpc\" : \"2.0\" ,\n\"id\" :\t%[1]s ,\n\"result\" : %[2]s\n}\r\n",
		"much beside":              `{"jsonrpc":"2.0","id":%[1]s,"x":[1,{"result":0}],"result":%[2]s,"_meta":{}}`,
		"a batch of one":           `[{"jsonrpc":"2.0","id":%[1]s,"result":%[2]s}]`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake := fakemcp.New().On(mcp.MethodToolsList, func(c *fakemcp.Call) {
				c.Text(200, "application/json", fmt.Sprintf(form, c.ID, `{"tools":[{"name":"alpha","inputSchema":{}}]}`))
			})
			wantResult(t, newBench(t, fake).probe(), proved)
		})
	}
	for name, form := range map[string]struct {
		text string
		flaw mcpprobe.Flaw
	}{
		"two bodies":        {`{"jsonrpc":"2.0","id":%[1]s,"result":%[2]s}` + "\n{}", mcpprobe.FlawNotJSON},
		"a comma too many":  {`{"jsonrpc":"2.0","id":%[1]s,"result":%[2]s,}`, mcpprobe.FlawNotJSON},
		"keys in capitals":  {`{"JSONRPC":"2.0","ID":%[1]s,"Result":%[2]s}`, mcpprobe.FlawNotJSONRPC},
		"version 1":         {`{"jsonrpc":"1.0","id":%[1]s,"result":%[2]s}`, mcpprobe.FlawNotJSONRPC},
		"a number for 2.0":  {`{"jsonrpc":2.0,"id":%[1]s,"result":%[2]s}`, mcpprobe.FlawNotJSONRPC},
		"half a number":     {`{"jsonrpc":"2.0","id":%[1]s.5,"result":%[2]s}`, mcpprobe.FlawWrongID},
		"an empty batch":    {`[]`, mcpprobe.FlawNotJSONRPC},
		"an event as JSON":  {"data: " + `{"jsonrpc":"2.0","id":%[1]s,"result":%[2]s}` + "\n\n", mcpprobe.FlawNotJSON},
		"a result as text":  {`{"jsonrpc":"2.0","id":%[1]s,"result":"tools"}`, mcpprobe.FlawMissingFields},
		"not UTF-8 in keys": {"{\"jsonrpc\":\"2.0\",\"\xff\":1}", mcpprobe.FlawNotJSONRPC},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake := fakemcp.New().On(mcp.MethodToolsList, func(c *fakemcp.Call) {
				text := form.text
				if strings.Contains(text, "%[1]s") {
					text = fmt.Sprintf(text, c.ID, `{"tools":[]}`)
				}
				c.Text(200, "application/json", text)
			})
			wantResult(t, newBench(t, fake).probe(), failed(mcpprobe.ListFailed, mcpprobe.StepTools).because(form.flaw))
		})
	}
	t.Run("JSON as an event stream", func(t *testing.T) {
		fake := fakemcp.New().On(mcp.MethodToolsList, func(c *fakemcp.Call) { c.Text(200, "text/event-stream", c.Response(alpha)) })
		wantResult(t, newBench(t, fake).probe(), failed(mcpprobe.StreamEnded, mcpprobe.StepTools))
	})
}

// A bomb in a body that only explains a refusal costs no more than another.
func TestBombInARefusal(t *testing.T) {
	bomb := gzipped(t, func(w io.Writer) {
		for range 256 {
			if _, err := w.Write(bytes.Repeat([]byte("x"), 1<<20)); err != nil {
				t.Fatal(err)
			}
		}
	})
	for _, status := range []int{400, 401, 403, 404, 500, 503} {
		fake := fakemcp.New().On(fakemcp.Any, func(c *fakemcp.Call) {
			c.W.Header().Set("Content-Encoding", "gzip")
			c.Text(status, "text/html", bomb)
		})
		highest := watchMemory(t)
		r := newBench(t, fake).probe()
		if grown := highest(); grown > 50<<20 {
			t.Errorf("%d: memory grew by %d MiB", status, grown>>20)
		}
		if r.Outcome != mcpprobe.UnexpectedStatus && r.Outcome != mcpprobe.AuthUnverified || r.HTTPStatus != status {
			t.Errorf("%d: %s with HTTP %d", status, r.Outcome, r.HTTPStatus)
		}
	}
}

// HTTP/2, with what it does otherwise: one connection for all, streams that are
// reset, and a server that says goodbye.
func TestHTTP2(t *testing.T) {
	ca := newAuthority(t)
	pair, _, _ := ca.pair(serviceName, time.Hour)
	for name, tc := range map[string]struct {
		modern bool
		method string
		does   fakemcp.Handler
		want   result
	}{
		"a modern server":   {modern: true, want: proved},
		"a legacy server":   {want: proved},
		"an open stream":    {method: mcp.MethodToolsList, does: func(c *fakemcp.Call) { c.Stream(fakemcp.Data(c.Response(alpha))); c.Hang() }, want: proved},
		"a reset stream":    {method: mcp.MethodToolsList, does: func(c *fakemcp.Call) { c.Stream(": x\n\n"); c.Drop() }, want: failed(mcpprobe.ConnectionLost, mcpprobe.StepTools)},
		"reset at once":     {method: fakemcp.Any, does: (*fakemcp.Call).Drop, want: failed(mcpprobe.ConnectionLost, mcpprobe.StepInitialize)},
		"goodbye":           {method: mcp.MethodInitialize, does: func(c *fakemcp.Call) { c.W.Header().Set("Connection", "close"); c.WellBehaved() }, want: proved},
		"a hanging list":    {method: mcp.MethodToolsList, does: (*fakemcp.Call).Hang, want: failed(mcpprobe.Timeout, mcpprobe.StepTools)},
		"an endless list":   {method: mcp.MethodToolsList, does: fakemcp.Modes["huge"][mcp.MethodToolsList], want: failed(mcpprobe.ResponseTooLarge, mcpprobe.StepTools)},
		"headers too large": {method: mcp.MethodToolsList, does: largeHeaders, want: failed(mcpprobe.ResponseTooLarge, mcpprobe.StepTools)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake := eras(tc.modern, !tc.modern)
			if tc.method != "" {
				fake.On(tc.method, func(c *fakemcp.Call) {
					if c.R.ProtoMajor != 2 {
						t.Errorf("spoken to over %s", c.R.Proto)
					}
					tc.does(c)
				})
			}
			b := newBench(t, fake)
			b.secure(&tls.Config{Certificates: []tls.Certificate{pair}}, true)
			b.target.TLS.CAPEM = ca.pem
			b.bounds.EndTime = ample
			if tc.want.Outcome == mcpprobe.Timeout {
				b.target.Timeout = 4 * quick
			}
			wantResult(t, b.probe(), tc.want)
			if fake.OpenSessions() != 0 {
				t.Error("session left open")
			}
		})
	}
}

func largeHeaders(c *fakemcp.Call) {
	for i := range 6 {
		c.W.Header().Set(fmt.Sprintf("X-Large-%d", i), strings.Repeat("x", 11<<10))
	}
	c.Result(alpha)
}

// Connections of HTTP/1 in the wild: each of these is a working server.
func TestConnectionsInTheWild(t *testing.T) {
	for name, tc := range map[string]struct {
		// head is what is sent before the status line, line the status line's
		// version, more further headers; closes says that the server closes the
		// connection after each answer.
		head, version, more string
		closes              bool
	}{
		"HTTP/1.0":               {version: "HTTP/1.0", closes: true},
		"closes, and says so":    {version: "HTTP/1.1", more: "Connection: close\r\n", closes: true},
		"closes without a word":  {version: "HTTP/1.1", closes: true},
		"early hints":            {head: "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", version: "HTTP/1.1"},
		"processing":             {head: "HTTP/1.1 102 Processing\r\n\r\n", version: "HTTP/1.1"},
		"continue":               {head: "HTTP/1.1 100 Continue\r\n\r\n", version: "HTTP/1.1"},
		"odd case and white":     {version: "HTTP/1.1", more: "x-odd:  \t y \r\nX-EMPTY:\r\n"},
		"headers more than once": {version: "HTTP/1.1", more: "Vary: a\r\nVary: b\r\nContent-Type: application/json\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake := fakemcp.New()
			b := newBench(t, fake)
			b.bounds.EndTime = ample
			b.target.DialAddress = wildServer(t, fake, func(conn net.Conn, answer *http.Response, body []byte) bool {
				text := tc.head + tc.version + fmt.Sprintf(" %d X\r\n", answer.StatusCode) + tc.more
				for key := range answer.Header {
					if key != "Date" && key != "Content-Length" {
						text += key + ": " + answer.Header.Get(key) + "\r\n"
					}
				}
				_, err := fmt.Fprintf(conn, "%sContent-Length: %d\r\n\r\n%s", text, len(body), body)
				return err == nil && !tc.closes
			})
			// A race shows only sometimes.
			for range 30 {
				wantResult(t, b.probe(), proved)
			}
			if n := fake.OpenSessions(); n != 0 {
				t.Errorf("%d sessions left open", n)
			}
		})
	}
}

// wildServer answers as fake does, by its own hand: send writes an answer and
// says whether the connection goes on.
func wildServer(t *testing.T, fake http.Handler, send func(net.Conn, *http.Response, []byte) bool) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	serve := func(conn net.Conn) {
		defer conn.Close()
		for requests := bufio.NewReader(conn); ; {
			request, err := http.ReadRequest(requests)
			if err != nil {
				return
			}
			recorded := httptest.NewRecorder()
			fake.ServeHTTP(recorded, request)
			answer := recorded.Result()
			body, err := io.ReadAll(answer.Body)
			if err != nil || !send(conn, answer, body) {
				return
			}
		}
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go serve(conn)
		}
	}()
	return listener.Addr().String()
}
