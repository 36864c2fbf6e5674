// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package call

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpprobe/fakemcp"
	"github.com/espalier-dev/espalier/internal/plugin/env"
)

// ran is what a run of the command gave.
type ran struct {
	out, errOut string
	err         error
}

func run(t *testing.T, args ...string) ran {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	streams, in, out, errOut := genericiooptions.NewTestIOStreams()
	in.WriteString(`{"city":"Rome"}`)
	command := New(env.New(streams))
	command.SetArgs(append([]string{}, args...))
	command.SilenceErrors, command.SilenceUsage = true, true
	err := command.ExecuteContext(ctx)
	return ran{out.String(), errOut.String(), err}
}

// weather serves one tool, in one era.
func weather(t *testing.T, modern bool, call fakemcp.Handler) (*fakemcp.Server, string) {
	t.Helper()
	return serve(t, modern, `{"name":"forecast","description":"Looks ahead","inputSchema":`+forecast+`}`, call)
}

func serve(t *testing.T, modern bool, tool string, call fakemcp.Handler) (*fakemcp.Server, string) {
	t.Helper()
	s := fakemcp.New()
	s.Settings.Modern, s.Settings.Legacy = modern, !modern
	s.Settings.Tools = []json.RawMessage{json.RawMessage(tool)}
	s.On(mcp.MethodToolsCall, call)
	web := httptest.NewServer(s)
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
	})
	return s, web.URL + "/mcp"
}

func text(words string) map[string]any { return map[string]any{"type": "text", "text": words} }

// TestCall: arguments reach the tool as they were meant, in both eras, and each
// format prints what it says.
func TestCall(t *testing.T) {
	for _, modern := range []bool{false, true} {
		_, url := weather(t, modern, func(c *fakemcp.Call) {
			var p struct {
				Name      string          `json:"name"`
				Arguments json.RawMessage `json:"arguments"`
			}
			_ = json.Unmarshal(c.Params, &p)
			c.Result(map[string]any{"content": []any{text(p.Name), text(string(p.Arguments))}, "structuredContent": map[string]any{"ok": true}})
		})
		tests := map[string]struct {
			args []string
			want string
		}{
			"text":   {[]string{"city=Oslo", "days=3"}, "forecast\n{\"city\":\"Oslo\",\"days\":3}\n"},
			"args":   {[]string{"--args", `{"city": "Oslo", "days": 3.0}`}, "forecast\n{\"city\": \"Oslo\", \"days\": 3.0}\n"},
			"stdin":  {[]string{"--args-file", "-"}, "forecast\n{\"city\":\"Rome\"}\n"},
			"json":   {[]string{"city=x", "-o", "json"}, "{\n    \"ok\": true\n}\n"},
			"unfit":  {[]string{"--unchecked", "--args", `{"days": "x"}`}, "forecast\n{\"days\": \"x\"}\n"},
			"result": {[]string{"city=x", "-o", "result"}, `"structuredContent": {`},
		}
		for name, test := range tests {
			t.Run(fmt.Sprint(name, " ", modern), func(t *testing.T) {
				got := run(t, append([]string{url, "forecast"}, test.args...)...)
				if got.err != nil || got.out != test.want && (name != "result" || !strings.Contains(got.out, test.want)) {
					t.Errorf("got %q, %v, %q", got.out, got.err, got.errOut)
				}
			})
		}
	}
}

// TestCallRefused: before anything reaches the tool.
func TestCallRefused(t *testing.T) {
	s, url := weather(t, true, func(c *fakemcp.Call) { c.Result(map[string]any{"content": []any{}}) })
	tests := map[string]struct {
		args       []string
		want, hint string
	}{
		"no tool":     {[]string{url, "forecats", "city=x"}, `has no tool "forecats"`, "It has: forecast"},
		"missing":     {[]string{url, "forecast"}, `argument "city" is missing`, "The city to look at"},
		"unfit":       {[]string{url, "forecast", "--args", `{"city":"x","days":"many"}`}, `do not fit tool "forecast"`, "--unchecked"},
		"two ways":    {[]string{url, "forecast", "city=x", "--args", "{}"}, "one way", ""},
		"no object":   {[]string{url, "forecast", "--args", "[]"}, "no JSON object", ""},
		"format":      {[]string{url, "forecast", "-o", "xml"}, "-o xml", ""},
		"level":       {[]string{url, "forecast", "--log-level", "loud"}, "--log-level loud", ""},
		"credentials": {[]string{strings.Replace(url, "http://", "http://user:hunter2@", 1), "forecast"}, "no user and password", "--header"},
		"scheme":      {[]string{"ftp://x", "forecast"}, `scheme "ftp"`, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := run(t, test.args...)
			if got.err == nil || !strings.Contains(got.err.Error(), test.want) || !strings.Contains(env.HintOf(got.err), test.hint) || strings.Contains(got.err.Error(), "hunter2") {
				t.Errorf("got %v, hint %q", got.err, env.HintOf(got.err))
			}
		})
	}
	for _, r := range s.Requests() {
		if r.Method == mcp.MethodToolsCall {
			t.Errorf("the tool was called with %s", r.Body)
		}
	}
}

// TestCallFails: isError is an answer, a JSON-RPC error is none; neither holds
// what was sent as a secret.
func TestCallFails(t *testing.T) {
	_, url := weather(t, false, func(c *fakemcp.Call) {
		if bytes.Contains(c.Params, []byte("rpc")) {
			c.Error(http.StatusOK, mcp.CodeInvalidParams, "no \x1b[31m "+c.R.Header.Get("Authorization"), nil)
			return
		}
		c.Result(map[string]any{"content": []any{text("it broke")}, "isError": true})
	})
	got := run(t, url, "forecast", "city=x")
	if env.Finish(new(bytes.Buffer), got.err) != env.ExitNo || got.out != "it broke\n" {
		t.Errorf("got %q, %v", got.out, got.err)
	}
	got = run(t, url, "forecast", "city=rpc", "--header", "Authorization: Bearer hunter2")
	if got.err == nil || !strings.Contains(got.err.Error(), `error -32602: no \x1b[31m`) || strings.Contains(got.err.Error(), "hunter2") {
		t.Errorf("got %v", got.err)
	}
}

