// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"encoding/json"
	"net/url"
	"strings"
	"time"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/contract"
	"github.com/espalier-dev/espalier/internal/expression"
	"github.com/espalier-dev/espalier/internal/serverconfig"
	"github.com/espalier-dev/espalier/internal/uritemplate"
)

// resourceDefinition is the wire object of a declared resource or template.
type resourceDefinition struct {
	Name        string              `json:"name"`
	URI         string              `json:"uri,omitempty"`
	URITemplate string              `json:"uriTemplate,omitempty"`
	Title       string              `json:"title,omitempty"`
	Description string              `json:"description,omitempty"`
	MIMEType    string              `json:"mimeType,omitempty"`
	Icons       []mcpv1.Icon        `json:"icons,omitempty"`
	Annotations *contentAnnotations `json:"annotations,omitempty"`
	Meta        json.RawMessage     `json:"_meta,omitempty"`
}

// contentAnnotations are the wire's Annotations.
type contentAnnotations struct {
	Audience     []string        `json:"audience,omitempty"`
	Priority     json.RawMessage `json:"priority,omitempty"`
	LastModified string          `json:"lastModified,omitempty"`
}

// CompileResource compiles an MCPResource.
func CompileResource(r *mcpv1.MCPResource) *Compiled {
	list, key := Resources, contract.KeyURI
	if r.Spec.URITemplate != "" {
		list, key = Templates, contract.KeyURITemplate
	}
	c := begin(r, list, ResourceURI(r), resourceRefs(r))
	if v := checkResource(r); !v.Accepted {
		c.Verdict = v
		return c
	}
	raw, err := encodeResource(r)
	if !c.digest(raw, err, key, mcpv1.ReasonInvalidMeta, "spec.meta") {
		return c
	}
	c.Resource = resourceEntry(r, raw)
	c.EntryDigest = entryDigest(c.Resource)
	c.Verdict = accepted(mcpv1.ReasonAccepted, "The resource is sound.")
	return c
}

// ResourceURI is the URI, or the URI template, on the wire.
func ResourceURI(r *mcpv1.MCPResource) string {
	if r.Spec.URITemplate != "" {
		return r.Spec.URITemplate
	}
	return r.Spec.URI
}

// ResourceSource names where the content comes from, as in its status.
func ResourceSource(r *mcpv1.MCPResource) string {
	switch spec := &r.Spec; {
	case spec.HTTP != nil:
		return "http"
	case spec.Expression != nil:
		return "expression"
	case spec.ConfigMapKeyRef != nil:
		return "configMap"
	case spec.SecretKeyRef != nil:
		return "secret"
	case spec.Blob != nil:
		return "blob"
	default:
		return "text"
	}
}

func encodeResource(r *mcpv1.MCPResource) (json.RawMessage, error) {
	spec := &r.Spec
	d := resourceDefinition{
		Name: spec.Name, URI: spec.URI, URITemplate: spec.URITemplate, Title: spec.Title, Description: spec.Description,
		MIMEType: spec.MIMEType, Icons: spec.Icons, Annotations: annotations(spec.Annotations),
	}
	if d.Name == "" {
		d.Name = r.Name
	}
	if !empty(spec.Meta) {
		d.Meta = spec.Meta.Raw
	}
	return encodePlain(d)
}

func annotations(a *mcpv1.ResourceAnnotations) *contentAnnotations {
	if a == nil {
		return nil
	}
	out := &contentAnnotations{}
	for _, role := range a.Audience {
		out.Audience = append(out.Audience, wireRole(role))
	}
	if !empty(a.Priority) {
		out.Priority = a.Priority.Raw
	}
	if a.LastModified != nil {
		out.LastModified = a.LastModified.UTC().Format(time.RFC3339)
	}
	return out
}

// wireRole is user or assistant.
func wireRole(role mcpv1.Role) string { return strings.ToLower(string(role)) }

func resourceEntry(r *mcpv1.MCPResource, raw json.RawMessage) *serverconfig.Resource {
	spec := &r.Spec
	out := &serverconfig.Resource{
		URI: ResourceURI(r), Definition: raw, Source: "mcpresource/" + r.Name, Metadata: spec.Metadata, MIMEType: spec.MIMEType,
		Text: spec.Text, Blob: spec.Blob, HTTP: resourceHTTP(spec.HTTP), Expression: resourceContent(spec.Expression),
	}
	set(&out.CacheSeconds, spec.CacheSeconds)
	if ref, ok := keyRef(spec.SecretKeyRef, spec.ConfigMapKeyRef); ok {
		out.File = ref.Path()
	}
	for _, v := range spec.Variables {
		out.Variables = append(out.Variables, serverconfig.Variable{Name: v.Name, Completions: v.Completions})
	}
	if spec.HTTP != nil {
		out.Expression = resourceContent(spec.HTTP.Result)
	}
	return out
}

