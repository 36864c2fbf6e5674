// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpserver_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/espalier-dev/espalier/internal/mcpserver"
	"github.com/espalier-dev/espalier/internal/podreport"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

const petsDocument = `
openapi: 3.0.3
info: {title: Pets, version: '1'}
paths:
  /pets/{id}:
    parameters: [{name: id, in: path, required: true, schema: {type: string}}]
    get:
      operationId: getPet
      parameters:
      - {name: kinds, in: query, explode: false, schema: {type: array, items: {type: string}}}
      - {name: ids, in: query, schema: {type: array, items: {type: integer}}}
      - {name: where, in: query, style: deepObject, schema: {type: object, properties: {size: {type: string}}}}
      - {name: X-Trace, in: header, schema: {type: string}}
      responses:
        200: {description: A pet., content: {application/json: {schema: {$ref: '#/components/schemas/Pet'}}}}
    put:
      operationId: setPet
      requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/Pet'}}}}
      responses: {204: {description: Done.}}
  /photos: {post: {operationId: photo, requestBody: {required: true, content: {image/png: {}}}, responses: {}}}
  /form:
    post:
      operationId: order
      requestBody: {content: {application/x-www-form-urlencoded: {schema: {type: object, properties: {pet: {type: integer}, tags: {type: array, items: {type: string}}}}}}}
      responses: {202: {description: Accepted.}}
components:
  schemas:
    Pet: {type: object, required: [name], properties: {name: {type: string}, age: {type: integer}}}
`

// api is a backend with its own document.
type api struct {
	*httptest.Server
	mu       sync.Mutex
	document string
	// got are the requests, of the API and of the document.
	got, asked  []string
	notModified int
}

func newAPI(t *testing.T) *api {
	a := &api{document: petsDocument}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		defer a.mu.Unlock()
		if r.URL.Path == "/v1/openapi.yaml" {
			a.asked = append(a.asked, r.Header.Get("Authorization"))
			tag := fmt.Sprintf("%q", fmt.Sprint(len(a.document)))
			if r.Header.Get("If-None-Match") == tag {
				a.notModified++
				w.WriteHeader(http.StatusNotModified)
				return
			}
			w.Header().Set("ETag", tag)
			_, _ = io.WriteString(w, a.document)
			return
		}
		body, _ := io.ReadAll(r.Body)
		a.got = append(a.got, strings.TrimSpace(strings.Join([]string{r.Method, r.URL.RequestURI(), r.Header.Get("Authorization"), r.Header.Get("X-Trace"), string(body)}, " ")))
		switch {
		case r.URL.Path == "/pets/none":
			http.Error(w, "no such pet", http.StatusNotFound)
		case r.Method == http.MethodGet:
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"name":"Rex","age":null,"more":1}`)
		default:
			w.WriteHeader(http.StatusNoContent)
		}
	}))
	t.Cleanup(a.Close)
	return a
}

func (a *api) set(document string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.document = document
}

func (a *api) last() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.got) == 0 {
		return ""
	}
	return a.got[len(a.got)-1]
}

// upstream by the document's URL; its server is the origin itself.
func (a *api) upstream() serverconfig.Upstream {
	return serverconfig.Upstream{
		Name: "pets", Prefix: "p_", OpenAPI: &serverconfig.OpenAPI{DocumentURL: a.URL + "/v1/openapi.yaml"},
		Connection: serverconfig.Connection{Headers: []serverconfig.Value{{Name: "Authorization", Prefix: "Bearer ", File: "secrets/pets/token"}}},
	}
}

func documentEvery(d time.Duration) func(*mcpserver.Options) {
	return func(o *mcpserver.Options) {
		hurried(o)
		o.Upstreams.Document = d
	}
}

// key mounts one key of a Secret or ConfigMap.
func (f *fixture) key(path, value string) {
	f.t.Helper()
	full := filepath.Join(f.creds, path)
	must(f.t, os.MkdirAll(filepath.Dir(full), 0o755))
	next := full + ".next"
	must(f.t, os.WriteFile(next, []byte(value), 0o644))
	must(f.t, os.Rename(next, full))
}

func TestOpenAPI(t *testing.T) {
	a := newAPI(t)
	f := start(t, config(tool("own", nil)), documentEvery(20*time.Millisecond))
	f.key("secrets/pets/token", "s3cret\n")
	f.reload(fronting(a.upstream()))
	f.lists("own", "p_getPet", "p_order", "p_setPet")
	want := []podreport.Upstream{{
		Name: "pets", State: podreport.UpstreamReady, Tools: 3, Skipped: 1, SkippedNames: []podreport.Skipped{{Name: "p_photo", Reason: "UnsupportedMediaType"}},
	}}
	if diff := cmp.Diff(want, f.server.Report().Upstreams); diff != "" {
		t.Error(diff)
	}
	for _, test := range []struct{ name, args, request, answer string }{
		{"p_getPet", `{"id":"a/b","kinds":["x","y,z"],"ids":[1,2],"where":{"size":"big"},"X-Trace":"t1"}`,
			"GET /pets/a%2Fb?kinds=x,y%2Cz&ids=1&ids=2&where%5Bsize%5D=big Bearer s3cret t1", `{"name":"Rex","age":null,"more":1}`},
		{"p_getPet", `{"id":"none"}`, "GET /pets/none Bearer s3cret", "HTTP 404 Not Found: no such pet"},
		{"p_setPet", `{"id":"1","body":{"name":"Rex", "age":1}}`, `PUT /pets/1 Bearer s3cret  {"name":"Rex", "age":1}`, ""},
		{"p_setPet", `{"id":"2"}`, "PUT /pets/2 Bearer s3cret", ""},
		{"p_order", `{"body":{"pet":7,"tags":["a","b c"]}}`, "POST /form Bearer s3cret  pet=7&tags=a&tags=b+c", ""},
	} {
		for era, request := range map[string]*http.Request{
			"modern": f.callModern(test.name, test.args),
			"legacy": f.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + test.name + `","arguments":` + test.args + `}}`),
		} {
			got := f.do(request)
			if got.text() != test.answer || a.last() != test.request || got.result()["isError"] == true != strings.HasPrefix(test.answer, "HTTP 4") {
				t.Errorf("%s %s: sent %q, answered %s", era, test.name, a.last(), got.body)
			}
			if structured := got.result()["structuredContent"]; strings.HasPrefix(test.answer, "{") && structured == nil {
				t.Errorf("%s %s: %s has no structured content", era, test.name, got.body)
			}
		}
	}
	for args, reason := range map[string]string{
		`{"id":".."}`: "InvalidArguments", `{"id":"1","host":"evil"}`: "InvalidArguments", `{}`: "InvalidArguments", `{"id":"1","X-Trace":"a\r\nb: c"}`: "InvalidArguments",
		`{"id":"1","body":{}}`: "InvalidArguments",
	} {
		name := "p_getPet"
		if strings.Contains(args, "body") {
			name = "p_setPet"
		}
		if got := f.do(f.callModern(name, args)); got.reason() != reason {
			t.Errorf("%s gives %s", args, got.body)
		}
	}
	// A new token counts at the next call.
	f.key("secrets/pets/token", "fresh")
	f.until("the new token", func() bool {
		f.do(f.callModern("p_getPet", `{"id":"1"}`))
		return a.last() == "GET /pets/1 Bearer fresh"
	})
}

