// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package conformance serves what the public conformance suite wants of
// declared entries, from YAML to the wire, and checks it with an independent
// client in every revision.
package conformance

import (
	"context"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	text = "This is the content of the static text resource."
	soon = 20 * time.Second
)

func TestFixtures(t *testing.T) {
	w := load(t)
	for _, name := range []string{direct, front} {
		url := w.serve(t, name)
		t.Run(name, func(t *testing.T) { checkServer(t, w, url) })
	}
}

// checkedWithin is for all that one client asks, on a machine that has much to do.
const checkedWithin = 2 * time.Minute

// checkServer looks at all that is declared, in every revision.
func checkServer(t *testing.T, w *world, url string) {
	t.Helper()
	for _, version := range []string{"2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"} {
		t.Run(version, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), checkedWithin)
			defer cancel()
			updated := make(chan string, 10)
			client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
				ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) { updated <- r.Params.URI },
			})
			transport := &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{}, MaxRetries: -1}
			session, err := client.Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
			if err != nil {
				t.Fatal(err)
			}
			defer session.Close()
			checkResources(ctx, t, session)
			checkPrompts(ctx, t, session)
			checkCompletions(ctx, t, session)
			checkUpdates(ctx, t, session, w.watched, updated)
		})
	}
}

func checkResources(ctx context.Context, t *testing.T, session *mcp.ClientSession) {
	t.Helper()
	listed := map[string]string{}
	for r, err := range session.Resources(ctx, nil) {
		if err != nil {
			t.Fatal(err)
		}
		listed[r.URI] = r.MIMEType
	}
	if len(listed) != 3 || listed["test://static-binary"] != "image/png" {
		t.Errorf("listed %v", listed)
	}
	templates, err := session.ListResourceTemplates(ctx, nil)
	if err != nil || len(templates.ResourceTemplates) != 1 || templates.ResourceTemplates[0].URITemplate != "test://template/{id}/data" {
		t.Errorf("templates %+v, %v", templates, err)
	}
	read := func(uri string) *mcp.ResourceContents {
		t.Helper()
		result, err := session.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
		if err != nil || len(result.Contents) != 1 || result.Contents[0].URI != uri {
			t.Fatalf("%s: %+v, %v", uri, result, err)
		}
		return result.Contents[0]
	}
	if c := read("test://static-text"); c.Text != text || c.MIMEType != "text/plain" {
		t.Errorf("%+v", c)
	}
	if c := read("test://static-binary"); len(c.Blob) < 60 || string(c.Blob[1:4]) != "PNG" {
		t.Errorf("%+v", c)
	}
	if c := read("test://template/123/data"); c.Text != `{"id":"123","templateTest":true,"data":"Data for ID: 123"}` || c.MIMEType != "application/json" {
		t.Errorf("%+v", c)
	}
	if _, err := session.ReadResource(ctx, &mcp.ReadResourceParams{URI: "test://nope"}); err == nil {
		t.Error("an unknown resource was read")
	}
}

func checkPrompts(ctx context.Context, t *testing.T, session *mcp.ClientSession) {
	t.Helper()
	listed := map[string]bool{}
	for p, err := range session.Prompts(ctx, nil) {
		if err != nil {
			t.Fatal(err)
		}
		if listed[p.Name] = true; p.Name == "test_prompt_with_arguments" && (len(p.Arguments) != 2 || !p.Arguments[0].Required) {
			t.Errorf("%+v", p)
		}
	}
	// The program behind the server brings one more.
	for _, name := range []string{"test_simple_prompt", "test_prompt_with_arguments", "test_prompt_with_embedded_resource", "test_prompt_with_image", "test_input_required_result_prompt"} {
		if !listed[name] {
			t.Errorf("%s is not listed", name)
		}
	}
	get := func(name string, args map[string]string) []*mcp.PromptMessage {
		t.Helper()
		result, err := session.GetPrompt(ctx, &mcp.GetPromptParams{Name: name, Arguments: args})
		if err != nil || len(result.Messages) == 0 || result.Messages[0].Role != "user" {
			t.Fatalf("%s: %+v, %v", name, result, err)
		}
		return result.Messages
	}
	if m := get("test_simple_prompt", nil); m[0].Content.(*mcp.TextContent).Text != "This is a simple prompt for testing." {
		t.Errorf("%+v", m)
	}
	if m := get("test_prompt_with_arguments", map[string]string{"arg1": "a", "arg2": "b"}); m[0].Content.(*mcp.TextContent).Text != "Prompt with arguments: arg1='a', arg2='b'" {
		t.Errorf("%+v", m[0].Content)
	}
	m := get("test_prompt_with_embedded_resource", map[string]string{"resourceUri": "test://example"})
	if r := m[0].Content.(*mcp.EmbeddedResource).Resource; len(m) != 2 || r.URI != "test://example" || r.Text != "Embedded resource content for testing." {
		t.Errorf("%+v", r)
	}
	if m := get("test_prompt_with_image", nil); m[0].Content.(*mcp.ImageContent).MIMEType != "image/png" {
		t.Errorf("%+v", m[0].Content)
	}
	for name, args := range map[string]map[string]string{
		"nope": nil, "test_prompt_with_arguments": {"arg1": "a"}, "test_simple_prompt": {"x": "y"},
	} {
		if _, err := session.GetPrompt(ctx, &mcp.GetPromptParams{Name: name, Arguments: args}); err == nil {
			t.Errorf("%s with %v gave a prompt", name, args)
		}
	}
}

func checkCompletions(ctx context.Context, t *testing.T, session *mcp.ClientSession) {
	t.Helper()
	complete := func(ref *mcp.CompleteReference, name, value string) []string {
		t.Helper()
		result, err := session.Complete(ctx, &mcp.CompleteParams{Ref: ref, Argument: mcp.CompleteParamsArgument{Name: name, Value: value}})
		if err != nil {
			t.Fatal(err)
		}
		return result.Completion.Values
	}
	if got := complete(&mcp.CompleteReference{Type: "ref/prompt", Name: "test_prompt_with_arguments"}, "arg1", "PAR"); len(got) != 3 || got[0] != "paris" {
		t.Errorf("%v", got)
	}
	if got := complete(&mcp.CompleteReference{Type: "ref/resource", URI: "test://template/{id}/data"}, "id", "12"); len(got) != 2 {
		t.Errorf("%v", got)
	}
}

// checkUpdates: a changed source is told to who subscribed, and read anew.
func checkUpdates(ctx context.Context, t *testing.T, session *mcp.ClientSession, watched string, updated <-chan string) {
	t.Helper()
	const uri = "test://watched-resource"
	if err := session.Subscribe(ctx, &mcp.SubscribeParams{URI: uri}); err != nil {
		t.Fatal(err)
	}
	content := "Something else for " + t.Name()
	write(t, watched+".new", []byte(content))
	if err := os.Rename(watched+".new", watched); err != nil {
		t.Fatal(err)
	}
	select {
	case got := <-updated:
		if got != uri {
			t.Errorf("told of %s", got)
		}
	case <-ctx.Done():
		t.Fatal("the change was not told")
	}
	result, err := session.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
	if err != nil || result.Contents[0].Text != content {
		t.Errorf("%+v, %v", result, err)
	}
}
