// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"mime"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/espalier-dev/espalier/internal/mcp"
)

// ownHeaders are never parameters: the document's format says so of the first,
// the others belong to the connection.
var ownHeaders = []string{
	"Accept", "Content-Type", "Authorization", "Cookie", "Host", "Content-Length", "Transfer-Encoding", "Connection", "Upgrade", "Te",
	"Trailer", "Keep-Alive", "Proxy-Authorization", "Proxy-Connection", "Expect",
}

const mediaJSON = "application/json"

var placeholder = regexp.MustCompile(`\{([^{}/]*)\}`)

// input is what becomes the input schema and the request.
type input struct {
	conversion
	request    Request
	properties object
	required   []any
}

// parameters gives the parameters of an operation, its own before those of
// its path, without doubles, those of the path first.
func parameters(item *openapi3.PathItem, o *openapi3.Operation) []*openapi3.Parameter {
	var out []*openapi3.Parameter
	for _, ref := range slices.Concat(o.Parameters, item.Parameters) {
		if ref == nil || ref.Value == nil {
			continue
		}
		p := ref.Value
		if !slices.ContainsFunc(out, func(q *openapi3.Parameter) bool { return p.Name == q.Name && p.In == q.In }) {
			out = append(out, p)
		}
	}
	slices.SortStableFunc(out, func(a, b *openapi3.Parameter) int { return place(a) - place(b) })
	return out
}

func place(p *openapi3.Parameter) int {
	return slices.Index([]string{"header", "query", "path"}, p.In) * -1
}

// parameter takes one parameter in. A reason says that it was left out.
func (in *input) parameter(p *openapi3.Parameter, fixed []string) Reason {
	if p.Extensions[strayKey] != nil {
		return ReasonStrayReference
	}
	if p.In == openapi3.ParameterInCookie {
		return ReasonCookieParameter
	}
	if p.In == openapi3.ParameterInHeader && containsFold(slices.Concat(ownHeaders, fixed), p.Name) {
		return "" // It is set by somebody else.
	}
	out := Param{Name: p.Name, In: In(p.In)}
	var node any
	switch style, explode, ok := styleOf(p); {
	case !ok || p.Name == "":
		return ReasonUnsupportedParameter
	case style == StyleJSON:
		out.Style, node = style, in.d.node(jsonContent(p.Content).Schema)
	default:
		out.Style, out.Explode, node = style, explode, in.d.node(p.Schema)
	}
	if out.In == InHeader && !isToken(out.Name) {
		return ReasonUnsupportedParameter
	}
	schema := in.schema(node, 0)
	if note, ok := schema.(object); ok {
		if p.Description != "" {
			note["description"] = clip(p.Description, maxNote)
		}
		if p.Deprecated {
			note["deprecated"] = true
		}
	}
	out.Arg = in.argument(p.Name, p.In)
	in.declare(out.Arg, schema, p.Required || out.In == InPath)
	in.request.Params = append(in.request.Params, out)
	return ""
}

// styleOf gives how a parameter is written, if that is known here.
func styleOf(p *openapi3.Parameter) (style Style, explode, ok bool) {
	if len(p.Content) > 0 {
		return StyleJSON, false, jsonContent(p.Content) != nil
	}
	method, err := p.SerializationMethod()
	if err != nil {
		return "", false, false
	}
	style = Style(method.Style)
	switch {
	case p.In == openapi3.ParameterInQuery:
		ok = slices.Contains([]Style{StyleForm, StyleSpace, StylePipe, StyleDeep}, style)
	default:
		ok = style == StyleSimple
	}
	return style, method.Explode, ok
}

func jsonContent(content openapi3.Content) *openapi3.MediaType {
	for _, name := range sortedKeys(content) {
		if base, _, err := mime.ParseMediaType(name); err == nil && isJSON(base) && content[name] != nil {
			return content[name]
		}
	}
	return nil
}

func isJSON(base string) bool { return base == mediaJSON || strings.HasSuffix(base, "+json") }

