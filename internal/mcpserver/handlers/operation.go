// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/internal/expression"
	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
	"github.com/espalier-dev/espalier/internal/openapi"
	"github.com/espalier-dev/espalier/internal/schema"
	"github.com/espalier-dev/espalier/internal/serverconfig"
	"github.com/espalier-dev/espalier/internal/urltemplate"
)

// operation maps arguments as a document says.
type operation struct {
	*openapi.Request
	// byArg are the parameters of the path.
	byArg map[string]*openapi.Param
	// names of the query: what an object is taken apart into must not be one.
	names map[string]bool
}

// Operation makes the handler of one operation of an API. Headers of the
// connection win over those of the operation.
func (f *Factory) Operation(tool string, request *openapi.Request, connection *serverconfig.Connection) (call.Handler, error) {
	h := &httpHandler{
		factory: f, tool: tool, method: request.Method, timeout: defaultTimeout, tls: connection.TLS, input: schema.Unchecked(),
		authorizer: f.Authorizer(connection),
		operation:  &operation{Request: request, byArg: map[string]*openapi.Param{}, names: map[string]bool{}},
	}
	for i := range request.Params {
		switch p := &request.Params[i]; p.In {
		case openapi.InPath:
			h.operation.byArg[p.Arg] = p
		case openapi.InQuery:
			h.operation.names[p.Name] = true
		}
	}
	var err error
	if h.target, err = urltemplate.Parse(request.URL); err != nil {
		return nil, err
	}
	if h.headers, err = compileValues("headers", connection.Headers, expression.Scalar); err != nil {
		return nil, err
	}
	if err = checkHeaderNames(h.headers); err != nil {
		return nil, err
	}
	h.result, err = compileResult(tool, expression.Response, nil)
	return h, err
}

// segment gives the text of a placeholder, parts joined by commas.
func (o *operation) segment(c *call.Call, name string) (string, error) {
	p := o.byArg[name]
	value, ok := c.Args[name]
	if p == nil || !ok || value == nil {
		return "", call.Fail(call.InvalidArguments, "argument %q is missing, it stands in the path", name)
	}
	return simple(p, value)
}

// simple writes a value in style simple, or as JSON.
func simple(p *openapi.Param, value any) (string, error) {
	if p.Style == openapi.StyleJSON {
		raw, err := encode(value)
		return string(raw), err
	}
	var parts []string
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			text, err := partText(p, value[key])
			if err != nil {
				return "", err
			}
			if p.Explode {
				parts = append(parts, key+"="+text)
			} else {
				parts = append(parts, key, text)
			}
		}
	default:
		for _, element := range asList(value) {
			text, err := partText(p, element)
			if err != nil {
				return "", err
			}
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, ","), nil
}

// partText writes a scalar; what is nested deeper is JSON, null is nothing.
func partText(p *openapi.Param, value any) (string, error) {
	if value == nil {
		return "", nil
	}
	if text, ok := scalarText(value); ok {
		return text, nil
	}
	raw, err := encode(value)
	if err != nil {
		return "", call.Fail(call.InvalidArguments, "argument %.60q cannot be written", p.Arg)
	}
	return string(raw), nil
}

// setHeaders sets those of the operation.
func (o *operation) setHeaders(c *call.Call, header http.Header) error {
	for i := range o.Params {
		p := &o.Params[i]
		value, ok := c.Args[p.Arg]
		if p.In != openapi.InHeader || !ok || value == nil {
			continue
		}
		text, err := simple(p, value)
		if err != nil {
			return err
		}
		if !validHeaderValue(text) {
			return call.Fail(call.InvalidArguments, "argument %.60q holds a control character, it stands in a header", p.Arg)
		}
		header.Set(p.Name, text)
	}
	return nil
}

// query writes the query, in the order of the document.
func (o *operation) query(c *call.Call) (string, error) {
	var pairs []string
	for i := range o.Params {
		p := &o.Params[i]
		value, ok := c.Args[p.Arg]
		if p.In != openapi.InQuery || !ok || value == nil {
			continue
		}
		more, err := o.pairs(p, value)
		if err != nil {
			return "", err
		}
		pairs = append(pairs, more...)
	}
	return strings.Join(pairs, "&"), nil
}

func pair(name, text string) string { return url.QueryEscape(name) + "=" + url.QueryEscape(text) }

