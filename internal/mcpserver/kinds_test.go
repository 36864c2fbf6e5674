// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver"
	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

func resource(uri string, change func(*serverconfig.Resource)) serverconfig.Resource {
	key := "uri"
	if strings.Contains(uri, "{") {
		key = "uriTemplate"
	}
	text := "text of " + uri
	r := serverconfig.Resource{
		URI: uri, Source: "mcpresource/x", Text: &text,
		Definition: json.RawMessage(`{"name":"x","` + key + `":"` + uri + `"}`),
	}
	if change != nil {
		change(&r)
	}
	return r
}

func prompt(name string, change func(*serverconfig.Prompt)) serverconfig.Prompt {
	p := serverconfig.Prompt{
		Name: name, Source: "mcpprompt/" + name, Definition: json.RawMessage(`{"name":"` + name + `","description":"Says \"` + name + `\"."}`),
		Messages: []serverconfig.Message{{Role: "user", Content: serverconfig.PromptContent{Type: serverconfig.ContentText, Text: name}}},
	}
	if change != nil {
		change(&p)
	}
	return p
}

// kinds is a catalog with entries of every list.
func kinds(change func(*serverconfig.Config)) *serverconfig.Config {
	c := config(tool("t", nil))
	c.Resources = []serverconfig.Resource{resource("x:a", nil), resource("x:b", nil)}
	c.Templates = []serverconfig.Resource{resource("x:t/{v}", nil)}
	c.Prompts = []serverconfig.Prompt{prompt("p", nil)}
	if change != nil {
		change(c)
	}
	return c
}

func from(file string) func(*serverconfig.Resource) {
	return func(r *serverconfig.Resource) { r.Text, r.File = nil, file }
}

func (f *fixture) read(uri string) *http.Request {
	r := f.modern("resources/read", `"uri":"`+uri+`"`)
	r.Header.Set("Mcp-Name", uri)
	return r
}

func (f *fixture) prompt(name, args string) *http.Request {
	r := f.modern("prompts/get", `"name":"`+name+`","arguments":`+args)
	r.Header.Set("Mcp-Name", name)
	return r
}

func (f *fixture) legacy(method, params string) *http.Request {
	r := f.post(`{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{` + params + `}}`)
	r.Header.Set("Mcp-Protocol-Version", "2025-11-25")
	return r
}

// secret mounts a key as the kubelet does.
func (f *fixture) secret(path, value string) {
	f.t.Helper()
	full := filepath.Join(f.creds, path)
	must(f.t, os.MkdirAll(filepath.Dir(full), 0o755))
	must(f.t, os.WriteFile(full+".new", []byte(value), 0o600))
	must(f.t, os.Rename(full+".new", full))
}

