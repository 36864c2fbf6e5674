// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/espalier-dev/espalier/internal/expression"
	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/mcpserver/credentials"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
	"github.com/espalier-dev/espalier/internal/schema"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// MakeResource implements registry.ResourceFactory.
func (f *Factory) MakeResource(r *serverconfig.Resource, variables []string) (call.Handler, error) {
	if r.Upstream != nil {
		if f.Upstreams == nil {
			return nil, errNoUpstreams
		}
		return f.Upstreams.Resource(r.Upstream), nil
	}
	ways := 0
	for _, set := range []bool{r.Text != nil, r.Blob != nil, r.File != "", r.HTTP != nil, r.Expression != nil && r.HTTP == nil} {
		if set {
			ways++
		}
	}
	if ways != 1 {
		return nil, errors.New("a resource has exactly one source")
	}
	switch {
	case r.Text != nil:
		return literal(orElse(r.MIMEType, mediaPlain), *r.Text), nil
	case r.Blob != nil:
		return literal(orElse(r.MIMEType, mediaBinary), r.Blob), nil
	case r.File != "":
		return &fileResource{store: f.credentials, path: r.File, mimeType: r.MIMEType}, nil
	case r.HTTP != nil:
		return f.newHTTPResource(r, variables)
	}
	content, err := compileContent(expression.Call, r.Expression)
	if err != nil {
		return nil, err
	}
	return call.Func(func(ctx context.Context, c *call.Call) (*call.Result, error) {
		value, err := content.eval(ctx, c.Vars())
		if err != nil {
			return nil, err
		}
		return contents(c.URI, content.mimeType(r.MIMEType), value), nil
	}), nil
}

const (
	mediaPlain  = "text/plain"
	mediaBinary = "application/octet-stream"
)

