// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"encoding/json"
	"maps"
	"slices"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/expression"
	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/schema"
	"github.com/espalier-dev/espalier/internal/serverconfig"
	"github.com/espalier-dev/espalier/internal/urltemplate"
)

const (
	maxClientName         = mcp.MaxClientToolName
	defaultTimeoutSeconds = 30
)

// entry gives the catalog entry of an accepted tool.
func entry(tool *mcpv1.MCPTool, raw json.RawMessage) *serverconfig.Tool {
	return &serverconfig.Tool{
		Name:       ToolName(tool),
		Definition: raw,
		Source:     Source(tool.Name),
		Metadata:   tool.Spec.Metadata,
		HTTP:       httpHandler(tool.Spec.HTTP),
		Expression: result(tool.Spec.Expression),
		Upstream:   upstreamHandler(tool.Spec.Upstream),
	}
}

func upstreamHandler(h *mcpv1.UpstreamHandler) *serverconfig.UpstreamTool {
	if h == nil {
		return nil
	}
	return &serverconfig.UpstreamTool{Upstream: h.Name, Tool: h.Tool}
}

// Source of the tool that the MCPTool of this name declares.
func Source(object string) string { return "mcptool/" + object }

func httpHandler(h *mcpv1.HTTPHandler) *serverconfig.HTTP {
	if h == nil {
		return nil
	}
	out := &serverconfig.HTTP{
		Connection:     connection(&h.Connection),
		Method:         string(h.Method),
		Path:           parameters(h.Path),
		Query:          parameters(h.Query),
		QuerySet:       h.Query != nil,
		TimeoutSeconds: defaultTimeoutSeconds,
		Result:         result(h.Result),
	}
	if h.Body != nil {
		out.Body = &serverconfig.Body{Expression: h.Body.Expression, MediaType: h.Body.MediaType}
	}
	if h.TimeoutSeconds != nil {
		out.TimeoutSeconds = *h.TimeoutSeconds
	}
	if h.Retries != nil {
		out.Retries = *h.Retries
	}
	return out
}

func connection(c *mcpv1.Connection) serverconfig.Connection {
	out := serverconfig.Connection{URL: c.URL}
	for _, h := range c.Headers {
		v := serverconfig.Value{Name: h.Name, Prefix: h.Prefix, Value: h.Value, Expression: h.Expression}
		if r, ok := keyRef(h.SecretKeyRef, h.ConfigMapKeyRef); ok {
			v.File = r.Path()
		}
		out.Headers = append(out.Headers, v)
	}
	out.TLS = connectionTLS(c.TLS)
	out.Auth = outboundAuth(c)
	return out
}

func connectionTLS(t *mcpv1.ClientTLS) *serverconfig.TLS {
	if t == nil {
		return nil
	}
	out := &serverconfig.TLS{ServerName: t.ServerName}
	if t.CA != nil {
		if r, ok := keyRef(t.CA.SecretKeyRef, t.CA.ConfigMapKeyRef); ok {
			out.CAFile = r.Path()
		}
	}
	if ref := t.ClientCertificateRef; ref != nil {
		out.CertFile = Ref{Kind: RefSecret, Name: ref.Name, Key: "tls.crt"}.Path()
		out.KeyFile = Ref{Kind: RefSecret, Name: ref.Name, Key: "tls.key"}.Path()
	}
	return out
}

func parameters(in []mcpv1.Parameter) []serverconfig.Value {
	var out []serverconfig.Value
	for _, p := range in {
		out = append(out, serverconfig.Value{Name: p.Name, Value: p.Value, Expression: p.Expression})
	}
	return out
}

func result(r *mcpv1.Result) *serverconfig.Result {
	if r == nil {
		return nil
	}
	out := &serverconfig.Result{Structured: r.Structured, Text: r.Text, IsError: r.IsError}
	for _, c := range r.Content {
		out.Content = append(out.Content, serverconfig.Content{
			Type: serverconfig.ContentType(c.Type), MIMEType: c.MIMEType, URI: c.URI, Expression: c.Expression,
		})
	}
	return out
}

func handlerRefs(tool *mcpv1.MCPTool) []Ref {
	if tool.Spec.HTTP == nil {
		return nil
	}
	return ConnectionRefs(&tool.Spec.HTTP.Connection)
}

