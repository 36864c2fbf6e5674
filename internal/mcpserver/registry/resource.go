// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"net/url"
	"reflect"
	"slices"

	"github.com/espalier-dev/espalier/internal/mcpserver/access"
	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/serverconfig"
	"github.com/espalier-dev/espalier/internal/uritemplate"
)

// Resource is one served resource, or one template of resources. It is
// immutable.
type Resource struct {
	Entry
	// Template is nil for a resource with a URI of its own, and for a foreign
	// template that cannot be read here.
	Template *uritemplate.Template
	// Foreign: an upstream reads it.
	Foreign bool
	// TTL of what is read, in milliseconds.
	TTL int64
	// Completions by variable.
	Completions map[string][]string

	config  serverconfig.Resource
	version string
	// reads whatever URI it is asked for; hidden are those URIs and templates
	// that it does not.
	reads           bool
	hidden          map[string]bool
	hiddenTemplates []*uritemplate.Template
	// live tells versions of what the handler reads apart; nil when that
	// changes only with the declaration, or cannot be known.
	live Live
}

// Live is a handler whose source may change while it is served.
type Live interface {
	// Version tells versions of the source apart. It is cheap.
	Version() string
}

// ResourceFactory makes the handler that reads a resource; variables are
// those of its template.
type ResourceFactory func(resource *serverconfig.Resource, variables []string) (call.Handler, error)

// Live reports whether the content may change while the entry stays.
func (r *Resource) Live() bool { return r.live != nil }

// Version tells versions of the content apart, as far as they can be known
// without reading it.
func (r *Resource) Version() string {
	if r.live == nil {
		return r.version
	}
	return r.version + " " + r.live.Version()
}

func declareResource(config serverconfig.Resource, key string, factory ResourceFactory) declared[*Resource] {
	return declared[*Resource]{
		name: config.URI, when: config.When, source: config.Source,
		same:  func(r *Resource) bool { return reflect.DeepEqual(r.config, config) },
		build: func() (*Resource, *buildError) { return buildResource(config, key, factory) },
	}
}

func buildResource(config serverconfig.Resource, key string, factory ResourceFactory) (*Resource, *buildError) {
	r := &Resource{
		Entry: Entry{Name: config.URI, Metadata: config.Metadata, kind: access.Resource, source: config.Source}, config: config, version: digestOf(config),
		TTL: int64(config.CacheSeconds) * 1000, Completions: completions(config.Variables), Foreign: config.Upstream != nil,
	}
	if _, err := r.decode(config.Definition, key); err != nil {
		return nil, err
	}
	var variables []string
	if key == keyURITemplate {
		template, err := uritemplate.Parse(config.URI)
		switch {
		case err == nil:
			r.Template, variables = template, template.Variables()
		case !r.Foreign: // The upstream may know forms of templates that are unknown here.
			return nil, &buildError{ReasonInvalidURI, err}
		}
	}
	handler, err := factory(&r.config, variables)
	if err != nil {
		return nil, &buildError{ReasonInvalidHandler, err}
	}
	r.Handler = handler
	r.live, _ = handler.(Live)
	return r, nil
}

// completions are the declared values by variable; nil for none.
func completions(variables []serverconfig.Variable) map[string][]string {
	var out map[string][]string
	for _, v := range variables {
		if len(v.Completions) == 0 {
			continue
		}
		if out == nil {
			out = map[string][]string{}
		}
		out[v.Name] = v.Completions
	}
	return out
}

// Resource gives what serves uri: the resource of that URI, or the first
// declared template, in the order of the list, that makes it, with the values
// of its variables; else what Readers gives, the first of it. It is nil when
// there is none. visible (nil: all) chooses what the caller may see; what is
// not visible is in nobody's way.
func (s *Snapshot) Resource(uri string, visible func(*Resource) bool) (*Resource, map[string]string) {
	if r := s.resources.pick(uri, visible); r != nil {
		return r, nil
	}
	for _, t := range s.templates.sorted {
		if t.Foreign || !s.templates.shows(t, visible) {
			continue
		}
		if values, ok := t.Template.Match(uri); ok {
			return t, values
		}
	}
	if readers := s.Readers(uri, visible); len(readers) > 0 {
		return readers[0], nil
	}
	return nil, nil
}