// TestKindsOnTheWire: whole answers, byte for byte, in both eras.
func TestKindsOnTheWire(t *testing.T) {
	f := start(t, kinds(func(c *serverconfig.Config) {
		c.Resources[0].CacheSeconds = 7
		c.Prompts[0].Arguments = []serverconfig.Variable{{Name: "a", Completions: []string{"one", "One more", "two"}}}
		c.Prompts = append(c.Prompts, prompt("entry", func(p *serverconfig.Prompt) { p.Metadata = map[string]string{"entryPoint": "true"} }))
	}))
	const info = `"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"test","title":"Test","version":"1.0.0"}}`
	const public = `"resultType":"complete","ttlMs":5000,"cacheScope":"public",` + info
	tests := map[string]struct {
		request *http.Request
		want    string // the result
	}{
		"resources": {f.modern("resources/list", ""), `{"resources":[{"name":"x","uri":"x:a"},{"name":"x","uri":"x:b"}],` + public + `}`},
		"templates": {f.modern("resources/templates/list", ""), `{"resourceTemplates":[{"name":"x","uriTemplate":"x:t/{v}"}],` + public + `}`},
		"prompts":   {f.modern("prompts/list", ""), `{"prompts":[{"name":"entry","description":"Says \"entry\"."},{"name":"p","description":"Says \"p\"."}],` + public + `}`},
		"read": {f.read("x:a"), `{"contents":[{"uri":"x:a","mimeType":"text/plain","text":"text of x:a"}],` +
			`"resultType":"complete","ttlMs":7000,"cacheScope":"private",` + info + `}`},
		"read by template": {f.read("x:t/1"), `{"contents":[{"uri":"x:t/1","mimeType":"text/plain","text":"text of x:t/{v}"}],` +
			`"resultType":"complete","ttlMs":0,"cacheScope":"private",` + info + `}`},
		"get": {f.prompt("p", `{}`), `{"messages":[{"role":"user","content":{"type":"text","text":"p"}}],"description":"Says \"p\".","resultType":"complete",` + info + `}`},
		"complete": {f.modern("completion/complete", `"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":"ONE"}`),
			`{"completion":{"values":["one","One more"],"total":2,"hasMore":false},"resultType":"complete",` + info + `}`},
		"legacy resources": {f.legacy("resources/list", ""), `{"resources":[{"name":"x","uri":"x:a"},{"name":"x","uri":"x:b"}]}`},
		"legacy read":      {f.legacy("resources/read", `"uri":"x:a"`), `{"contents":[{"uri":"x:a","mimeType":"text/plain","text":"text of x:a"}]}`},
		"legacy get":       {f.legacy("prompts/get", `"name":"p"`), `{"messages":[{"role":"user","content":{"type":"text","text":"p"}}],"description":"Says \"p\"."}`},
		"legacy complete": {f.legacy("completion/complete", `"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":""}`),
			`{"completion":{"values":["one","One more","two"],"total":3,"hasMore":false}}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := f.do(test.request); got.body != `{"jsonrpc":"2.0","id":1,"result":`+test.want+`}` || got.status != 200 {
				t.Errorf("HTTP %d\ngot  %s\nwant %s", got.status, got.body, test.want)
			}
		})
	}
	discover := f.do(f.modern("server/discover", "")).body
	want := `"capabilities":{"tools":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true},"prompts":{"listChanged":true},"completions":{}}`
	if !strings.Contains(discover, want) {
		t.Errorf("discover %s", discover)
	}
	initialized := f.do(f.legacy("initialize", `"protocolVersion":"2025-11-25"`)).body
	if !strings.Contains(initialized, want) { // It begins a session, which has a stream.
		t.Errorf("initialize %s", initialized)
	}
}

// TestManyCompletions: an answer has a hundred at most and says that there are
// more.
func TestManyCompletions(t *testing.T) {
	var values []string
	for i := range 150 {
		values = append(values, fmt.Sprintf("v%03d", i))
	}
	f := start(t, kinds(func(c *serverconfig.Config) {
		c.Templates[0].Variables = []serverconfig.Variable{{Name: "v", Completions: values}}
	}))
	for prefix, want := range map[string]string{"": "100 150 true", "v00": "10 10 false", "w": "0 0 false"} {
		got := f.do(f.modern("completion/complete", `"ref":{"type":"ref/resource","uri":"x:t/{v}"},"argument":{"name":"v","value":"`+prefix+`"}`))
		completion, _ := got.result()["completion"].(map[string]any)
		list, _ := completion["values"].([]any)
		if shown := fmt.Sprint(len(list), " ", completion["total"], " ", completion["hasMore"]); shown != want {
			t.Errorf("%q: %s, want %s", prefix, shown, want)
		}
	}
}

// TestKindsRefuse: what is asked wrongly, and with which code.
func TestKindsRefuse(t *testing.T) {
	f := start(t, kinds(func(c *serverconfig.Config) {
		c.Prompts[0].Arguments = []serverconfig.Variable{{Name: "a", Required: true}, {Name: "b"}}
		c.Resources = append(c.Resources, resource("x:missing", from("secrets/s/k")), resource("x:fails", func(r *serverconfig.Resource) {
			r.Text, r.Expression = nil, &serverconfig.ResourceContent{Text: "args.nope"}
		}))
	}))
	unmirrored := f.modern("resources/read", `"uri":"x:a"`)
	wrong := f.modern("prompts/get", `"name":"p"`)
	wrong.Header.Set("Mcp-Name", "q")
	tests := map[string]struct {
		request *http.Request
		status  int
		code    int
	}{
		"unknown uri":               {f.read("x:nope"), 200, mcp.CodeInvalidParams},
		"unknown uri, legacy":       {f.legacy("resources/read", `"uri":"x:nope"`), 200, mcp.CodeResourceNotFound},
		"two segments":              {f.read("x:t/1/2"), 200, mcp.CodeInvalidParams},
		"no uri":                    {f.modern("resources/read", ""), 200, mcp.CodeInvalidParams},
		"no Mcp-Name":               {unmirrored, 400, mcp.CodeHeaderMismatch},
		"another Mcp-Name":          {wrong, 400, mcp.CodeHeaderMismatch},
		"key that is not mounted":   {f.read("x:missing"), 200, mcp.CodeInternalError},
		"expression that fails":     {f.read("x:fails"), 200, mcp.CodeInternalError},
		"unknown prompt":            {f.prompt("nope", `{}`), 200, mcp.CodeInvalidParams},
		"missing argument":          {f.prompt("p", `{"b":"x"}`), 200, mcp.CodeInvalidParams},
		"unknown argument":          {f.prompt("p", `{"a":"x","c":"y"}`), 200, mcp.CodeInvalidParams},
		"argument of another sort":  {f.prompt("p", `{"a":1}`), 200, mcp.CodeInvalidParams},
		"arguments that are a list": {f.prompt("p", `[]`), 200, mcp.CodeInvalidParams},
		"completion of nothing":     {f.modern("completion/complete", ""), 200, mcp.CodeInvalidParams},
		"completion, no prompt":     {f.modern("completion/complete", `"ref":{"type":"ref/prompt","name":"q"},"argument":{"name":"a","value":""}`), 200, mcp.CodeInvalidParams},
		"completion, no argument":   {f.modern("completion/complete", `"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"z","value":""}`), 200, mcp.CodeInvalidParams},
		"completion, no template":   {f.modern("completion/complete", `"ref":{"type":"ref/resource","uri":"x:a"},"argument":{"name":"a","value":""}`), 200, mcp.CodeInvalidParams},
		"completion, other ref":     {f.modern("completion/complete", `"ref":{"type":"ref/tool"},"argument":{"name":"a","value":""}`), 200, mcp.CodeInvalidParams},
		"bad cursor":                {f.modern("prompts/list", `"cursor":"!"`), 200, mcp.CodeInvalidParams},
		"legacy subscribe":          {f.legacy("resources/subscribe", `"uri":"x:a"`), 200, mcp.CodeMethodNotFound},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := f.do(test.request); got.status != test.status || got.errorCode() != test.code {
				t.Errorf("HTTP %d %s, want %d, %d", got.status, got.body, test.status, test.code)
			}
		})
	}
	if got := f.do(f.read("x:missing")).body; !strings.Contains(got, `"reason":"CredentialMissing"`) {
		t.Errorf("a missing key is told as %s", got)
	}
}