// checkHTTP checks what the schema of the CRD cannot say of a URL: that it
// parses, and that each placeholder has a value to come from. The server
// parses it by the same code.
func checkHTTP(tool *mcpv1.MCPTool) Verdict {
	h := tool.Spec.HTTP
	if h == nil {
		return Verdict{Accepted: true}
	}
	unfilled, v := unfilledPlaceholders(h.URL, h.Path)
	if !v.Accepted {
		return v
	}
	in := anyObject
	if !empty(tool.Spec.InputSchema) {
		in = tool.Spec.InputSchema.Raw
	}
	// checkSchemas has compiled it before.
	input, err := schema.CompileInput(in)
	if err != nil {
		return refused(mcpv1.ReasonInvalidInputSchema, "spec.inputSchema: %v.", err)
	}
	for _, name := range unfilled {
		if !input.Expects(name) {
			return refused(mcpv1.ReasonInvalidURL, "spec.http.url has the placeholder {%s}, which is no property of spec.inputSchema. Declare it, or give it a value by spec.http.path.", name)
		}
	}
	return Verdict{Accepted: true}
}

// unfilledPlaceholders gives, sorted, the placeholders of a URL that path
// gives no value, or a refusal when URL or path is wrong by itself.
func unfilledPlaceholders(rawURL string, path []mcpv1.Parameter) ([]string, Verdict) {
	template, err := urltemplate.Parse(rawURL)
	if err != nil {
		return nil, refused(mcpv1.ReasonInvalidURL, "spec.http.url: %v. Escape what is not a placeholder.", err)
	}
	open := template.Placeholders()
	for _, p := range path {
		if !open[p.Name] {
			return nil, refused(mcpv1.ReasonInvalidURL, "spec.http.path names %q, which is no placeholder of spec.http.url.", p.Name)
		}
		delete(open, p.Name)
	}
	return slices.Sorted(maps.Keys(open)), Verdict{Accepted: true}
}

// located is an expression and where it stands.
type located struct {
	where string
	scope expression.Scope
	src   string
	want  expression.Kind
}

func toolExpressions(tool *mcpv1.MCPTool) []located {
	var all []located
	if h := tool.Spec.HTTP; h != nil {
		all = slices.Concat(headerExpressions(h.Headers), parameterExpressions("spec.http.path", h.Path, expression.Scalar),
			parameterExpressions("spec.http.query", h.Query, expression.ScalarOrList), bodyExpression(h.Body),
			resultExpressions("spec.http.result", expression.Response, h.Result))
	}
	return append(all, resultExpressions("spec.expression", expression.Call, tool.Spec.Expression)...)
}

// checkExpressions compiles all that are there.
func checkExpressions(all []located) Verdict {
	for _, e := range all {
		if e.src == "" {
			continue
		}
		if _, err := expression.Compile(e.scope, e.src, e.want); err != nil {
			return refused(mcpv1.ReasonInvalidExpression, "%s: %v", e.where, err)
		}
	}
	return Verdict{Accepted: true}
}

func headerExpressions(headers []mcpv1.Header) []located {
	var out []located
	for _, h := range headers {
		out = append(out, located{"spec.http.headers " + h.Name, expression.Call, h.Expression, expression.Scalar})
	}
	return out
}

func parameterExpressions(where string, params []mcpv1.Parameter, want expression.Kind) []located {
	var out []located
	for _, p := range params {
		out = append(out, located{where + " " + p.Name, expression.Call, p.Expression, want})
	}
	return out
}

func bodyExpression(b *mcpv1.HTTPBody) []located {
	if b == nil {
		return nil
	}
	return []located{{"spec.http.body", expression.Call, b.Expression, expression.BodyKind(b.MediaType)}}
}

func resultExpressions(where string, scope expression.Scope, r *mcpv1.Result) []located {
	if r == nil {
		return nil
	}
	out := []located{
		{where + ".structured", scope, r.Structured, expression.Any},
		{where + ".text", scope, r.Text, expression.String},
		{where + ".isError", scope, r.IsError, expression.Bool},
	}
	for _, c := range r.Content {
		out = append(out, located{where + ".content", scope, c.Expression, contentKind(c.Type)})
	}
	return out
}

// contentKind is what the expression of a content block gives.
func contentKind(t mcpv1.ContentType) expression.Kind {
	if t == mcpv1.ContentText || t == mcpv1.ContentResourceLink {
		return expression.String
	}
	return expression.StringOrBytes
}

func filterVars(raw json.RawMessage, tool *mcpv1.MCPTool) map[string]any {
	var def map[string]any
	// The definition was made by this package a moment ago.
	_ = json.Unmarshal(raw, &def)
	return expression.ToolVars(def, tool.Spec.Metadata, Source(tool.Name))
}
