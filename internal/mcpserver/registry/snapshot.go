// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"reflect"
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

// Snapshot is one version of all that is served. It is immutable: a request
// takes one and lists and calls from it alone.
type Snapshot struct {
	Digest    string
	Config    *serverconfig.Config
	NotServed []podreport.NotServed
	// Rejected says in words why entries are not served, for the log.
	Rejected map[string]string
	// ServerInfo is the raw value of _meta's server info.
	ServerInfo json.RawMessage
	// Discover is the raw result of server/discover.
	Discover json.RawMessage
	// ListHash changes when, and only when, tools/list does for somebody.
	ListHash string
	// Access says who sees which entry.
	Access *access.Rules
	// Auth recognises callers. It is set before the snapshot is put in place;
	// without it a catalog that wants authentication serves nobody.
	Auth *auth.Authenticator
	// Hidden are the extensions that are not declared because two sources
	// declare them differently, sorted.
	Hidden []string

	tools  []*Tool
	byName map[string]*Tool
	// origins that may pass, exactly.
	origins map[string]struct{}
	paths   map[serverconfig.TransportType]string
	// extensions is the raw object of those that are declared; nil for none.
	extensions json.RawMessage
}

// Build makes a snapshot. What previous (may be nil) already prepared and is
// unchanged is taken over. One bad entry is left out and named; it harms no
// other.
func Build(config *serverconfig.Config, digest string, factory HandlerFactory, previous *Snapshot) *Snapshot {
	config = withDefaults(config)
	s := &Snapshot{
		Digest: digest, Config: config, Rejected: map[string]string{},
		byName: make(map[string]*Tool, len(config.Tools)), origins: map[string]struct{}{},
		paths: map[serverconfig.TransportType]string{}, Access: access.Compile(config.Access),
	}
	for i := range config.Tools {
		s.add(config.Tools[i], factory, previous)
	}
	slices.SortFunc(s.tools, func(a, b *Tool) int { return a.position().compare(b.position()) })
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

func (s *Snapshot) add(config serverconfig.Tool, factory HandlerFactory, previous *Snapshot) {
	reject := func(reason, text string) {
		s.NotServed = append(s.NotServed, podreport.NotServed{Kind: "tool", Name: config.Name, Reason: reason})
		s.Rejected[config.Name] = text
	}
	if _, twice := s.byName[config.Name]; twice {
		reject(ReasonDuplicate, "the name is in the catalog twice, the first counts")
		return
	}
	if previous != nil {
		if old := previous.byName[config.Name]; old != nil && reflect.DeepEqual(old.config, config) {
			s.keep(old)
			return
		}
	}
	tool, err := buildTool(config, factory)
	if err != nil {
		reject(err.reason, err.Error())
		return
	}
	s.keep(tool)
}

func (s *Snapshot) keep(t *Tool) {
	s.tools = append(s.tools, t)
	s.byName[t.Name] = t
}

// Tool gives a tool by its name, nil when there is none.
func (s *Snapshot) Tool(name string) *Tool { return s.byName[name] }

// Tools gives all tools in the order of lists. It must not be changed.
func (s *Snapshot) Tools() []*Tool { return s.tools }

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
	out = append(out, `,"capabilities":{"tools":{"listChanged":true}`...)
	out = s.appendExtensions(out)
	out = append(out, '}')
	if info.Instructions != "" {
		out = wire.AppendField(out, "instructions", wire.AppendString(nil, info.Instructions))
	}
	out = s.AppendCaching(out)
	out = wire.AppendField(out, "_meta", s.meta())
	s.Discover = append(out, '}')

	hash := sha256.New()
	// Other rules may show a caller another list.
	rules, _ := json.Marshal(s.Config.Access) // Plain data: it cannot fail.
	hash.Write(rules)
	for _, t := range s.tools {
		hash.Write(t.Modern)
		hash.Write([]byte{0})
	}
	s.ListHash = hex.EncodeToString(hash.Sum(nil))
}

// meta is the _meta of discover.
func (s *Snapshot) meta() []byte {
	out := append([]byte(`{"`+mcp.MetaServerInfo+`":`), s.ServerInfo...)
	out = wire.AppendField(out, mcp.MetaCatalogDigest, wire.AppendString(nil, s.Digest))
	return append(out, '}')
}

// AppendCaching writes the fields of a cacheable result. A cache that serves
// several callers may keep it only if all would be answered the same.
func (s *Snapshot) AppendCaching(dst []byte) []byte {
	dst = append(dst, `,"ttlMs":`...)
	dst = strconv.AppendInt(dst, s.TTL(), 10)
	if s.Config.Auth != nil || s.Access.Private() {
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

// AppendInitialize writes the result of initialize at a legacy version. No
// stream reaches a legacy client yet, so no list changes are promised.
func (s *Snapshot) AppendInitialize(dst []byte, version string) []byte {
	dst = append(dst, `{"protocolVersion":`...)
	dst = wire.AppendString(dst, version)
	dst = append(dst, `,"capabilities":{"tools":{}`...)
	dst = s.appendExtensions(dst)
	dst = append(dst, `},"serverInfo":`...)
	dst = append(dst, s.ServerInfo...)
	if s.Config.Server.Instructions != "" {
		dst = wire.AppendField(dst, "instructions", wire.AppendString(nil, s.Config.Server.Instructions))
	}
	dst = append(dst, `,"_meta":{"`+mcp.MetaCatalogDigest+`":`...)
	dst = wire.AppendString(dst, s.Digest)
	return append(dst, "}}"...)
}

func compact(raw []byte) json.RawMessage {
	var buf bytes.Buffer
	if err := json.Compact(&buf, raw); err != nil {
		return raw // It was read before: it is JSON.
	}
	return buf.Bytes()
}