// TestResourceContent: text or blob, by media type and bytes.
func TestResourceContent(t *testing.T) {
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/gone":
			w.WriteHeader(http.StatusNotFound)
		case "/down":
			w.WriteHeader(http.StatusBadGateway)
		default:
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
			_, _ = io.WriteString(w, `{"path":"`+r.URL.EscapedPath()+`","query":"`+r.URL.RawQuery+`"}`)
		}
	}))
	t.Cleanup(backend.Close)
	get := func(path string, change func(*serverconfig.Resource)) func(*serverconfig.Resource) {
		return func(r *serverconfig.Resource) {
			r.Text = nil
			r.HTTP = &serverconfig.HTTP{Connection: serverconfig.Connection{URL: backend.URL + path}, Method: "GET", TimeoutSeconds: 5}
			if change != nil {
				change(r)
			}
		}
	}
	cel := func(c serverconfig.ResourceContent) func(*serverconfig.Resource) {
		return func(r *serverconfig.Resource) { r.Text, r.Expression = nil, &c }
	}
	typed := func(mimeType string, change func(*serverconfig.Resource)) func(*serverconfig.Resource) {
		return func(r *serverconfig.Resource) { change(r); r.MIMEType = mimeType }
	}
	f := start(t, kinds(func(c *serverconfig.Config) {
		c.Resources = []serverconfig.Resource{
			resource("x:blob", func(r *serverconfig.Resource) { r.Text, r.Blob = nil, []byte{0, 1} }),
			resource("x:utf8", from("configmaps/c/text")),
			resource("x:binary", from("configmaps/c/binary")),
			resource("x:svg", typed("image/svg+xml", from("configmaps/c/text"))),
			resource("x:png", typed("image/png", from("configmaps/c/text"))),
			resource("x:large", from("configmaps/c/large")),
			resource("x:bytes", cel(serverconfig.ResourceContent{Blob: "b'hi'"})),
			resource("x:base64", cel(serverconfig.ResourceContent{Blob: "'aGk='"})),
			resource("x:notbase64", cel(serverconfig.ResourceContent{Blob: "'?'"})),
			resource("x:gone", get("/gone", nil)), resource("x:down", get("/down", nil)),
			resource("x:result", get("/r", func(r *serverconfig.Resource) {
				r.Expression = &serverconfig.ResourceContent{Text: "response.body.path + ' ' + string(response.status)"}
			})),
		}
		c.Templates = []serverconfig.Resource{
			resource("x:http/{a}/{b}", get("/items/{a}", nil)),
			resource("x:hello/{name}", cel(serverconfig.ResourceContent{Text: "'Hello, ' + args.name + ' from ' + principal.kind"})),
		}
	}))
	f.secret("configmaps/c/text", "hé")
	f.secret("configmaps/c/binary", "\xff\x00")
	f.secret("configmaps/c/large", strings.Repeat("x", 1<<20))
	tests := map[string]string{
		"x:blob":           `"mimeType":"application/octet-stream","blob":"AAE="`,
		"x:utf8":           `"mimeType":"text/plain","text":"hé"`,
		"x:binary":         `"mimeType":"application/octet-stream","blob":"/wA="`,
		"x:svg":            `"mimeType":"image/svg+xml","text":"hé"`,
		"x:png":            `"mimeType":"image/png","blob":"aMOp"`,
		"x:large":          `"reason":"ResultTooLarge"`,
		"x:bytes":          `"mimeType":"application/octet-stream","blob":"aGk="`,
		"x:base64":         `"blob":"aGk="`,
		"x:notbase64":      `"reason":"InvalidResult"`,
		"x:gone":           `"code":-32602`,
		"x:down":           `"reason":"BackendFailed"`,
		"x:result":         `"mimeType":"text/plain","text":"/r 200"`,
		"x:http/1%2F2/q":   `"mimeType":"application/json","text":"{\"path\":\"/items/1%2F2\",\"query\":\"b=q\"}"`,
		"x:http/..%2F/q":   `"reason":"InvalidArguments"`,
		"x:hello/W%20orld": `"text":"Hello, W orld from Anonymous"`,
	}
	for uri, want := range tests {
		if got := f.do(f.read(uri)); !strings.Contains(got.body, want) {
			t.Errorf("%s: %.300s, want %s", uri, got.body, want)
		}
	}
}