func resourceHTTP(h *mcpv1.ResourceHTTP) *serverconfig.HTTP {
	if h == nil {
		return nil
	}
	out := &serverconfig.HTTP{
		Connection: connection(&h.Connection), Method: "GET", Path: parameters(h.Path),
		Query: parameters(h.Query), QuerySet: h.Query != nil, TimeoutSeconds: defaultTimeoutSeconds,
	}
	set(&out.TimeoutSeconds, h.TimeoutSeconds)
	set(&out.Retries, h.Retries)
	return out
}

func resourceContent(c *mcpv1.ResourceContent) *serverconfig.ResourceContent {
	if c == nil {
		return nil
	}
	return &serverconfig.ResourceContent{Text: c.Text, Blob: c.Blob}
}

func resourceRefs(r *mcpv1.MCPResource) []Ref {
	var refs []Ref
	if ref, ok := keyRef(r.Spec.SecretKeyRef, r.Spec.ConfigMapKeyRef); ok {
		refs = append(refs, ref)
	}
	if r.Spec.HTTP != nil {
		refs = append(refs, ConnectionRefs(&r.Spec.HTTP.Connection)...)
	}
	return refs
}

func checkResource(r *mcpv1.MCPResource) Verdict {
	var template *uritemplate.Template
	return firstRefusal(
		func() (v Verdict) { template, v = checkURI(r); return v },
		func() Verdict { return checkVariables(r, template) },
		func() Verdict { return checkMeta(r.Spec.Meta) },
		func() Verdict { return checkResourceURL(r.Spec.HTTP, template) },
		func() Verdict { return checkExpressions(resourceExpressions(r)) },
	)
}

// checkURI parses the URI, or the template, by the code that the server uses.
func checkURI(r *mcpv1.MCPResource) (*uritemplate.Template, Verdict) {
	if r.Spec.URITemplate == "" {
		if u, err := url.Parse(r.Spec.URI); err != nil || u.Scheme == "" {
			return nil, refused(mcpv1.ReasonInvalidURI, "spec.uri cannot be parsed. It begins with a scheme, and what is not a URI's character is escaped.")
		}
		return nil, Verdict{Accepted: true}
	}
	template, err := uritemplate.Parse(r.Spec.URITemplate)
	if err != nil {
		return nil, refused(mcpv1.ReasonInvalidURI, "spec.uriTemplate: %v.", err)
	}
	return template, Verdict{Accepted: true}
}

func checkVariables(r *mcpv1.MCPResource, template *uritemplate.Template) Verdict {
	for _, v := range r.Spec.Variables {
		if template == nil || !template.Has(v.Name) {
			return refused(mcpv1.ReasonInvalidURI, "spec.variables names %q, which is no variable of spec.uriTemplate.", v.Name)
		}
	}
	return Verdict{Accepted: true}
}

// checkResourceURL checks that the URL parses and that each placeholder has a
// value to come from.
func checkResourceURL(h *mcpv1.ResourceHTTP, uri *uritemplate.Template) Verdict {
	if h == nil {
		return Verdict{Accepted: true}
	}
	unfilled, v := unfilledPlaceholders(h.URL, h.Path)
	if !v.Accepted {
		return v
	}
	for _, name := range unfilled {
		if uri == nil || !uri.Has(name) {
			return refused(mcpv1.ReasonInvalidURL, "spec.http.url has the placeholder {%s}, which is no variable of spec.uriTemplate. Give it a value by spec.http.path.", name)
		}
	}
	return Verdict{Accepted: true}
}

func resourceExpressions(r *mcpv1.MCPResource) []located {
	var all []located
	content := func(where string, scope expression.Scope, c *mcpv1.ResourceContent) {
		if c == nil {
			return
		}
		all = append(all,
			located{where + ".text", scope, c.Text, expression.String},
			located{where + ".blob", scope, c.Blob, expression.StringOrBytes})
	}
	content("spec.expression", expression.Call, r.Spec.Expression)
	if h := r.Spec.HTTP; h != nil {
		all = append(all, headerExpressions(h.Headers)...)
		all = append(all, parameterExpressions("spec.http.path", h.Path, expression.Scalar)...)
		all = append(all, parameterExpressions("spec.http.query", h.Query, expression.ScalarOrList)...)
		content("spec.http.result", expression.Response, h.Result)
	}
	return all
}
