// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/access"
	"github.com/espalier-dev/espalier/internal/mcpserver/auth"
	"github.com/espalier-dev/espalier/internal/mcpserver/principal"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
	"github.com/espalier-dev/espalier/internal/podreport"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// kindTool is the kind of tools in the report.
const kindTool = "tool"

// Snapshot is one version of all that is served. It is immutable: a request
// takes one and lists and calls from it alone.
type Snapshot struct {
	Digest    string
	Config    *serverconfig.Config
	NotServed []podreport.NotServed
	// Drift are pinned tools that are not what was promised.
	Drift []podreport.Drift
	// Flagged are tools that are served, and what is odd about them.
	Flagged []podreport.NotServed
	// Rejected says in words why entries are not served, for the log.
	Rejected map[string]string
	// Sources counts what is served by where it comes from.
	Sources map[string]Counts
	// ServerInfo is the raw value of _meta's server info.
	ServerInfo json.RawMessage
	// Discover is the raw result of server/discover.
	Discover json.RawMessage
	// Access says who sees which entry.
	Access *access.Rules
	// Auth recognises callers. It is set before the snapshot is put in place;
	// without it a catalog that wants authentication serves nobody.
	Auth *auth.Authenticator
	// Hidden are the extensions that are not declared because two sources
	// declare them differently, sorted.
	Hidden []string

	tools     *list[*Tool]
	resources *list[*Resource]
	templates *list[*Resource]
	prompts   *list[*Prompt]
	// whens are the expressions that choose callers, compiled.
	whens map[string]*When
	// OnWhenFailure is told of each failure of one. Set it before use.
	OnWhenFailure func(w *When, first bool, err error)
	// readers are asked for resources that nothing else serves.
	readers []*Resource
	// origins that may pass, exactly.
	origins map[string]struct{}
	paths   map[serverconfig.TransportType]string
	// extensions is the raw object of those that are declared; nil for none.
	extensions json.RawMessage
}

// Counts are how many entries of each kind there are.
type Counts struct {
	Tools, Prompts int
	// Resources, templates included.
	Resources int
}

// Factories make the handlers of entries from their declarations.
type Factories struct {
	Tool     HandlerFactory
	Resource ResourceFactory
	Prompt   PromptFactory
}

// Build makes a snapshot. What previous (may be nil) already prepared and is
// unchanged is taken over. One bad entry is left out and named; it harms no
// other.
func Build(config *serverconfig.Config, digest string, factories Factories, previous *Snapshot) *Snapshot {
	config = withDefaults(config)
	s := &Snapshot{
		Digest: digest, Config: config, Rejected: map[string]string{},
		origins: map[string]struct{}{}, paths: map[serverconfig.TransportType]string{}, Sources: map[string]Counts{}, whens: map[string]*When{},
		Access: access.Compile(config.Access),
	}
	if previous == nil {
		previous = &Snapshot{}
	}
	s.tools = build(s, kindTool, previous.tools, s.addRetrieve(each(config.Tools, func(c serverconfig.Tool) declared[*Tool] { return declareTool(c, factories.Tool) })))
	s.resources = build(s, "resource", previous.resources, each(config.Resources, func(c serverconfig.Resource) declared[*Resource] {
		return declareResource(c, keyURI, factories.Resource)
	}))
	s.templates = build(s, "template", previous.templates, each(config.Templates, func(c serverconfig.Resource) declared[*Resource] {
		return declareResource(c, keyURITemplate, factories.Resource)
	}))
	s.prompts = build(s, "prompt", previous.prompts, each(config.Prompts, func(c serverconfig.Prompt) declared[*Prompt] {
		return declarePrompt(c, factories.Prompt)
	}))
	for _, config := range config.Readers {
		if r, err := reader(config, factories.Resource); err == nil {
			r.Entry.when = s.when(config.When)
			s.readers = append(s.readers, r)
		}
	}
	s.note()
	for _, origin := range config.AllowedOrigins {
		s.origins[origin] = struct{}{}
	}
	for _, transport := range config.Transports {
		s.paths[transport.Type] = transport.Path
	}
	s.render()
	return s
}