// TestPromptContent: content of every type, literal and by CEL, and the
// server's own resources.
func TestPromptContent(t *testing.T) {
	say := func(contents ...serverconfig.PromptContent) func(*serverconfig.Prompt) {
		return func(p *serverconfig.Prompt) {
			p.Arguments, p.Messages = []serverconfig.Variable{{Name: "a"}}, nil
			for _, c := range contents {
				p.Messages = append(p.Messages, serverconfig.Message{Role: "assistant", Content: c})
			}
		}
	}
	f := start(t, kinds(func(c *serverconfig.Config) {
		c.Prompts = []serverconfig.Prompt{
			prompt("all", say(
				serverconfig.PromptContent{Type: "Text", Expression: "'x' + args.a"},
				serverconfig.PromptContent{Type: "Image", MIMEType: "image/png", Blob: []byte("i")},
				serverconfig.PromptContent{Type: "Audio", MIMEType: "audio/wav", Expression: "b'a'"},
				serverconfig.PromptContent{Type: "EmbeddedResource", URI: "x:e", MIMEType: "text/plain", Text: "t"},
				serverconfig.PromptContent{Type: "EmbeddedResource", URIExpression: "'x:' + args.a", Expression: "b'b'"},
				serverconfig.PromptContent{Type: "ResourceLink", URI: "x:l", Text: "name"},
			)),
			prompt("own", say(serverconfig.PromptContent{Type: "EmbeddedResource", URIExpression: "'x:' + args.a"})),
		}
	}))
	got := f.do(f.prompt("all", `{"a":"1"}`)).body
	for _, want := range []string{
		`{"role":"assistant","content":{"type":"text","text":"x1"}}`,
		`"content":{"type":"image","data":"aQ==","mimeType":"image/png"}`,
		`"content":{"type":"audio","data":"YQ==","mimeType":"audio/wav"}`,
		`"content":{"type":"resource","resource":{"uri":"x:e","mimeType":"text/plain","text":"t"}}`,
		`"content":{"type":"resource","resource":{"uri":"x:1","blob":"Yg=="}}`,
		`"content":{"type":"resource_link","uri":"x:l","name":"name"}`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
	for args, want := range map[string]string{
		`{"a":"a"}`:   `"content":{"type":"resource","resource":{"uri":"x:a","mimeType":"text/plain","text":"text of x:a"}}`,
		`{"a":"t/7"}`: `"resource":{"uri":"x:t/7","mimeType":"text/plain","text":"text of x:t/{v}"}`,
		`{"a":"no"}`:  `"code":-32602`,
		`{}`:          `"reason":"ExpressionFailed"`,
	} {
		if got := f.do(f.prompt("own", args)).body; !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", args, got, want)
		}
	}
}