func TestOpenAPIDocumentChanges(t *testing.T) {
	a := newAPI(t)
	f := start(t, config(tool("own", nil)), documentEvery(20*time.Millisecond))
	f.key("secrets/pets/token", "t")
	f.reload(fronting(a.upstream()))
	f.lists("own", "p_getPet", "p_order", "p_setPet")
	f.until("a conditional request", func() bool { a.mu.Lock(); defer a.mu.Unlock(); return a.notModified > 1 })

	a.set("this is no document")
	f.until("word of it", func() bool { return f.upstreams() == "pets Unavailable 3 InvalidDocument" })
	f.lists("own", "p_getPet", "p_order", "p_setPet")
	if got := f.do(f.callModern("p_getPet", `{"id":"1"}`)); got.text() == "" {
		t.Errorf("the old tools do not answer: %s", got.body)
	}
	a.set(strings.Replace(petsDocument, "operationId: order", "operationId: buy", 1))
	f.lists("own", "p_buy", "p_getPet", "p_setPet")
	f.until("word of that", func() bool { return f.upstreams() == "pets Ready 3" })

	// Other rules make other tools of it.
	u := a.upstream()
	u.Include, u.Exclude = []string{"*Pet", "photo"}, []string{"set*"}
	f.reload(fronting(u))
	f.lists("own", "p_getPet")
}

func TestOpenAPIFromConfigMap(t *testing.T) {
	a := newAPI(t)
	u := a.upstream()
	u.OpenAPI = &serverconfig.OpenAPI{DocumentFile: "configmaps/pets/openapi.yaml"}
	f := start(t, config(tool("own", nil)), hurried)
	f.key("secrets/pets/token", "t")
	f.reload(fronting(u))
	f.until("word of the lack", func() bool { return f.upstreams() == "pets Unavailable 0 CredentialMissing" })
	f.key("configmaps/pets/openapi.yaml", petsDocument)
	// It names no server, and is relative to nothing.
	f.until("word of the server", func() bool { return f.upstreams() == "pets Unavailable 0 NoServer" })
	u.URL = a.URL + "/api/"
	f.reload(fronting(u))
	f.lists("own", "p_getPet", "p_order", "p_setPet")
	if f.do(f.callModern("p_setPet", `{"id":"1"}`)); a.last() != "PUT /api/pets/1 Bearer t" {
		t.Errorf("sent %s", a.last())
	}
	f.key("configmaps/pets/openapi.yaml", strings.Replace(petsDocument, "operationId: order", "operationId: buy", 1))
	f.lists("own", "p_buy", "p_getPet", "p_setPet")
}

// TestOpenAPITrust: a document does not decide where credentials go.
func TestOpenAPITrust(t *testing.T) {
	a, other := newAPI(t), newAPI(t)
	a.set(petsDocument + "servers: [{url: '" + other.URL + "'}]\n")
	f := start(t, config(tool("own", nil)), documentEvery(20*time.Millisecond))
	f.key("secrets/pets/token", "s3cret")
	u := a.upstream()
	f.reload(fronting(u))
	f.until("refusal", func() bool { return f.upstreams() == "pets Unavailable 0 UntrustedServer" })
	// Named by the owner it is well, and the document's host gets nothing.
	u.URL = other.URL
	f.reload(fronting(u))
	f.lists("own", "p_getPet", "p_order", "p_setPet")
	a.mu.Lock()
	if last := a.asked[len(a.asked)-1]; last != "" {
		t.Errorf("the document was asked for with %q", last)
	}
	a.mu.Unlock()
	if f.do(f.callModern("p_getPet", `{"id":"1"}`)); other.last() != "GET /pets/1 Bearer s3cret" {
		t.Errorf("sent %s", other.last())
	}
}