// pairs gives what one parameter is in the query.
func (o *operation) pairs(p *openapi.Param, value any) ([]string, error) {
	if p.Style == openapi.StyleJSON {
		text, err := simple(p, value)
		return []string{pair(p.Name, text)}, err
	}
	switch value := value.(type) {
	case map[string]any:
		return o.objectPairs(p, value)
	case []any:
		return listPairs(p, value)
	}
	text, err := partText(p, value)
	return []string{pair(p.Name, text)}, err
}

func listPairs(p *openapi.Param, list []any) ([]string, error) {
	var out, parts []string
	for _, element := range list {
		if element == nil {
			continue
		}
		text, err := partText(p, element)
		if err != nil {
			return nil, err
		}
		out, parts = append(out, pair(p.Name, text)), append(parts, url.QueryEscape(text))
	}
	if p.Explode || len(parts) == 0 {
		return out, nil
	}
	between := map[openapi.Style]string{openapi.StyleSpace: "%20", openapi.StylePipe: "%7C"}[p.Style]
	if between == "" {
		between = ","
	}
	return []string{url.QueryEscape(p.Name) + "=" + strings.Join(parts, between)}, nil
}

func (o *operation) objectPairs(p *openapi.Param, value map[string]any) ([]string, error) {
	if p.Style == openapi.StyleDeep {
		return deepPairs(p, p.Name, value)
	}
	var out, parts []string
	for _, key := range slices.Sorted(maps.Keys(value)) {
		if value[key] == nil {
			continue
		}
		if p.Explode && o.names[key] {
			return nil, call.Fail(call.InvalidArguments, "the member %.60q of argument %.60q would take the place of another parameter", key, p.Arg)
		}
		text, err := partText(p, value[key])
		if err != nil {
			return nil, err
		}
		out, parts = append(out, pair(key, text)), append(parts, url.QueryEscape(key), url.QueryEscape(text))
	}
	if p.Explode || len(parts) == 0 {
		return out, nil
	}
	return []string{url.QueryEscape(p.Name) + "=" + strings.Join(parts, ",")}, nil
}

// deepPairs writes name[key]=value, also of what is nested deeper; a list
// repeats the name.
func deepPairs(p *openapi.Param, name string, value any) ([]string, error) {
	switch value := value.(type) {
	case nil:
		return nil, nil
	case map[string]any:
		var out []string
		for _, key := range slices.Sorted(maps.Keys(value)) {
			more, err := deepPairs(p, name+"["+key+"]", value[key])
			if err != nil {
				return nil, err
			}
			out = append(out, more...)
		}
		return out, nil
	case []any:
		var out []string
		for _, element := range value {
			text, err := partText(p, element)
			if err != nil {
				return nil, err
			}
			out = append(out, pair(name, text))
		}
		return out, nil
	}
	text, err := partText(p, value)
	return []string{pair(name, text)}, err
}

// body writes the body; JSON stays as it was given.
func (o *operation) body(c *call.Call) (raw []byte, mediaType string, err error) {
	if o.Body == nil {
		return nil, "", nil
	}
	value, ok := c.Args[o.Body.Arg]
	if !ok {
		return nil, "", nil
	}
	switch o.Body.Kind {
	case openapi.BodyForm:
		raw, err = o.form(value)
	case openapi.BodyText:
		text, ok := scalarText(value)
		if !ok {
			return nil, "", call.Fail(call.InvalidArguments, "argument %q must be text", o.Body.Arg)
		}
		raw = []byte(text)
	default:
		fields, decodeErr := wire.DecodeObject(c.RawArgs)
		if decodeErr != nil {
			return nil, "", call.Fail(call.InvalidArguments, "the arguments cannot be read")
		}
		raw = slices.Clone(fields.Get(o.Body.Arg))
	}
	return raw, o.Body.MediaType, err
}

func (o *operation) form(value any) ([]byte, error) {
	fields, ok := value.(map[string]any)
	if !ok {
		return nil, call.Fail(call.InvalidArguments, "argument %q must be an object", o.Body.Arg)
	}
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		for _, element := range asList(fields[key]) {
			if element == nil {
				continue
			}
			text, err := partText(&openapi.Param{Arg: o.Body.Arg}, element)
			if err != nil {
				return nil, err
			}
			pairs = append(pairs, pair(key, text))
		}
	}
	return []byte(strings.Join(pairs, "&")), nil
}