// defaultMaxMessage stands in where a config names no limit: there is one.
const defaultMaxMessage = 10 << 20

func withDefaults(config *serverconfig.Config) *serverconfig.Config {
	c := *config
	if c.Limits.MaxMessageBytes <= 0 {
		c.Limits.MaxMessageBytes = defaultMaxMessage
	}
	return &c
}

func each[C any, D any](configs []C, f func(C) D) []D {
	out := make([]D, 0, len(configs))
	for i := range configs {
		out = append(out, f(configs[i]))
	}
	return out
}

// note counts what is served by its sources, and flags what is odd about tools
// of upstreams.
func (s *Snapshot) note() {
	count := func(source string, one Counts) {
		c := s.Sources[source]
		s.Sources[source] = Counts{c.Tools + one.Tools, c.Prompts + one.Prompts, c.Resources + one.Resources}
	}
	for _, r := range slices.Concat(s.resources.sorted, s.templates.sorted) {
		count(r.config.Source, Counts{Resources: 1})
	}
	for _, p := range s.prompts.sorted {
		count(p.config.Source, Counts{Prompts: 1})
	}
	for _, t := range s.tools.sorted {
		count(t.config.Source, Counts{Tools: 1})
		if !serverconfig.FromUpstream(t.config.Source) {
			continue
		}
		if t.Unchecked {
			s.flag(t, podreport.ReasonSchemaNotChecked)
		}
		if len(t.Name) > mcp.MaxClientToolName {
			s.flag(t, podreport.ReasonLongName)
		}
	}
}

// alone: where several entries of one name serve one caller, none does.
func (s *Snapshot) alone() bool {
	return s.Config.Policy != nil && s.Config.Policy.Conflicts == conflictsHideAll
}

// conflictsHideAll is the policy of that effect.
const conflictsHideAll = "HideAll"

func (s *Snapshot) flag(t *Tool, reason string) {
	s.Flagged = append(s.Flagged, podreport.NotServed{Kind: kindTool, Name: t.Name, Reason: reason})
}

// Tool gives a tool by its name, nil when there is none that the caller may
// see.
func (s *Snapshot) Tool(name string, visible func(*Tool) bool) *Tool {
	return s.tools.pick(name, visible)
}

// HasTool reports whether there is a tool of that name.
func (s *Snapshot) HasTool(name string) bool { return s.tools.get(name) != nil }

// Tools gives all tools in the order of lists. It must not be changed.
func (s *Snapshot) Tools() []*Tool { return s.tools.sorted }

// OriginAllowed reports whether a value of the Origin header may pass.
func (s *Snapshot) OriginAllowed(origin string) bool {
	_, ok := s.origins[origin]
	return ok
}

// Paths of all transports, in the order of the catalog.
func (s *Snapshot) Paths() []string {
	out := make([]string, 0, len(s.Config.Transports))
	for _, t := range s.Config.Transports {
		out = append(out, t.Path)
	}
	return out
}

// Path of a transport; empty when it is not offered.
func (s *Snapshot) Path(t serverconfig.TransportType) string { return s.paths[t] }

// TTL of lists and discover, in milliseconds.
func (s *Snapshot) TTL() int64 { return int64(s.Config.CacheSeconds) * 1000 }

// render prepares what is the same for every request.
func (s *Snapshot) render() {
	info := s.Config.Server
	raw := wire.AppendString([]byte(`{"name":`), info.Name)
	if info.Title != "" {
		raw = wire.AppendField(raw, "title", wire.AppendString(nil, info.Title))
	}
	raw = wire.AppendField(raw, "version", wire.AppendString(nil, info.Version))
	s.ServerInfo = append(raw, '}')

	versions, _ := json.Marshal(mcp.AllVersions())
	out := append([]byte(`{"resultType":"complete","supportedVersions":`), versions...)
	s.extensions, s.Hidden = mergeExtensions(s.Config.Extensions)
	out = wire.AppendField(out, "capabilities", s.capabilities(true))
	if info.Instructions != "" {
		out = wire.AppendField(out, "instructions", wire.AppendString(nil, info.Instructions))
	}
	out = s.AppendCaching(out)
	out = wire.AppendField(out, "_meta", s.meta())
	s.Discover = append(out, '}')
}