// Readers gives what may know uri although nothing that is declared does, in
// the order in which it is to be asked: templates of upstreams that make it,
// then each upstream that reads resources.
func (s *Snapshot) Readers(uri string, visible func(*Resource) bool) []*Resource {
	var out []*Resource
	asked := map[string]bool{}
	add := func(r *Resource) {
		if name := r.config.Upstream.Upstream; !asked[name] && (visible == nil || visible(r)) {
			asked[name] = true
			out = append(out, r)
		}
	}
	for _, t := range s.templates.sorted {
		if !t.Foreign || t.Template == nil || !s.templates.shows(t, visible) {
			continue
		}
		if _, ok := t.Template.Match(uri); ok {
			add(t)
		}
	}
	for _, r := range s.readers {
		if !r.hides(uri) {
			add(r)
		}
	}
	return out
}

// hides reports whether uri is of what the upstream lists and is not served.
func (r *Resource) hides(uri string) bool {
	if r.hidden[uri] {
		return true
	}
	return slices.ContainsFunc(r.hiddenTemplates, func(t *uritemplate.Template) bool {
		_, ok := t.Match(uri)
		return ok
	})
}

// reader makes the entry by which an upstream is asked for what is not listed.
// It stands in no list.
func reader(config serverconfig.UpstreamResource, factory ResourceFactory) (*Resource, error) {
	r := &Resource{Foreign: true, hidden: map[string]bool{}}
	r.config = serverconfig.Resource{Source: serverconfig.SourceOf(config.Upstream), Upstream: &config}
	r.Name, r.group = r.config.Source, newGroup()
	r.kind, r.source, r.reads = access.Resource, r.config.Source, true
	r.vars = describe([]byte("{}"), nil, r.source)
	r.version = r.Name
	for _, hidden := range config.Hidden {
		r.hidden[hidden] = true
		if t, err := uritemplate.Parse(hidden); err == nil && len(t.Variables()) > 0 {
			r.hiddenTemplates = append(r.hiddenTemplates, t)
		}
	}
	var err error
	r.Handler, err = factory(&r.config, nil)
	return r, err
}

// ReadEntry is the resource as access rules see it when uri is read: a rule is
// about what a template makes, whether it names the template or the URI. URIs
// that are written with other escapes are the same to a template.
func (r *Resource) ReadEntry(uri string) access.Entry {
	e := r.AccessEntry()
	switch {
	case r.reads:
		e.Name = uri
	case r.Template == nil:
		return e
	default:
		e.Also = []string{uri}
	}
	if meant, err := url.PathUnescape(uri); err == nil && meant != uri {
		e.Also = append(e.Also, meant)
	}
	return e
}

// HasResource reports whether there is a resource or template of that name.
func (s *Snapshot) HasResource(name string) bool {
	return s.resources.get(name) != nil || s.templates.get(name) != nil
}

// Template gives a template by its text, nil when there is none that the
// caller may see.
func (s *Snapshot) Template(template string, visible func(*Resource) bool) *Resource {
	return s.templates.pick(template, visible)
}

// Resources gives all resources in the order of lists. It must not be changed.
func (s *Snapshot) Resources() []*Resource { return s.resources.sorted }

// Templates gives all templates in the order of lists. It must not be changed.
func (s *Snapshot) Templates() []*Resource { return s.templates.sorted }

// PageResources is Page for resources.
func (s *Snapshot) PageResources(cursor string, visible func(*Resource) bool) ([]*Resource, string, error) {
	return s.resources.page(cursor, s.pageBudget(), visible)
}

// PageTemplates is Page for templates.
func (s *Snapshot) PageTemplates(cursor string, visible func(*Resource) bool) ([]*Resource, string, error) {
	return s.templates.page(cursor, s.pageBudget(), visible)
}
