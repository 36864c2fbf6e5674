// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"flag"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/catalog"
	"github.com/espalier-dev/espalier/internal/mcpserver"
	"github.com/espalier-dev/espalier/internal/serverconfig"
	"github.com/espalier-dev/espalier/test/apiserver"
	"github.com/espalier-dev/espalier/test/conformance/upstream"
)

// wait serves the fixtures for somebody else's client, the suite for example,
// at the ports whose origins the fixtures allow. -era pins the upstream.
//
//	go test ./test/conformance -run TestServe -wait 10m -v
var (
	wait = flag.Duration("wait", 0, "how long to serve the fixtures")
	era  = flag.String("era", string(upstream.Auto), "era of the upstream: Auto, Legacy or Modern")
)

// The servers of the fixtures: the one with all entries, and one that has
// that one for its only upstream.
const (
	direct = "conformance"
	front  = "conformance-front"
)

// world is what the fixtures' YAML says, and what of it runs.
type world struct {
	servers       map[string]*mcpv1.MCPServer
	registrations []mcpv1.Registration
	// urls of what runs, by server.
	urls map[string]string
	// watched is the file that test://watched-resource is read from.
	watched string
}

// load reads the fixtures and starts the one that is a program.
func load(t *testing.T) *world {
	t.Helper()
	files, err := filepath.Glob("fixtures/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(err, files)
	}
	w := &world{servers: map[string]*mcpv1.MCPServer{}, urls: map[string]string{}}
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
			w.add(t, object.GetKind(), raw)
		}
	}
	fixtures, err := upstream.New(upstream.Era(*era))
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(fixtures)
	t.Cleanup(web.Close)
	t.Cleanup(fixtures.Close)
	w.servers[direct].Spec.Upstreams[0].URL = web.URL
	return w
}

func (w *world) add(t *testing.T, kind string, raw []byte) {
	t.Helper()
	decode := func(into any) {
		t.Helper()
		if err := yaml.UnmarshalStrict(raw, into); err != nil {
			t.Fatal(err)
		}
	}
	var r mcpv1.Registration
	switch kind {
	case "MCPServer":
		server := &mcpv1.MCPServer{}
		decode(server)
		server.Spec.Type = mcpv1.TypeTools
		w.servers[server.Name] = server
		return
	case "MCPTool":
		r = &mcpv1.MCPTool{}
	case "MCPResource":
		r = &mcpv1.MCPResource{}
	case "MCPPrompt":
		r = &mcpv1.MCPPrompt{}
	default:
		return // What runs the fixtures in a cluster.
	}
	decode(r)
	w.registrations = append(w.registrations, r)
}

// serve starts a server of the fixtures and gives its URL.
func (w *world) serve(t *testing.T, name string) string {
	t.Helper()
	server := w.servers[name]
	var compiled []*catalog.Compiled
	for _, r := range w.registrations {
		if catalog.Selects(r, server) {
			compiled = append(compiled, catalog.Compile(r))
		}
	}
	built := catalog.Build(server, compiled, serverconfig.ProbeTrust{})
	for id, v := range built.Verdicts {
		if !v.Accepted {
			t.Errorf("%s: %s", id, v.Message)
		}
	}
	upstreams := catalog.ResolveUpstreams(server,
		func(name string) *mcpv1.MCPServer { return w.servers[name] },
		func(s *mcpv1.MCPServer) string { return w.urls[s.Name] })
	built.AddUpstreams(server, upstreams)
	root := t.TempDir()
	set, err := serverconfig.Cut(built.Config)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(root, "catalog", serverconfig.IndexKey), set.Index)
	for i, key := range set.Keys {
		write(t, filepath.Join(root, "catalog", key), set.Parts[i])
	}
	if name == direct {
		w.watched = filepath.Join(root, "credentials", "configmaps", "conformance", "watched.txt")
		write(t, w.watched, []byte("Watched resource content"))
	}
	listen := "127.0.0.1:0"
	if *wait > 0 {
		listen = map[string]string{direct: "127.0.0.1:28080", front: "127.0.0.1:28081"}[name]
	}
	s := mcpserver.New(mcpserver.Options{
		CatalogDir: filepath.Join(root, "catalog"), CredentialsDir: filepath.Join(root, "credentials"),
		Listen: listen, InternalListen: "127.0.0.1:0", ShutdownTimeout: time.Second, Version: "test",
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
	w.urls[name] = "http://" + s.Addr().String() + "/mcp"
	return w.urls[name]
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

// TestServe serves for as long as -wait says.
func TestServe(t *testing.T) {
	if *wait == 0 {
		t.Skip("serves for others: -wait says how long")
	}
	w := load(t)
	t.Logf("direct at %s, front at %s", w.serve(t, direct), w.serve(t, front))
	t.Logf("test://watched-resource is %s", w.watched)
	time.Sleep(*wait)
}
