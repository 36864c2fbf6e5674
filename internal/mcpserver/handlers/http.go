// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/internal/expression"
	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/mcpserver/outbound"
	"github.com/espalier-dev/espalier/internal/schema"
	"github.com/espalier-dev/espalier/internal/serverconfig"
	"github.com/espalier-dev/espalier/internal/urltemplate"
)

// defaultTimeout of one attempt where the declaration gives none.
const defaultTimeout = 30 * time.Second

var (
	methods     = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}
	queryMethod = map[string]bool{http.MethodGet: true, http.MethodHead: true, http.MethodDelete: true}
	idempotent  = map[string]bool{http.MethodGet: true, http.MethodHead: true, http.MethodPut: true, http.MethodDelete: true}
)

// httpHandler calls one HTTP endpoint.
type httpHandler struct {
	factory *Factory
	tool    string
	method  string
	target  *urltemplate.Template
	// path holds the values of placeholders that are not simply arguments.
	path    map[string]*value
	query   []value
	headers []value
	body    *body
	// defaultQuery and defaultBody: the arguments that stand nowhere in the
	// path make up that part.
	defaultQuery, defaultBody bool
	input                     *schema.Schema
	inPath                    map[string]bool
	timeout                   time.Duration
	retries                   int
	result                    *result
	tls                       *serverconfig.TLS
	authorizer                *outbound.Authorizer
	// operation maps the arguments in place of all of the above, if it is set.
	operation *operation
}

func (f *Factory) newHTTP(tool *serverconfig.Tool, input *schema.Schema) (*httpHandler, error) {
	d := tool.HTTP
	h := &httpHandler{
		factory: f, tool: tool.Name, method: strings.ToUpper(d.Method), input: input,
		timeout: time.Duration(d.TimeoutSeconds) * time.Second, retries: int(d.Retries), tls: d.TLS,
		authorizer: f.Authorizer(&d.Connection),
	}
	if h.method == "" {
		h.method = http.MethodGet
	}
	if !slices.Contains(methods, h.method) {
		return nil, fmt.Errorf("the method %.20q is not one of %s", d.Method, strings.Join(methods, ", "))
	}
	if h.timeout <= 0 {
		h.timeout = defaultTimeout
	}
	if !idempotent[h.method] {
		h.retries = 0
	}
	var err error
	if h.target, err = urltemplate.Parse(d.URL); err != nil {
		return nil, err
	}
	if err := h.compileParts(d); err != nil {
		return nil, err
	}
	if h.result, err = compileResult(tool.Name, expression.Response, d.Result); err != nil {
		return nil, err
	}
	return h, nil
}

func (h *httpHandler) compileParts(d *serverconfig.HTTP) error {
	var err error
	if err = h.compilePath(d.Path); err != nil {
		return err
	}
	if h.query, err = compileValues("query", d.Query, expression.ScalarOrList); err != nil {
		return err
	}
	for _, q := range h.query {
		if q.name == "" {
			return errors.New("a query value needs a name")
		}
	}
	if h.headers, err = compileValues("headers", d.Headers, expression.Scalar); err != nil {
		return err
	}
	if err = checkHeaderNames(h.headers); err != nil {
		return err
	}
	if d.Body != nil {
		if queryMethod[h.method] && h.method != http.MethodDelete {
			return fmt.Errorf("a %s request has no body", h.method)
		}
		if h.body, err = compileBody(d.Body); err != nil {
			return err
		}
	}
	h.defaultQuery = queryMethod[h.method] && !d.QuerySet && len(d.Query) == 0
	h.defaultBody = !queryMethod[h.method] && d.Body == nil
	return nil
}

func (h *httpHandler) compilePath(declared []serverconfig.Value) error {
	names := h.target.Placeholders()
	values, err := compileValues("path", declared, expression.Scalar)
	if err != nil {
		return err
	}
	h.path = map[string]*value{}
	for i := range values {
		if !names[values[i].name] {
			return fmt.Errorf("path[%s]: the url has no such placeholder", values[i].name)
		}
		h.path[values[i].name] = &values[i]
	}
	h.inPath = map[string]bool{}
	for name := range names {
		if h.path[name] != nil {
			continue
		}
		if !h.input.Expects(name) {
			return fmt.Errorf("the placeholder {%s} is no property of inputSchema", name)
		}
		h.inPath[name] = true
	}
	return nil
}

// Call implements call.Handler.
func (h *httpHandler) Call(ctx context.Context, c *call.Call) (*call.Result, error) {
	client, err := h.factory.clients.get(h.tls)
	if err != nil {
		return nil, err
	}
	request, err := h.prepare(ctx, c)
	if err != nil {
		return nil, err
	}
	answer, err := h.send(ctx, h.authorizer.Client(client, c.Caller), request, c.MaxBytes)
	if err != nil {
		return nil, err
	}
	return h.answer(ctx, c, answer)
}
