// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/espalier-dev/espalier/internal/contract"
	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/mcpserver/upstream/client"
	"github.com/espalier-dev/espalier/internal/plugin/reach"
)

// serve runs a server with some of each kind.
func serve(t *testing.T) string {
	t.Helper()
	server := sdk.NewServer(&sdk.Implementation{Name: "shop", Version: "1.2.0", Title: "The shop"}, &sdk.ServerOptions{Instructions: "Ask before you buy.\nAlways."})
	nothing := func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{}, nil
	}
	yes := true
	server.AddTool(&sdk.Tool{Name: "sell", Description: "Sell <it>.", InputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"number","maximum":1e2}}}`)}, nothing)
	server.AddTool(&sdk.Tool{
		Name: "buy", Title: "Buy", Meta: sdk.Meta{"example.com/a": "b"}, Annotations: &sdk.ToolAnnotations{DestructiveHint: &yes},
		InputSchema: json.RawMessage(`{"type":"object"}`), OutputSchema: json.RawMessage(`{"type":"object"}`),
	}, nothing)
	server.AddResource(&sdk.Resource{Name: "list", URI: "shop://list"}, func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) { return nil, nil })
	server.AddResourceTemplate(&sdk.ResourceTemplate{Name: "item", URITemplate: "shop://{id}"}, func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return nil, nil
	})
	server.AddPrompt(&sdk.Prompt{Name: "haggle", Arguments: []*sdk.PromptArgument{{Name: "price", Required: true}}}, func(context.Context, *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		return nil, nil
	})
	s := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil))
	t.Cleanup(s.Close)
	return s.URL
}

func take(t *testing.T, url string) *Manifest {
	t.Helper()
	m, err := Take(t.Context(), reach.Direct(url, mcpprobe.TransportAuto))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// The digests of a manifest are those that the operator's probe takes, and so
// those that it judges a contract by.
func TestDigestsAreTheOperators(t *testing.T) {
	url := serve(t)
	m := take(t, url)
	prober := mcpprobe.New(mcpprobe.Options{Policy: mcpprobe.Policy{AllowLoopback: true}})
	t.Cleanup(prober.Close)
	report := prober.Probe(t.Context(), mcpprobe.Target{URL: url})
	if report.Outcome != mcpprobe.Proved {
		t.Fatalf("the probe ends with %s at %s", report.Outcome, report.Step)
	}
	var want, got []contract.Tool
	for _, tool := range report.Tools.Tools {
		want = append(want, contract.Tool{Name: tool.Name, Digest: tool.Digest, Fields: tool.Fields})
	}
	for _, e := range m.Tools {
		got = append(got, e.Tool)
	}
	if diff := cmp.Diff(want, got); diff != "" || len(got) != 2 {
		t.Errorf("tools (-probe +manifest):\n%s", diff)
	}
	if m.Server.Digest != report.Instructions || m.Server.Digest == "" {
		t.Errorf("instructions: %s, the probe has %s", m.Server.Digest, report.Instructions)
	}
	for what, lists := range map[string]struct {
		want mcpprobe.EntryList
		got  []Entry
	}{"resources": {report.Resources, m.Resources}, "prompts": {report.Prompts, m.Prompts}} {
		if len(lists.want.Entries) != 1 || len(lists.got) != 1 || lists.want.Entries[0].Digest != lists.got[0].Digest {
			t.Errorf("%s: %v, the probe has %v", what, lists.got, lists.want)
		}
	}
}

// The file is the same each time, and comes back as it was.
func TestEncode(t *testing.T) {
	url := serve(t)
	m := take(t, url)
	raw, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	again, err := take(t, url).Encode()
	if err != nil || !bytes.Equal(raw, again) {
		t.Errorf("two runs differ: %v", cmp.Diff(string(raw), string(again)))
	}
	if m.Server.Name != "shop" || m.Server.Title != "The shop" || m.Server.Version != "1.2.0" || !strings.HasPrefix(m.Server.Instructions, "Ask before") {
		t.Errorf("the server is %+v", m.Server)
	}
	if !strings.Contains(string(raw), "Sell <it>.") || !strings.Contains(string(raw), "1e2") || !Is(raw) {
		t.Errorf("text and numbers are not as they were written:\n%s", raw)
	}
	back, err := Decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	twice, err := back.Encode()
	if err != nil || !bytes.Equal(raw, twice) {
		t.Errorf("it comes back otherwise: %s", cmp.Diff(string(raw), string(twice)))
	}
}

// Whoever edits a definition and leaves its digest is not believed.
func TestDecodeTakesDigestsAnew(t *testing.T) {
	m := Of(client.Introduction{Instructions: "a"}, &client.Lists{Tools: []client.Entry{{ID: "q", Definition: json.RawMessage(`{"name":"q","description":"old"}`)}}})
	raw, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	back, err := Decode([]byte(strings.ReplaceAll(string(raw), `"old"`, `"new"`)))
	if err != nil {
		t.Fatal(err)
	}
	if back.Tools[0].Digest == m.Tools[0].Digest || back.Tools[0].Digest != back.Tools[0].Tool.Digest {
		t.Errorf("the digest is %s", back.Tools[0].Digest)
	}
}

func TestDecodeRefuses(t *testing.T) {
	for _, raw := range []string{"", "[]", `{"manifest":"other/v9"}`, `{"manifest":7}`, `{}`} {
		if _, err := Decode([]byte(raw)); err == nil {
			t.Errorf("%q is read", raw)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"manifest":"mcp.espalier.dev/catalog/v1","server":{"instructions":"x"},"tools":[{"id":"a","definition":{"name":"a","x":1.50}}]}`))
	f.Add([]byte(`{"manifest":"mcp.espalier.dev/catalog/v1","prompts":[{"id":"a"},{"id":"\ud800","definition":7}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := Decode(raw)
		if err != nil {
			return
		}
		once, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		back, err := Decode(once)
		if err != nil {
			t.Fatalf("%v of its own %s", err, once)
		}
		if twice, err := back.Encode(); err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("%v; %s is then %s", err, once, twice)
		}
	})
}
