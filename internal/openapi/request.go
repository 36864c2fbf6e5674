// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package openapi

// Request says how the arguments of a tool become an HTTP request.
type Request struct {
	Method string
	// URL whose path holds {placeholders} by the names of arguments.
	URL string
	// Params in the order of the document, those of the path first.
	Params []Param
	// Body; nil for none.
	Body *Body
}

// In says where a parameter stands.
type In string

// Places of parameters.
const (
	InPath   In = "path"
	InQuery  In = "query"
	InHeader In = "header"
)

// Style says how a value is written.
type Style string

// Styles of parameters.
const (
	// StyleSimple: parts joined by commas, in paths and headers.
	StyleSimple Style = "simple"
	// StyleForm: name=value, parts joined by commas or, exploded, each with a
	// name.
	StyleForm Style = "form"
	// StyleSpace and StylePipe: as form, joined by other characters.
	StyleSpace Style = "spaceDelimited"
	StylePipe  Style = "pipeDelimited"
	// StyleDeep: name[key]=value.
	StyleDeep Style = "deepObject"
	// StyleJSON: the value as JSON.
	StyleJSON Style = "json"
)

// Param is one parameter.
type Param struct {
	// Arg is the argument that gives it.
	Arg string
	// Name on the wire.
	Name    string
	In      In
	Style   Style
	Explode bool
}

// BodyKind says how a body is written.
type BodyKind string

// Kinds of bodies.
const (
	BodyJSON BodyKind = "json"
	BodyForm BodyKind = "form"
	BodyText BodyKind = "text"
)

// Body is the body of a request; there is none when its argument is absent.
type Body struct {
	// Arg is the argument that gives it.
	Arg       string
	MediaType string
	Kind      BodyKind
}
