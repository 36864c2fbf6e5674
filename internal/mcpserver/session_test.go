// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver"
	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// asking is a server whose tools speak to their clients before they answer.
// A tool's name says what it does.
func asking(o *mcpserver.Options) {
	o.Middleware = append(o.Middleware, func(next call.Func) call.Func {
		return func(ctx context.Context, c *call.Call) (*call.Result, error) {
			switch c.Tool {
			case "elicit", "sample", "x:elicit":
				method := map[string]string{"elicit": mcp.MethodElicit, "x:elicit": mcp.MethodElicit, "sample": mcp.MethodCreateMessage}[c.Tool]
				answer, err := c.Client.Ask(ctx, method, json.RawMessage("{\"message\":\n\"who?\"}"))
				var refused *call.RPCAnswer
				if errors.As(err, &refused) {
					return nil, call.Fail(call.UpstreamError, "refused: %d %s", refused.Code, refused.Message)
				}
				if err != nil {
					return nil, call.Fail(call.UpstreamError, "%s", err.Error())
				}
				if c.Kind == call.Resource {
					return &call.Result{Content: append(append([]byte("["), answer...), ']')}, nil
				}
				return text(string(answer)), nil
			case "log":
				for _, level := range []string{"debug", "info", "error"} {
					c.Client.Notify(mcp.NotificationMessage, json.RawMessage(`{"level":"`+level+`","data":"x"}`))
				}
				return text(c.Client.LogLevel()), nil
			case "who":
				return text(strconv.FormatBool(c.Client.Modern()) + " " + string(c.Client.Capabilities()) + " " + strconv.FormatBool(c.Client.Session() != "")), nil
			case "more", "p-more", "x:more":
				return &call.Result{Input: &call.Input{Requests: json.RawMessage(`{"q":{"method":"elicitation/create"}}`), State: json.RawMessage(`"s"`)}}, nil
			case "given":
				return text(string(c.Responses) + string(c.State)), nil
			}
			return next(ctx, c)
		}
	})
}

func text(s string) *call.Result {
	return &call.Result{Content: append(wire.AppendString([]byte(`[{"type":"text","text":`), s), "}]"...)}
}

func askingConfig() *serverconfig.Config {
	c := config()
	for _, name := range []string{"elicit", "sample", "log", "who", "more", "given", "ping"} {
		c.Tools = append(c.Tools, tool(name, nil))
	}
	for _, uri := range []string{"x:more", "x:elicit"} {
		c.Resources = append(c.Resources, resource(uri, nil))
	}
	c.Prompts = append(c.Prompts, prompt("p-more", nil))
	return c
}

// legacyClient is a client with a session.
type legacyClient struct {
	f         *fixture
	id        string
	initialed answer
}

// connect begins a session at a version; capabilities is a raw object.
func (f *fixture) connect(version, capabilities string) *legacyClient {
	f.t.Helper()
	r := f.post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"` + version + `","capabilities":` + capabilities + `,"clientInfo":{"name":"x","version":"1"}}}`)
	c := &legacyClient{f: f, initialed: f.do(r)}
	c.id = c.initialed.header.Get("Mcp-Session-Id")
	if c.initialed.status != http.StatusOK || c.id == "" {
		f.t.Fatalf("got %d, session %q: %s", c.initialed.status, c.id, c.initialed.body)
	}
	if got := f.do(c.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)); got.status != http.StatusAccepted {
		f.t.Fatalf("got %d", got.status)
	}
	return c
}

func (c *legacyClient) header(r *http.Request) *http.Request {
	r.Header.Set("Mcp-Session-Id", c.id)
	r.Header.Set("Mcp-Protocol-Version", "2025-11-25")
	return r
}

func (c *legacyClient) post(body string) *http.Request { return c.header(c.f.post(body)) }

// request makes a request; params are members without braces.
func (c *legacyClient) request(id, method, params string) *http.Request {
	return c.post(`{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":{` + params + `}}`)
}

func (c *legacyClient) call(id, name, more string) *http.Request {
	return c.request(id, "tools/call", `"name":"`+name+`"`+more)
}

// open opens a stream: of a POST, or with GET.
func (f *fixture) open(r *http.Request) listener {
	f.t.Helper()
	response, err := f.client.Do(r)
	must(f.t, err)
	closed := func() { _ = response.Body.Close() }
	f.t.Cleanup(closed)
	return listener{response.StatusCode, response.Header, events(f.t.(*testing.T), response.Body), closed}
}