// argument gives the name of the argument for a parameter: its own, in
// characters that clients take, and its place where another has that name.
func (in *input) argument(name, place string) string {
	base := clean(name)
	if base == "" {
		base = place
	}
	for _, candidate := range []string{base, suffix(base, place), suffixed(base, place+" "+name)} {
		if _, taken := in.properties[candidate]; !taken {
			return candidate
		}
	}
	return suffixed(base, place+"\x00"+name)
}

func suffix(base, place string) string {
	return base[:min(len(base), mcp.MaxClientToolName-len(place)-1)] + "_" + place
}

func (in *input) declare(name string, schema any, required bool) {
	in.properties[name] = schema
	if required {
		in.required = append(in.required, name)
	}
}

// target puts the names of arguments into the placeholders of a path. One that
// no parameter declares is text, as many documents mean it.
func (in *input) target(path string) (string, bool) {
	ok := true
	used := map[string]bool{}
	out := placeholder.ReplaceAllStringFunc(path, func(match string) string {
		name := match[1 : len(match)-1]
		used[name] = true
		for _, p := range in.request.Params {
			if p.In == InPath && p.Name == name {
				return "{" + p.Arg + "}"
			}
		}
		if name == "" {
			ok = false
			return match
		}
		p := Param{Arg: in.argument(name, openapi3.ParameterInPath), Name: name, In: InPath, Style: StyleSimple}
		in.declare(p.Arg, object{"type": "string"}, true)
		in.request.Params = append(in.request.Params, p)
		return "{" + p.Arg + "}"
	})
	// One that the path does not have would be asked for in vain.
	in.request.Params = slices.DeleteFunc(in.request.Params, func(p Param) bool {
		idle := p.In == InPath && !used[p.Name]
		if idle {
			delete(in.properties, p.Arg)
			in.required = slices.DeleteFunc(in.required, func(name any) bool { return name == p.Arg })
		}
		return idle
	})
	return out, ok && !strings.ContainsAny(out, "?#")
}

// body takes the body in. A reason says that it was left out.
func (in *input) body(ref *openapi3.RequestBodyRef) Reason {
	if ref.Value == nil || ref.Value.Extensions[strayKey] != nil {
		return ReasonStrayReference
	}
	name, kind := bodyOf(ref.Value.Content)
	if kind == "" {
		return ReasonUnsupportedMediaType
	}
	var schema any = true
	if media := ref.Value.Content[name]; media != nil {
		schema = in.schema(in.d.node(media.Schema), 0)
	}
	if schema == true && kind == BodyText {
		schema = object{"type": "string"}
	}
	if ref.Value.Description != "" {
		if note, ok := schema.(object); ok && note["description"] == nil {
			note["description"] = clip(ref.Value.Description, maxNote)
		}
	}
	arg := in.argument("body", "content")
	in.declare(arg, schema, ref.Value.Required)
	if strings.Contains(name, "*") {
		name = mediaJSON
	}
	in.request.Body = &Body{Arg: arg, MediaType: name, Kind: kind}
	return ""
}

// bodyOf chooses the media type of a body: JSON itself, then merge patches,
// other kinds of JSON, forms and text.
func bodyOf(content openapi3.Content) (name string, kind BodyKind) {
	best := 0
	for _, candidate := range sortedKeys(content) {
		base, _, err := mime.ParseMediaType(candidate)
		if err != nil {
			continue
		}
		rank, as := 0, BodyKind("")
		switch {
		case base == mediaJSON:
			rank, as = 5, BodyJSON
		case base == "application/merge-patch+json":
			rank, as = 4, BodyJSON
		case isJSON(base):
			rank, as = 3, BodyJSON
		case base == "*/*", base == "application/*":
			rank, as = 3, BodyJSON
		case base == "application/x-www-form-urlencoded":
			rank, as = 2, BodyForm
		case base == "text/plain":
			rank, as = 1, BodyText
		}
		if rank > best {
			best, name, kind = rank, candidate, as
		}
	}
	return name, kind
}

func containsFold(list []string, name string) bool {
	return slices.ContainsFunc(list, func(other string) bool { return strings.EqualFold(other, name) })
}

func isToken(s string) bool {
	return s != "" && http.CanonicalHeaderKey(s) != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}