// capabilities are those of the declared catalog, served or not: an upstream
// may bring anything, and is not asked what it has at present. A client that
// can be reached is told of changes; one of the legacy era without a session
// cannot be, and is promised none.
func (s *Snapshot) capabilities(reachable bool) []byte {
	changes, updates := "{}", "{}"
	if reachable {
		changes, updates = `{"listChanged":true}`, `{"listChanged":true,"subscribe":true}`
	}
	out := append([]byte(`{"tools":`), changes...)
	upstreams := len(s.Config.Upstreams) > 0
	if len(s.Config.Resources)+len(s.Config.Templates) > 0 || upstreams {
		out = wire.AppendField(out, "resources", []byte(updates))
	}
	if len(s.Config.Prompts) > 0 || upstreams {
		out = wire.AppendField(out, "prompts", []byte(changes))
	}
	if s.completes() || upstreams {
		out = wire.AppendField(out, "completions", []byte("{}"))
	}
	// Only upstreams have anything to log to clients.
	if reachable && upstreams {
		out = wire.AppendField(out, "logging", []byte("{}"))
	}
	return append(s.appendExtensions(out), '}')
}

// completes reports whether any completion is declared.
func (s *Snapshot) completes() bool {
	for i := range s.Config.Templates {
		if completions(s.Config.Templates[i].Variables) != nil {
			return true
		}
	}
	for i := range s.Config.Prompts {
		if completions(s.Config.Prompts[i].Arguments) != nil {
			return true
		}
	}
	return false
}

// meta is the _meta of discover.
func (s *Snapshot) meta() []byte {
	out := append([]byte(`{"`+mcp.MetaServerInfo+`":`), s.ServerInfo...)
	out = wire.AppendField(out, mcp.MetaCatalogDigest, wire.AppendString(nil, s.Digest))
	return append(out, '}')
}

// AppendCaching writes the fields of a cacheable result. A cache that serves
// several callers may keep it only if all would be answered the same, here and
// by the upstreams.
func (s *Snapshot) AppendCaching(dst []byte) []byte {
	dst = append(dst, `,"ttlMs":`...)
	dst = strconv.AppendInt(dst, s.TTL(), 10)
	if s.Config.Auth != nil || s.Access.Private() || s.Chooses() || s.Config.CacheScope == serverconfig.CachePrivate {
		return append(dst, `,"cacheScope":"private"`...)
	}
	return append(dst, `,"cacheScope":"public"`...)
}

// Authenticate says who makes a request, or why it does not come in.
func (s *Snapshot) Authenticate(r *http.Request) (*principal.Principal, *auth.Refusal) {
	switch {
	case s.Auth != nil:
		return s.Auth.Authenticate(r)
	case s.Config.Auth != nil:
		return nil, auth.NotReady()
	}
	return principal.Nobody(), nil
}

// LegacyCapabilities are the capabilities that a legacy client is told, a raw
// object. Who has a session can be reached.
func (s *Snapshot) LegacyCapabilities(session bool) []byte { return s.capabilities(session) }

// AppendInitialize writes the result of initialize at a legacy version.
func (s *Snapshot) AppendInitialize(dst []byte, version string, capabilities []byte) []byte {
	dst = append(dst, `{"protocolVersion":`...)
	dst = wire.AppendString(dst, version)
	dst = wire.AppendField(dst, "capabilities", capabilities)
	dst = append(dst, `,"serverInfo":`...)
	dst = append(dst, s.ServerInfo...)
	if s.Config.Server.Instructions != "" {
		dst = wire.AppendField(dst, "instructions", wire.AppendString(nil, s.Config.Server.Instructions))
	}
	dst = append(dst, `,"_meta":{"`+mcp.MetaCatalogDigest+`":`...)
	dst = wire.AppendString(dst, s.Digest)
	return append(dst, "}}"...)
}
