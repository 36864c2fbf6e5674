// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package conformance serves what the public conformance suite wants of
// declared entries, from YAML to the wire, and checks it with an independent
// client in every revision.
package conformance

import (
	"context"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/catalog"
	"github.com/espalier-dev/espalier/internal/mcpserver"
	"github.com/espalier-dev/espalier/internal/serverconfig"
	"github.com/espalier-dev/espalier/test/apiserver"
)

// wait keeps the server up for somebody else's client:
// go test ./test/conformance -run TestFixtures -wait 10m -v
var wait = flag.Duration("wait", 0, "how long to serve the fixtures after the test")

const (
	text = "This is the content of the static text resource."
	soon = 20 * time.Second
)

// serve starts a server with all fixtures and gives its address and the file
// that test://watched-resource is read from.
func serve(t *testing.T) (url, watched string) {
	t.Helper()
	files, err := filepath.Glob("fixtures/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(err, files)
	}
	server := &mcpv1.MCPServer{ObjectMeta: metav1.ObjectMeta{Name: "conformance"}, Spec: mcpv1.MCPServerSpec{Type: mcpv1.TypeTools}}
	var compiled []*catalog.Compiled
	for _, file := range files {
		objects, err := apiserver.ReadObjects(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range objects {
			raw, err := yaml.Marshal(object.Object)
			if err != nil {
				t.Fatal(err)
			}
			var r mcpv1.Registration
			switch object.GetKind() {
			case "MCPResource":
				r = &mcpv1.MCPResource{}
			case "MCPPrompt":
				r = &mcpv1.MCPPrompt{}
			default:
				r = &mcpv1.MCPTool{}
			}
			if err := yaml.UnmarshalStrict(raw, r); err != nil {
				t.Fatal(err)
			}
			compiled = append(compiled, catalog.Compile(r))
		}
	}
	built := catalog.Build(server, compiled, serverconfig.ProbeTrust{})
	for id, v := range built.Verdicts {
		if !v.Accepted {
			t.Errorf("%s: %s", id, v.Message)
		}
	}
	root := t.TempDir()
	set, err := serverconfig.Cut(built.Config)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(root, "catalog", serverconfig.IndexKey), set.Index)
	for i, key := range set.Keys {
		write(t, filepath.Join(root, "catalog", key), set.Parts[i])
	}
	watched = filepath.Join(root, "credentials", "configmaps", "conformance", "watched.txt")
	write(t, watched, []byte("Watched resource content"))
	s := mcpserver.New(mcpserver.Options{
		CatalogDir: filepath.Join(root, "catalog"), CredentialsDir: filepath.Join(root, "credentials"),
		Listen: "127.0.0.1:0", InternalListen: "127.0.0.1:0", ShutdownTimeout: time.Second, Version: "test",
	})
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop(context.Background()) })
	for deadline := time.Now().Add(soon); ; time.Sleep(2 * time.Millisecond) {
		if ok, why := s.Ready(); ok {
			break
		} else if time.Now().After(deadline) {
			t.Fatal(why)
		}
	}
	return "http://" + s.Addr().String() + "/mcp", watched
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestFixtures(t *testing.T) {
	url, watched := serve(t)
	for _, version := range []string{"2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"} {
		t.Run(version, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), soon)
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
			if version == "2026-07-28" {
				checkUpdates(ctx, t, session, watched, updated)
			}
		})
	}
	if *wait > 0 {
		t.Logf("serving at %s", url)
		time.Sleep(*wait)
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
	n := 0
	for p, err := range session.Prompts(ctx, nil) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; p.Name == "test_prompt_with_arguments" && (len(p.Arguments) != 2 || !p.Arguments[0].Required) {
			t.Errorf("%+v", p)
		}
	}
	if n != 4 {
		t.Errorf("%d prompts", n)
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
	write(t, watched+".new", []byte("Something else"))
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
	if err != nil || result.Contents[0].Text != "Something else" {
		t.Errorf("%+v, %v", result, err)
	}
}