func orElse(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

// literal gives what never changes.
func literal(mimeType string, value any) call.Handler {
	return call.Func(func(_ context.Context, c *call.Call) (*call.Result, error) {
		return contents(c.URI, mimeType, value), nil
	})
}

// contents is a resource's answer of one part: text for a string, else a blob.
func contents(uri, mimeType string, value any) *call.Result {
	return &call.Result{Content: append(appendContent([]byte{'['}, uri, mimeType, value), ']')}
}

// appendContent writes what resources/read and embedded resources share.
func appendContent(dst []byte, uri, mimeType string, value any) []byte {
	dst = append(dst, `{"uri":`...)
	dst = wire.AppendString(dst, uri)
	dst = appendMIMEType(dst, mimeType)
	switch value := value.(type) {
	case string:
		dst = wire.AppendField(dst, "text", wire.AppendString(nil, value))
	case []byte:
		dst = append(dst, `,"blob":"`...)
		dst = base64.StdEncoding.AppendEncode(dst, value)
		dst = append(dst, '"')
	}
	return append(dst, '}')
}

// textOrBlob decides by the media type and the bytes: what is called binary is
// a blob, what is no UTF-8 too, all else is text. It gives the media type to
// show as well.
func textOrBlob(data []byte, mimeType string) (any, string) {
	valid := utf8.Valid(data) && !slices.Contains(data, 0)
	switch {
	case mimeType == "" && valid:
		return string(data), mediaPlain
	case mimeType == "":
		return data, mediaBinary
	case valid && !isBinaryType(mimeType):
		return string(data), mimeType
	default:
		return data, mimeType
	}
}

func isBinaryType(mimeType string) bool {
	base, _, err := mime.ParseMediaType(mimeType)
	if err != nil || strings.HasSuffix(base, "+xml") || strings.HasSuffix(base, "+json") {
		return false
	}
	kind, _, _ := strings.Cut(base, "/")
	switch kind {
	case "image", "audio", "video", "font", "model":
		return true
	}
	switch base {
	case mediaBinary, "application/pdf", "application/zip", "application/gzip", "application/wasm":
		return true
	}
	return false
}

// fileResource reads a mounted key, live.
type fileResource struct {
	store    *credentials.Store
	path     string
	mimeType string

	mu   sync.Mutex
	seen []byte // the very slice that sum is of
	sum  string
}

// Call implements call.Handler.
func (r *fileResource) Call(_ context.Context, c *call.Call) (*call.Result, error) {
	data, err := r.store.Bytes(r.path)
	if err != nil {
		return nil, credentialFailure(err)
	}
	if int64(len(data)) > c.MaxBytes {
		return nil, call.Fail(call.ResultTooLarge, "the resource is larger than %d bytes", c.MaxBytes)
	}
	value, mimeType := textOrBlob(data, r.mimeType)
	return contents(c.URI, mimeType, value), nil
}

// Version implements registry.Live. The store gives the same slice as long as
// the file stays.
func (r *fileResource) Version() string {
	data, err := r.store.Bytes(r.path)
	if err != nil {
		return "missing"
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sum == "" || len(r.seen) != len(data) || len(data) > 0 && &r.seen[0] != &data[0] {
		sum := sha256.Sum256(data)
		r.seen, r.sum = data, hex.EncodeToString(sum[:])
	}
	return r.sum
}

// resourceContent is a compiled serverconfig.ResourceContent.
type resourceContent struct {
	program *expression.Program
	blob    bool
}

func compileContent(scope expression.Scope, declared *serverconfig.ResourceContent) (*resourceContent, error) {
	src, kind, blob := declared.Text, expression.String, false
	if declared.Blob != "" {
		if src != "" {
			return nil, errors.New("content has one of text and blob")
		}
		src, kind, blob = declared.Blob, expression.StringOrBytes, true
	}
	program, err := expression.Compile(scope, src, kind)
	if err != nil {
		return nil, fmt.Errorf("expression: %w", err)
	}
	return &resourceContent{program: program, blob: blob}, nil
}

func (r *resourceContent) mimeType(declared string) string {
	if r.blob {
		return orElse(declared, mediaBinary)
	}
	return orElse(declared, mediaPlain)
}

// eval gives a string for text, bytes for a blob.
func (r *resourceContent) eval(ctx context.Context, vars map[string]any) (any, error) {
	value, err := evalProgram(ctx, r.program, vars)
	if err != nil || !r.blob {
		return value, err
	}
	return asBytes(value, "a blob")
}

// asBytes takes bytes as they are and text as base64.
func asBytes(value any, what string) ([]byte, error) {
	if data, ok := value.([]byte); ok {
		return data, nil
	}
	text, _ := value.(string)
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, call.Fail(call.InvalidResult, "the expression of %s gave text that is not base64", what)
	}
	return data, nil
}

// httpResource reads a resource by GET.
type httpResource struct {
	*httpHandler
	content  *resourceContent // nil: the body
	declared string
}

func (f *Factory) newHTTPResource(r *serverconfig.Resource, variables []string) (call.Handler, error) {
	properties := map[string]any{}
	for _, v := range variables {
		properties[v] = map[string]any{"type": "string"}
	}
	raw, err := json.Marshal(map[string]any{"type": "object", "properties": properties})
	if err != nil {
		return nil, err
	}
	input, err := schema.CompileInput(raw)
	if err != nil {
		return nil, err
	}
	h, err := f.newHTTP(&serverconfig.Tool{Name: r.URI, HTTP: r.HTTP}, input)
	if err != nil {
		return nil, err
	}
	if h.method != http.MethodGet {
		return nil, errors.New("a resource is read by GET")
	}
	out := &httpResource{httpHandler: h, declared: r.MIMEType}
	if r.Expression != nil {
		if out.content, err = compileContent(expression.Response, r.Expression); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Call implements call.Handler.
func (h *httpResource) Call(ctx context.Context, c *call.Call) (*call.Result, error) {
	client, err := h.factory.clients.get(h.tls)
	if err != nil {
		return nil, err
	}
	request, err := h.prepare(ctx, c)
	if err != nil {
		return nil, err
	}
	got, err := h.send(ctx, h.authorizer.Client(client, c.Caller), request, c.MaxBytes)
	switch {
	case err != nil:
		return nil, err
	case got.status == http.StatusNotFound || got.status == http.StatusGone:
		return nil, call.Fail(call.NotFound, "the backend has no such resource")
	case got.status < 200 || got.status > 299:
		return nil, call.Fail(call.BackendFailed, "the backend answered HTTP %d", got.status)
	}
	if h.content != nil {
		vars := c.Vars()
		vars["response"] = responseVar(got)
		value, err := h.content.eval(ctx, vars)
		if err != nil {
			return nil, err
		}
		return contents(c.URI, h.content.mimeType(h.declared), value), nil
	}
	value, mimeType := textOrBlob(got.body, orElse(h.declared, baseType(got)))
	return contents(c.URI, mimeType, value), nil
}

// baseType is the media type of an answer without its parameters; empty when
// there is none that is well formed.
func baseType(a *answer) string {
	base, _, err := mime.ParseMediaType(a.header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return base
}

// ResourceFiles gives the mounted files that a resource's handler reads.
func ResourceFiles(r *serverconfig.Resource) []string {
	out := Files(&serverconfig.Tool{HTTP: r.HTTP})
	if r.File != "" {
		out = append(out, r.File)
	}
	return out
}