func (c *legacyClient) get(last string) *http.Request {
	r, err := http.NewRequest(http.MethodGet, c.f.url(), nil)
	must(c.f.t, err)
	r.Header.Set("Accept", "text/event-stream")
	if last != "" {
		r.Header.Set("Last-Event-Id", last)
	}
	return c.header(r)
}

func (c *legacyClient) end() answer {
	r, err := http.NewRequest(http.MethodDelete, c.f.url(), nil)
	must(c.f.t, err)
	return c.f.do(c.header(r))
}

func TestSessionLife(t *testing.T) {
	f := start(t, askingConfig(), asking)
	c := f.connect("2025-11-25", `{"elicitation":{},"x":[1]}`)
	if got := f.do(c.call("1", "who", "")); got.text() != `false {"elicitation":{},"x":[1]} true` {
		t.Errorf("got %s", got.body)
	}
	if got := f.do(f.legacy("tools/call", `"name":"ping"`)); got.text() != "ping" {
		t.Errorf("without a session: %s", got.body)
	}
	if got := f.do(c.request("2", "initialize", `"protocolVersion":"2025-06-18"`)); got.header.Get("Mcp-Session-Id") == c.id {
		t.Error("initialize took up another session")
	}
	stranger := &legacyClient{f: f, id: c.id + "x"}
	for name, got := range map[string]answer{"post": f.do(stranger.call("1", "ping", "")), "get": f.do(stranger.get("")), "delete": stranger.end()} {
		if got.status != http.StatusNotFound {
			t.Errorf("%s: got %d", name, got.status)
		}
	}
	wrong := c.get("")
	wrong.Header.Set("Accept", "application/json")
	if got := f.do(wrong); got.status != http.StatusNotAcceptable {
		t.Errorf("got %d", got.status)
	}
	stream := f.open(c.get(""))
	if stream.status != http.StatusOK || stream.header.Get("X-Accel-Buffering") != "no" || stream.header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("got %d %v", stream.status, stream.header)
	}
	if got := c.end(); got.status != http.StatusNoContent {
		t.Errorf("got %d", got.status)
	}
	if m, more := <-stream.events; more {
		t.Errorf("got %v", m)
	}
	if got := f.do(c.call("1", "ping", "")); got.status != http.StatusNotFound {
		t.Errorf("got %d", got.status)
	}
}

func TestAskedOnTheStreamOfThePost(t *testing.T) {
	f := start(t, askingConfig(), asking)
	c := f.connect("2025-11-25", `{"elicitation":{}}`)
	for name, r := range map[string]*http.Request{"tool": c.call(`"a"`, "elicit", ""), "resource": c.request(`"a"`, "resources/read", `"uri":"x:elicit"`)} {
		t.Run(name, func(t *testing.T) {
			stream := f.open(r)
			asked := next(t, stream.events)
			if asked["method"] != "elicitation/create" || asked["params"].(map[string]any)["message"] != "who?" {
				t.Fatalf("got %v", asked)
			}
			id, _ := json.Marshal(asked["id"])
			if got := f.do(c.post(`{"jsonrpc":"2.0","id":` + string(id) + `,"result":{"action":"accept"}}`)); got.status != http.StatusAccepted {
				t.Errorf("got %d", got.status)
			}
			got := next(t, stream.events)
			raw, _ := json.Marshal(got["result"])
			if got["id"] != "a" || !strings.Contains(string(raw), `action`) {
				t.Errorf("got %s", raw)
			}
			if m, more := <-stream.events; more {
				t.Errorf("after the answer: %v", m)
			}
		})
	}
	t.Run("refused", func(t *testing.T) {
		stream := f.open(c.call(`1`, "elicit", ""))
		id, _ := json.Marshal(next(t, stream.events)["id"])
		f.do(c.post(`{"jsonrpc":"2.0","id":` + string(id) + `,"error":{"code":-1,"message":"no"}}`))
		raw, _ := json.Marshal(next(t, stream.events)["result"])
		if !strings.Contains(string(raw), "refused: -1 no") {
			t.Errorf("got %s", raw)
		}
	})
	t.Run("not declared", func(t *testing.T) {
		if got := f.do(c.call("1", "sample", "")); got.text() != call.ErrCannotAsk.Error() {
			t.Errorf("got %s", got.body)
		}
	})
	t.Run("a client that takes no stream is asked on the standing one", func(t *testing.T) {
		r := c.call("1", "elicit", "")
		r.Header.Set("Accept", "application/json")
		if got := f.do(r); got.text() != call.ErrCannotAsk.Error() {
			t.Errorf("got %s", got.body)
		}
		standing := f.open(c.get(""))
		r = c.call("1", "elicit", "")
		r.Header.Set("Accept", "application/json")
		answers := f.async(r)
		id, _ := json.Marshal(next(t, standing.events)["id"])
		f.do(c.post(`{"jsonrpc":"2.0","id":` + string(id) + `,"result":{}}`))
		if got := <-answers; got.text() != "{}" {
			t.Errorf("got %s", got.body)
		}
	})
}