// TestKindsChange: each list is told for itself, contents are told to who
// subscribed, and what is withdrawn is interrupted with its completions.
func TestKindsChange(t *testing.T) {
	mounted := func(c *serverconfig.Config) {
		c.Resources = append(c.Resources, resource("x:m", from("configmaps/c/k")))
		c.Prompts[0].Arguments = []serverconfig.Variable{{Name: "a", Completions: []string{"v"}}}
	}
	f := start(t, kinds(mounted))
	f.secret("configmaps/c/k", "one")
	stream := f.listen(`"s"`, `{"toolsListChanged":true,"resourcesListChanged":true,"promptsListChanged":true,
		"resourceSubscriptions":["x:a","x:m","x:t/1","x:nope","x:a"]}`).events
	params, _ := next(t, stream)["params"].(map[string]any)
	if got := fmt.Sprint(params["notifications"]); got != "map[promptsListChanged:true resourceSubscriptions:[x:a x:m x:t/1] resourcesListChanged:true toolsListChanged:true]" {
		t.Errorf("acknowledged %v", got)
	}
	expect := func(when string, want ...string) {
		t.Helper()
		for _, w := range want {
			m := next(t, stream)
			got := strings.TrimPrefix(fmt.Sprint(m["method"]), "notifications/")
			if p, ok := m["params"].(map[string]any); ok && p["uri"] != nil {
				got += fmt.Sprint(" ", p["uri"])
			}
			if got != w || subscription(m) != "s" {
				t.Errorf("%s: %v, want %s", when, m, w)
			}
		}
	}
	f.secret("configmaps/c/k", "two")
	expect("another file", "resources/updated x:m")
	other := "other"
	f.reload(kinds(func(c *serverconfig.Config) { mounted(c); c.Resources[0].Text, c.Templates[0].Text = &other, &other }))
	expect("other texts", "resources/updated x:a", "resources/updated x:t/1")
	f.reload(kinds(func(c *serverconfig.Config) {
		mounted(c)
		c.Resources[0].Text, c.Templates[0].Text = &other, &other
		c.Prompts = append(c.Prompts, prompt("q", nil))
	}))
	expect("another prompt", "prompts/list_changed")
	f.reload(kinds(func(c *serverconfig.Config) {
		c.Templates[0].Text, c.Prompts = &other, nil
		c.Resources = c.Resources[1:]
	}))
	expect("many changes", "resources/list_changed", "prompts/list_changed", "resources/updated x:a", "resources/updated x:m")
	gone := f.do(f.modern("completion/complete", `"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":""}`))
	if gone.errorCode() != mcp.CodeInvalidParams {
		t.Errorf("completions of what is gone: %s", gone.body)
	}
}

