// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
)

// Kind of a registration, as the API names it.
type Kind string

// Kinds of registrations.
const (
	KindTool     Kind = "MCPTool"
	KindResource Kind = "MCPResource"
	KindPrompt   Kind = "MCPPrompt"
)

// noun for people.
func (k Kind) noun() string {
	switch k {
	case KindResource:
		return "resource"
	case KindPrompt:
		return "prompt"
	default:
		return "tool"
	}
}

// ID names one registration within a namespace.
type ID struct {
	Kind Kind
	// Name is its metadata.name.
	Name string
}

// String gives KIND NAME.
func (id ID) String() string { return string(id.Kind) + " " + id.Name }

// Compare orders by kind, then name.
func (id ID) Compare(o ID) int {
	return cmp.Or(cmp.Compare(id.Kind, o.Kind), cmp.Compare(id.Name, o.Name))
}

// IDOf names r.
func IDOf(r mcpv1.Registration) ID { return ID{KindOf(r), r.GetName()} }

// KindOf is the kind of r.
func KindOf(r mcpv1.Registration) Kind {
	switch r.(type) {
	case *mcpv1.MCPResource:
		return KindResource
	case *mcpv1.MCPPrompt:
		return KindPrompt
	default:
		return KindTool
	}
}

// List is a list of the protocol. An identity is unique within its list, over
// all registrations.
type List string

// Lists of the protocol, each with what its entries are told apart by.
const (
	Tools     List = "tools"     // name
	Resources List = "resources" // URI
	Templates List = "templates" // URI template
	Prompts   List = "prompts"   // name
)

// identity says what is unique in the list, and field where it is declared.
func (l List) identity() (what, field string) {
	switch l {
	case Resources:
		return "URI", "spec.uri"
	case Templates:
		return "URI template", "spec.uriTemplate"
	default:
		return "name", "spec.name"
	}
}
