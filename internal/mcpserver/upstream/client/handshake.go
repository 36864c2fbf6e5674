// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// discoverWait is how long a server may be silent to server/discover before
// initialize is tried.
const discoverWait = 3 * time.Second

// negotiate finds the era: a modern request first; what refuses it in any way
// but one that speaks for a modern server is asked to initialize.
func (s *Session) negotiate(ctx context.Context) error {
	if s.options.Protocol == serverconfig.ProtocolLegacy {
		return s.legacy(ctx, "")
	}
	offered, err := s.discover(ctx)
	if err != nil && ReasonOf(err) == UnsupportedProtocol && slices.Contains(offered, mcp.ModernVersions[0]) {
		// It names the very version that it was asked in: it may know better now.
		offered, err = s.discover(ctx)
	}
	if err == nil || s.options.Protocol == serverconfig.ProtocolModern {
		return err
	}
	if ctx.Err() != nil || dialFailure(err) {
		return err
	}
	switch ReasonOf(err) {
	case AuthRequired, AuthRejected, Redirected:
		return err
	}
	var rpc *RPCError
	if errors.As(err, &rpc) {
		switch rpc.Code {
		case mcp.CodeHeaderMismatch, mcp.CodeMissingRequiredClientCapability:
			return &Error{Reason: HandshakeRejected, Status: rpc.Status, Cause: err}
		}
	}
	return s.legacy(ctx, newestLegacy(offered))
}

// legacy shakes hands in the legacy era: over streamable HTTP, or, where a
// server refuses that as one does that does not know it, over HTTP with SSE.
func (s *Session) legacy(ctx context.Context, version string) error {
	err := s.initialize(ctx, version)
	var known *Error
	if !errors.As(err, &known) || !known.older() {
		return err
	}
	older := newSSE(s.options, s.hear, s.asks)
	if older.open(ctx) != nil {
		older.close(ctx)
		return err // The first refusal says more.
	}
	s.carrier.close(ctx)
	s.carrier = older
	return s.initialize(ctx, version)
}

// older reports whether a server refuses like this that knows HTTP with SSE
// alone. The specification names three statuses; what comes with them may be an
// error of the protocol.
func (e *Error) older() bool {
	switch e.Status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed:
		return e.Reason == UnexpectedStatus || e.Reason == HandshakeRejected
	}
	return e.Reason == UnexpectedStatus && e.Status/100 == 4
}

// discover shakes hands in the modern era. offered are the versions that the
// server names when that fails.
func (s *Session) discover(ctx context.Context) (offered []string, err error) {
	if s.options.Protocol != serverconfig.ProtocolModern {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, discoverWait)
		defer cancel()
	}
	r := revision{version: mcp.ModernVersions[0], modern: true}
	s.carrier.agree(r)
	raw, err := s.carrier.request(ctx, &message{id: s.next(), method: mcp.MethodDiscover})
	if err != nil {
		s.carrier.agree(revision{})
		var rpc *RPCError
		if errors.As(err, &rpc) && rpc.Code == mcp.CodeUnsupportedProtocolVersion {
			return texts(member(rpc.Data, "supported")), &Error{Reason: UnsupportedProtocol, Status: rpc.Status, Cause: err}
		}
		return nil, err
	}
	if offered, err = s.discovered(raw); err != nil {
		s.carrier.agree(revision{})
	}
	return offered, err
}

// discovered reads the result of discover.
func (s *Session) discovered(raw []byte) (offered []string, err error) {
	result, err := wire.DecodeObject(raw)
	if err != nil {
		return nil, &Error{Reason: NotMCP, Cause: err}
	}
	r := revision{version: mcp.ModernVersions[0], modern: true}
	offered = texts(result.Get("supportedVersions"))
	if !slices.Contains(offered, r.version) {
		return offered, &Error{Reason: UnsupportedProtocol}
	}
	s.revision = r
	s.declared(result.Get("capabilities"))
	s.introduced(result)
	s.ttl, s.private = Caching(result)
	return offered, nil
}