// TestWithdrawnRead: a read that runs is interrupted when its resource is
// withdrawn, and finishes when it is replaced.
func TestWithdrawnRead(t *testing.T) {
	backend := newBlockingBackend(t)
	slow := func(seconds int32) func(c *serverconfig.Config) {
		return func(c *serverconfig.Config) {
			c.Resources = append(c.Resources, resource("x:slow", func(r *serverconfig.Resource) {
				r.Text, r.HTTP = nil, &serverconfig.HTTP{Connection: serverconfig.Connection{URL: backend.URL}, Method: "GET", TimeoutSeconds: seconds}
			}))
		}
	}
	f := start(t, kinds(slow(50)))
	reading := f.async(f.read("x:slow"))
	<-backend.arrived
	f.reload(kinds(slow(51)))
	select {
	case got := <-reading:
		t.Fatalf("a replaced resource ended what ran: %s", got.body)
	case <-time.After(50 * time.Millisecond):
	}
	f.reload(kinds(nil))
	if got := <-reading; !strings.Contains(got.body, `"reason":"Withdrawn"`) {
		t.Errorf("got %s", got.body)
	}
	if got := f.do(f.read("x:slow")); got.errorCode() != mcp.CodeInvalidParams {
		t.Errorf("after that: %s", got.body)
	}
}

// TestMiddlewareWrapsAllKinds: reads and gets pass it as calls do, and a limit
// outside of a tool's call is an error of its own.
func TestMiddlewareWrapsAllKinds(t *testing.T) {
	seen := make(chan string, 10)
	f := start(t, kinds(nil), func(o *mcpserver.Options) {
		o.Middleware = []call.Middleware{func(next call.Func) call.Func {
			return func(ctx context.Context, c *call.Call) (*call.Result, error) {
				seen <- c.Kind.String() + " " + c.Tool
				if c.Tool == "x:b" {
					return nil, call.Fail(call.RateLimited, "too many")
				}
				return next(ctx, c)
			}
		}}
	})
	for _, step := range []struct {
		request *http.Request
		want    string
	}{
		{f.callModern("t", `{}`), "tool t"}, {f.read("x:a"), "resource x:a"}, {f.read("x:t/1"), "resource x:t/{v}"}, {f.prompt("p", `{}`), "prompt p"},
	} {
		f.do(step.request)
		if got := <-seen; got != step.want {
			t.Errorf("saw %s, want %s", got, step.want)
		}
	}
	limited := f.do(f.read("x:b"))
	if limited.status != http.StatusTooManyRequests || limited.errorCode() != mcp.CodeTooManyRequests || limited.header.Get("Retry-After") == "" {
		t.Errorf("HTTP %d %s", limited.status, limited.body)
	}
}

// TestBadEntriesOfOtherKinds: they are named in the report and harm nothing.
func TestBadEntriesOfOtherKinds(t *testing.T) {
	f := start(t, kinds(func(c *serverconfig.Config) {
		c.Resources = append(c.Resources, resource("x:a", nil), resource("x:none", func(r *serverconfig.Resource) { r.Text = nil }),
			resource("x:def", func(r *serverconfig.Resource) { r.Definition = json.RawMessage(`{"uri":"x:other"}`) }))
		c.Templates = append(c.Templates, resource("x:{a*}", nil))
		c.Prompts = append(c.Prompts, prompt("bad", func(p *serverconfig.Prompt) { p.Messages[0].Content.Text = "" }))
	}))
	var got []string
	for _, n := range f.server.Report().NotServed {
		got = append(got, n.Kind+" "+n.Name+" "+n.Reason)
	}
	want := "[resource x:a DuplicateName resource x:none InvalidHandler resource x:def InvalidDefinition template x:{a*} InvalidURI prompt bad InvalidHandler]"
	if fmt.Sprint(got) != want {
		t.Errorf("got %v", got)
	}
	if a := f.do(f.read("x:a")); a.errorCode() != 0 {
		t.Errorf("%s", a.body)
	}
}
