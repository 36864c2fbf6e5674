// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package refusals

import (
	"bytes"
	"io"
	"net/http"
	"regexp"
	"strings"
)

// transport looks at the answers that pass it.
type transport struct {
	next     http.RoundTripper
	refusals *Refusals
}

// RoundTrip passes a request on.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(req)
	if err != nil {
		return resp, err
	}
	switch {
	case resp.StatusCode == http.StatusForbidden:
		t.forbidden(req, resp)
	case resp.StatusCode < http.StatusMultipleChoices && t.refusals.any():
		if what, ok := readOf(req); ok {
			t.refusals.allow(what)
		}
	}
	return resp, nil
}

// WrappedRoundTripper is for client-go, which looks for the innermost one.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

func (t *transport) forbidden(req *http.Request, resp *http.Response) {
	if what, ok := readOf(req); ok {
		t.refusals.deny(what)
		return
	}
	if verb, resource, ok := lacking(peek(resp)); ok {
		t.refusals.total.WithLabelValues(verb, resource).Inc()
	}
}

// maxRefusal bounds what is read of an answer to find the right that lacks.
const maxRefusal = 64 << 10

// peek reads the beginning of an answer and leaves the answer as it was.
func peek(resp *http.Response) []byte {
	start, err := io.ReadAll(io.LimitReader(resp.Body, maxRefusal))
	rest := resp.Body
	var after io.Reader = rest
	if err != nil {
		after = &failing{err}
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(start), after), rest}
	return start
}

// failing fails as reading did before.
type failing struct{ err error }

func (f *failing) Read([]byte) (int, error) { return 0, f.err }

// cannot is how every authorizer's refusal is worded, in JSON or protobuf:
// User "x" cannot get resource "pods/status" in API group "" ...
// Admission refuses in other words: no right lacks then.
var cannot = regexp.MustCompile(`cannot ([a-z]+) (?:resource|path) \\?"([^"\\]+)\\?"(?: in API group \\?"([^"\\]*)\\?")?`)

// lacking gives the right that an answer says is lacking.
func lacking(body []byte) (verb, resource string, ok bool) {
	m := cannot.FindSubmatch(body)
	if m == nil {
		return "", "", false
	}
	return string(m[1]), Resource(string(m[2]), string(m[3])), true
}

// Resource names a resource, with or without a subresource, as kubectl does:
// "deployments.apps", "mcpservers.mcp.espalier.dev/status".
func Resource(resource, group string) string {
	if group == "" {
		return resource
	}
	name, sub, ok := strings.Cut(resource, "/")
	if !ok {
		return name + "." + group
	}
	return name + "." + group + "/" + sub
}

// readOf tells what a request lists or watches, if it does. A path is
// [PREFIX]/api/v1/[namespaces/NS/]RESOURCE or [PREFIX]/apis/GROUP/VERSION/....
func readOf(req *http.Request) (read, bool) {
	if req.Method != http.MethodGet {
		return read{}, false
	}
	path, group := req.URL.Path, ""
	core, named := strings.Index(path, "/api/"), strings.Index(path, "/apis/")
	switch {
	case core >= 0 && (named < 0 || core < named):
		path = path[core+len("/api/"):]
	case named >= 0:
		group, path, _ = strings.Cut(path[named+len("/apis/"):], "/")
	default:
		return read{}, false
	}
	parts := strings.Split(path, "/")[1:] // After the version.
	namespace := ""
	if len(parts) > 2 && parts[0] == "namespaces" {
		namespace, parts = parts[1], parts[2:]
	}
	if len(parts) != 1 || parts[0] == "" {
		return read{}, false
	}
	verb := "list"
	if w := req.URL.Query().Get("watch"); w == "true" || w == "1" {
		verb = "watch"
	}
	return read{verb, Resource(parts[0], group), namespace}, true
}