func TestSessionLogs(t *testing.T) {
	f := start(t, askingConfig(), asking)
	c := f.connect("2025-11-25", `{}`)
	stream := f.open(c.call("1", "log", ""))
	for range 3 {
		if m := next(t, stream.events); m["method"] != "notifications/message" {
			t.Errorf("got %v", m)
		}
	}
	raw, _ := json.Marshal(next(t, stream.events))
	if !strings.Contains(string(raw), `"info"`) {
		t.Errorf("the level before any was set: %s", raw)
	}
	if got := f.do(c.request("1", "logging/setLevel", `"level":"loud"`)); got.errorCode() != mcp.CodeInvalidParams {
		t.Errorf("got %s", got.body)
	}
	if got := f.do(c.request("1", "logging/setLevel", `"level":"error"`)); got.body != `{"jsonrpc":"2.0","id":1,"result":{}}` {
		t.Errorf("got %s", got.body)
	}
	stream = f.open(c.call("1", "log", ""))
	for range 3 {
		next(t, stream.events)
	}
	if raw, _ = json.Marshal(next(t, stream.events)); !strings.Contains(string(raw), `"error"`) {
		t.Errorf("got %s", raw)
	}
	modern := f.callModern("log", "{}")
	if m := next(t, f.open(modern).events); m["method"] != "notifications/message" {
		t.Errorf("got %v", m)
	}
}

func TestModernCaller(t *testing.T) {
	f := start(t, askingConfig(), asking)
	if got := f.do(f.callModern("who", "{}")); got.text() != `true {} false` {
		t.Errorf("got %s", got.body)
	}
	if got := f.do(f.callModern("elicit", "{}")); got.text() != call.ErrCannotAsk.Error() {
		t.Errorf("got %s", got.body)
	}
	const info = `"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"test","title":"Test","version":"1.0.0"}}}}`
	const want = `{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{"q":{"method":"elicitation/create"}},"requestState":"s",` + info
	for name, r := range map[string]*http.Request{"tool": f.callModern("more", "{}"), "prompt": f.prompt("p-more", "{}"), "resource": f.read("x:more")} {
		if got := f.do(r); got.body != want {
			t.Errorf("%s: got %s", name, got.body)
		}
	}
	again := f.modern("tools/call", `"name":"given","inputResponses":{"q":{"action": "accept"}},"requestState":"s\u0041"`)
	again.Header.Set("Mcp-Name", "given")
	if got := f.do(again); got.text() != `{"q":{"action": "accept"}}"s\u0041"` {
		t.Errorf("got %s", got.body)
	}
	for _, params := range []string{
		`"inputResponses":{"q":12345}`, `"inputResponses":{"q":{},"r":null}`, `"inputResponses":[]`, `"inputResponses":"q"`, `"requestState":{}`,
	} {
		r := f.modern("tools/call", `"name":"given",`+params)
		r.Header.Set("Mcp-Name", "given")
		if got := f.do(r); got.errorCode() != mcp.CodeInvalidParams {
			t.Errorf("%s: got %s", params, got.body)
		}
	}
	none := f.modern("tools/call", `"name":"given","inputResponses":null,"requestState":null`)
	none.Header.Set("Mcp-Name", "given")
	if got := f.do(none); got.errorCode() != 0 {
		t.Errorf("got %s", got.body)
	}
	c := f.connect("2025-11-25", "{}")
	if got := f.do(c.call("1", "more", "")); got.reason() != "InputRequired" || got.result()["isError"] != true {
		t.Errorf("got %s", got.body)
	}
	if got := f.do(c.request("1", "resources/read", `"uri":"x:more"`)); got.errorCode() != mcp.CodeInternalError {
		t.Errorf("got %s", got.body)
	}
}