// initialize shakes hands in the legacy era.
func (s *Session) initialize(ctx context.Context, version string) error {
	again := version == ""
	if version == "" {
		version = mcp.LegacyVersions[0]
	}
	s.carrier.agree(revision{})
	raw, err := s.carrier.request(ctx, s.initializeMessage(version))
	var rpc *RPCError
	if errors.As(err, &rpc) {
		if other := newestLegacy(texts(member(rpc.Data, "supported"))); again && other != "" {
			return s.initialize(ctx, other)
		}
		return &Error{Reason: HandshakeRejected, Status: rpc.Status, Cause: err}
	}
	if err != nil {
		return err
	}
	return s.initialized(ctx, raw)
}

func (s *Session) initializeMessage(version string) *message {
	params := append([]byte(`"protocolVersion":`), wire.AppendString(nil, version)...)
	capabilities := []byte("{}")
	if a := s.options.Asking; a != nil && a.Capabilities != nil {
		capabilities = a.Capabilities
	}
	params = wire.AppendField(params, "capabilities", capabilities)
	params = wire.AppendField(params, "clientInfo", clientInfo(s.options.Version))
	return &message{id: s.next(), method: mcp.MethodInitialize, params: params}
}

// initialized reads the result of initialize and says so to the server.
func (s *Session) initialized(ctx context.Context, raw []byte) error {
	result, err := wire.DecodeObject(raw)
	if err != nil {
		return &Error{Reason: NotMCP, Cause: err}
	}
	agreed, _ := result.Text("protocolVersion")
	if !mcp.IsLegacy(agreed) {
		return &Error{Reason: UnsupportedProtocol}
	}
	s.revision = revision{version: agreed}
	s.carrier.agree(s.revision)
	s.declared(result.Get("capabilities"))
	s.introduced(result)
	return s.carrier.notify(ctx, &message{method: mcp.NotificationInitialized})
}

// declared reads capabilities. A server that declares none at all may still
// have tools.
func (s *Session) declared(raw []byte) {
	capabilities, err := wire.DecodeObject(raw)
	if raw == nil || err != nil {
		s.abilities = Abilities{Tools: true}
		return
	}
	has := func(key string) (declared, changed bool) {
		object := capabilities.Get(key)
		return wire.IsObject(object), string(member(object, "listChanged")) == "true"
	}
	a := Abilities{}
	a.Tools, a.ToolsChanged = has("tools")
	a.Resources, a.ResourcesChanged = has("resources")
	a.Prompts, a.PromptsChanged = has("prompts")
	a.Completions, _ = has("completions")
	a.Logging, _ = has("logging")
	a.Subscribe = string(member(capabilities.Get("resources"), "subscribe")) == "true"
	s.abilities = a
}

// introduced reads what the server says of itself.
func (s *Session) introduced(result wire.Object) {
	info := result.Get("serverInfo")
	if info == nil {
		info = member(result.Get("_meta"), mcp.MetaServerInfo)
	}
	text := func(raw []byte) string { out, _ := wire.Text(raw); return out }
	s.introduction = Introduction{
		Name: text(member(info, "name")), Title: text(member(info, "title")), Version: text(member(info, "version")),
		Instructions: text(result.Get("instructions")),
	}
}

// Caching reads ttlMs and cacheScope of a result.
func Caching(result wire.Object) (ttl *time.Duration, private bool) {
	if ms, err := strconv.ParseFloat(string(result.Get("ttlMs")), 64); err == nil && ms >= 0 {
		d := time.Duration(min(ms, float64(time.Hour/time.Millisecond))) * time.Millisecond
		ttl = &d
	}
	scope, ok := result.Text("cacheScope")
	return ttl, ok && scope != "public"
}

func newestLegacy(offered []string) string {
	for _, v := range mcp.LegacyVersions {
		if slices.Contains(offered, v) {
			return v
		}
	}
	return ""
}

func isRPC(err error) bool {
	var rpc *RPCError
	return errors.As(err, &rpc)
}

// member of a raw object, nil where there is none.
func member(raw []byte, key string) []byte {
	object, err := wire.DecodeObject(raw)
	if err != nil {
		return nil
	}
	return object.Get(key)
}

// texts of a raw list.
func texts(raw []byte) []string {
	value, err := wire.Decode(raw)
	if err != nil {
		return nil
	}
	list, _ := value.([]any)
	var out []string
	for _, v := range list {
		if text, ok := v.(string); ok {
			out = append(out, text)
		}
	}
	return out
}