// TestSave: bytes go to files of their own, and never over one that is there.
func TestSave(t *testing.T) {
	picture := []byte("\x89PNG")
	_, url := weather(t, true, func(c *fakemcp.Call) {
		data := base64.StdEncoding.EncodeToString(picture)
		c.Result(map[string]any{"content": []any{
			text("here"), map[string]any{"type": "image", "data": data, "mimeType": "image/png"},
			map[string]any{"type": "resource", "resource": map[string]any{"uri": "file:///../x", "mimeType": "x/y", "blob": data}},
			map[string]any{"type": "resource", "resource": map[string]any{"uri": "a:b", "text": "inside"}},
			map[string]any{"type": "resource_link", "uri": "a:c", "name": "there"},
			map[string]any{"type": "audio", "data": "***", "mimeType": "audio/wav"},
		}})
	})
	folder := filepath.Join(t.TempDir(), "new")
	for range 2 {
		got := run(t, url, "forecast", "city=x", "--save", folder)
		if got.err != nil || got.out != "here\ninside\na:c there\n" || !strings.Contains(got.errOut, "no base64") {
			t.Fatalf("got %q, %q, %v", got.out, got.errOut, got.err)
		}
	}
	for _, name := range []string{"forecast-1.png", "forecast-2.bin", "forecast-2.png", "forecast-3.bin"} {
		if raw, err := os.ReadFile(filepath.Join(folder, name)); err != nil || !bytes.Equal(raw, picture) {
			t.Errorf("%s: %q, %v", name, raw, err)
		}
	}
	if got := run(t, url, "forecast", "city=x"); !strings.Contains(got.errOut, "4 bytes of image/png: --save DIR") {
		t.Errorf("without --save: %q", got.errOut)
	}
}

// TestAnswers: what a modern server asks is answered from the flags, with the
// state that it gave, and by nobody where nobody is there.
func TestAnswers(t *testing.T) {
	_, url := weather(t, true, func(c *fakemcp.Call) {
		var p struct {
			Responses json.RawMessage `json:"inputResponses"`
			State     string          `json:"requestState"`
		}
		_ = json.Unmarshal(c.Params, &p)
		if p.Responses == nil {
			c.Result(map[string]any{"resultType": "input_required", "requestState": "s-1", "inputRequests": map[string]any{"q": map[string]any{
				"method": mcp.MethodElicit, "params": map[string]any{"message": "Which?", "requestedSchema": json.RawMessage(
					`{"type":"object","required":["n"],"properties":{"n":{"type":"integer"},"u":{"type":"string","default":"metre"},"l":{"type":"array","items":{"enum":["a","b"]}}}}`)},
			}}})
			return
		}
		c.Result(map[string]any{"content": []any{text(p.State + " " + string(p.Responses))}})
	})
	got := run(t, url, "forecast", "city=x", "--answer", "n=5", "--answer", "l=a, b")
	if want := `s-1 {"q":{"action":"accept","content":{"l":["a","b"],"n":5,"u":"metre"}}}` + "\n"; got.err != nil || got.out != want {
		t.Errorf("got %q, %v", got.out, got.err)
	}
	got = run(t, url, "forecast", "city=x", "--answer-defaults")
	if want := `s-1 {"q":{"action":"decline"}}` + "\n"; got.out != want || !strings.Contains(got.errOut, "does not say n") {
		t.Errorf("got %q, %q, %v", got.out, got.errOut, got.err)
	}
	got = run(t, url, "forecast", "city=x")
	if got.err == nil || !strings.Contains(env.HintOf(got.err), "--answer") {
		t.Errorf("got %v", got.err)
	}
}

// TestComplete offers tools, arguments and values.
func TestComplete(t *testing.T) {
	_, url := weather(t, true, func(c *fakemcp.Call) { c.Drop() })
	tests := map[string]struct {
		args []string
		word string
		want []string
	}{
		"tools":     {[]string{url}, "f", []string{"forecast\tLooks ahead"}},
		"no tool":   {[]string{url}, "x", nil},
		"arguments": {[]string{url, "forecast"}, "c", []string{"city=\ttext. The city to look at"}},
		"given":     {[]string{url, "forecast", "city=x", "days=1"}, "da", nil},
		"values":    {[]string{url, "forecast"}, "unit=f", []string{"unit=fahrenheit"}},
		"switch":    {[]string{url, "forecast"}, "long=", []string{"long=true", "long=false"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			streams, _, _, _ := genericiooptions.NewTestIOStreams()
			command := New(env.New(streams))
			command.SetContext(t.Context())
			got, directive := command.ValidArgsFunction(command, test.args, test.word)
			if fmt.Sprint(got) != fmt.Sprint(test.want) || directive&cobra.ShellCompDirectiveNoFileComp == 0 {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestUnsoundHeaders: a tool that names headers wrongly is not called, however
// much one insists.
func TestUnsoundHeaders(t *testing.T) {
	_, url := serve(t, true, `{"name":"bad","inputSchema":{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"a b"}}}}`,
		func(c *fakemcp.Call) { c.Drop() })
	if got := run(t, url, "bad", "a=1", "--unchecked"); got.err == nil || !strings.Contains(got.err.Error(), `tool "bad" must not be called`) {
		t.Errorf("got %v", got.err)
	}
}
