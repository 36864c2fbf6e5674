// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpprobe

import (
	"context"
	"slices"
	"time"

	"github.com/espalier-dev/espalier/internal/contract"
	"github.com/espalier-dev/espalier/internal/mcp"
)

// handshake is what discover or initialize agreed on.
type handshake struct {
	transport Transport
	era       Era
	version   string
	session   string
	server    ServerInfo
	// capabilities is nil when the server declared none at all, not even an
	// empty object; then lists are tried.
	capabilities  []string
	listChanged   bool
	catalogDigest string
	// instructions is the digest of the instructions; empty without.
	instructions string
	ttl          *time.Duration
}

// attempt is a handshake in one era.
type attempt struct {
	era       Era
	handshake *handshake
	failure   *failure
}

// connect shakes hands over the transport of the target.
func (e *exchange) connect(ctx context.Context) (h *handshake, f *failure) {
	transport := e.target.Transport
	if transport == TransportAuto {
		return e.connectAuto(ctx)
	}
	switch transport {
	case TransportSSE:
		return e.connectSSE(ctx)
	case TransportWebSocket:
		f = e.openWebSocket(ctx)
	}
	if f == nil {
		h, f = e.negotiate(ctx)
	}
	if f != nil {
		return nil, f
	}
	h.transport = transport
	return h, nil
}

// connectAuto tries streamable HTTP, and HTTP with SSE where the server
// refuses that as one does that does not know it.
func (e *exchange) connectAuto(ctx context.Context) (*handshake, *failure) {
	if e.target.TransportHint == TransportSSE {
		if h, f := e.connectSSE(ctx); f == nil || ctx.Err() != nil || f.final() || e.link != nil {
			return h, f
		}
	}
	h, f := e.negotiate(ctx)
	if f == nil {
		h.transport = TransportStreamableHTTP
		return h, nil
	}
	if f.step != StepInitialize || !f.older() || ctx.Err() != nil || e.target.TransportHint == TransportSSE {
		return nil, f
	}
	older, g := e.connectSSE(ctx)
	if e.link == nil {
		return nil, f // The first refusal says more.
	}
	return older, g
}

// connectSSE shakes hands over HTTP with SSE, which only the legacy era has.
func (e *exchange) connectSSE(ctx context.Context) (*handshake, *failure) {
	if f := e.openSSE(ctx); f != nil {
		return nil, f
	}
	h, f := e.initialize(ctx, &call{step: StepInitialize, method: mcp.MethodInitialize, version: mcp.LegacyVersions[0]})
	if f != nil {
		return nil, f
	}
	h.transport = TransportSSE
	return h, nil
}

// negotiate finds out the era: a modern request first; when that is refused
// in any way but one that speaks for a modern server, or is not answered for
// a while, initialize. The first valid answer decides. The silence of a server
// that is known to be modern is its silence: one that is frozen would find the
// initialize when it goes on, and open a session that nobody ends.
func (e *exchange) negotiate(ctx context.Context) (*handshake, *failure) {
	attempts := make(chan attempt, 2)
	n := &negotiation{exchange: e, attempts: attempts}
	discoverCtx, stop := context.WithCancel(ctx)
	defer stop()
	if e.target.EraHint == EraLegacy {
		n.initialize(ctx, "")
	} else {
		n.discover(discoverCtx)
	}
	patience := time.NewTimer(e.eraWait(ctx))
	defer patience.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, n.gaveUp(ctx)
		case <-patience.C:
			// Where no connection was made yet a second one would not help.
			switch {
			case n.initializeCall != nil || e.target.EraHint == EraModern:
			case phase(n.discoverCall.at.Load()) == phaseConnected:
				n.initialize(ctx, "")
			default:
				patience.Reset(dialPatience)
			}
		case a := <-attempts:
			if h, f, done := n.took(ctx, discoverCtx, a); done {
				return h, f
			}
		}
	}
}

// eraWait is how long discover may be silent.
func (e *exchange) eraWait(ctx context.Context) time.Duration {
	deadline, _ := ctx.Deadline()
	return min(e.bounds.EraWait, time.Until(deadline)/4)
}

// dialPatience is how often a connection that is slow to come is looked at.
const dialPatience = 500 * time.Millisecond

// negotiation is the state of negotiate.
type negotiation struct {
	*exchange
	attempts       chan attempt
	discoverCall   *call
	initializeCall *call
	pending        int
	discovered     *failure
	initialized    *failure
}

// took takes in one attempt's end. done says that the negotiation is over.
func (n *negotiation) took(ctx, discoverCtx context.Context, a attempt) (*handshake, *failure, bool) {
	n.pending--
	if a.failure == nil {
		return a.handshake, nil, true
	}
	if a.failure.final() {
		return nil, a.failure, true
	}
	late := ctx.Err() != nil // nothing new is begun
	if a.era == EraModern {
		n.discovered = a.failure
		if version := newestLegacy(a.failure.offered, ""); n.initializeCall == nil && !late {
			n.initialize(ctx, version)
		}
	} else {
		n.initialized = a.failure
		if n.discoverCall == nil && !late {
			// It was legacy when last seen; it may have been upgraded.
			n.discover(discoverCtx)
		}
	}
	if n.pending > 0 {
		return nil, nil, false
	}
	return nil, n.verdict(), true
}

// verdict chooses between two failures the one that says more.
func (n *negotiation) verdict() *failure {
	d, i := n.discovered, n.initialized
	switch {
	case d == nil:
		return i
	case i == nil:
		return d
	case d.modern():
		return d
	case d.outcome == AuthRequired && i.outcome == AuthUnverified:
		return d
	case d.outcome != Timeout && i.outcome == Timeout && i.step != StepInitialize:
		return d
	}
	return i
}

// gaveUp is the failure when the time is over.
func (n *negotiation) gaveUp(ctx context.Context) *failure {
	f := &failure{outcome: Timeout, step: StepDiscover}
	if ctx.Err() == context.Canceled {
		f.outcome = Canceled
	}
	c := n.discoverCall
	if n.initializeCall != nil && n.initialized == nil {
		c, f.step = n.initializeCall, StepInitialize
	}
	switch phase(c.at.Load()) {
	case phaseDial:
		f.step = StepDial
	case phaseTLS:
		f.step = StepTLS
	}
	return f
}

func (n *negotiation) discover(ctx context.Context) {
	n.pending++
	c := &call{step: StepDiscover, method: mcp.MethodDiscover, version: mcp.ModernVersions[0], modern: true}
	n.discoverCall = c
	n.background.Go(func() {
		h, f := n.exchange.discover(ctx, c)
		n.attempts <- attempt{era: EraModern, handshake: h, failure: f}
	})
}

// initialize runs on for EndTime when ctx ends, so that a session that the
// server has made is known and can be ended.
func (n *negotiation) initialize(ctx context.Context, version string) {
	n.pending++
	if version == "" {
		version = mcp.LegacyVersions[0]
	}
	c := &call{step: StepInitialize, method: mcp.MethodInitialize, version: version}
	n.initializeCall = c
	n.background.Go(func() {
		own, cancel := context.WithCancel(context.WithoutCancel(ctx))
		defer cancel()
		release := context.AfterFunc(ctx, func() {
			timer := time.AfterFunc(n.bounds.EndTime, cancel)
			context.AfterFunc(own, func() { timer.Stop() })
		})
		defer release()
		h, f := n.exchange.initialize(own, c)
		n.attempts <- attempt{era: EraLegacy, handshake: h, failure: f}
	})
}

// discover asks a modern server what it is; once again when it refuses the
// version and names one that is spoken here, be it the same.
func (e *exchange) discover(ctx context.Context, c *call) (*handshake, *failure) {
	a, f := e.do(ctx, c)
	for again := false; f != nil; again = true {
		if f.rpc == nil || f.rpc.code != mcp.CodeUnsupportedProtocolVersion {
			return nil, f
		}
		f.offered = f.rpc.versions
		f.outcome = UnsupportedProtocol
		at := slices.IndexFunc(mcp.ModernVersions, func(version string) bool { return slices.Contains(f.offered, version) })
		if again || at < 0 {
			return nil, f
		}
		c.version = mcp.ModernVersions[at]
		a, f = e.do(ctx, c)
	}
	supported, ok := member(a.result, "supportedVersions")
	if !ok {
		return nil, &failure{outcome: NotMCP, flaw: FlawMissingFields, step: c.step, status: 200}
	}
	e.setEvident()
	h := &handshake{era: EraModern, version: c.version}
	h.fill(a.result, e.secrets)
	if !listsVersion(supported, c.version) {
		return nil, &failure{outcome: UnsupportedProtocol, step: c.step, status: 200, offered: versionsIn(string(supported))}
	}
	return h, nil
}

func listsVersion(supported []byte, version string) (found bool) {
	walkArray(supported, func(value []byte) bool {
		s, _ := stringOf(value)
		found = s == version
		return !found
	})
	return found
}

// initialize opens a legacy session; once again with a lower version when the
// server refuses and names one that is spoken here.
func (e *exchange) initialize(ctx context.Context, c *call) (*handshake, *failure) {
	for again := false; ; again = true {
		c.params = map[string]any{
			"protocolVersion": c.version,
			"capabilities":    struct{}{},
			"clientInfo":      e.clientInfo(),
		}
		a, f := e.do(ctx, c)
		if f == nil {
			return e.agree(c, a)
		}
		if f.rpc != nil {
			f.offered = f.rpc.versions
		}
		f.offered = slices.DeleteFunc(f.offered, func(v string) bool { return v == c.version })
		if len(f.offered) == 0 {
			return nil, f
		}
		version := newestLegacy(f.offered, c.version)
		if again || version == "" {
			// It names versions, and none that helps: that is the reason.
			f.outcome = UnsupportedProtocol
			return nil, f
		}
		c.version = version
	}
}

// newestLegacy gives the newest legacy version in offered but not.
func newestLegacy(offered []string, not string) string {
	for _, version := range mcp.LegacyVersions {
		if version != not && slices.Contains(offered, version) {
			return version
		}
	}
	return ""
}

// agree checks the result of initialize.
func (e *exchange) agree(c *call, a answer) (*handshake, *failure) {
	version, ok := stringMember(a.result, "protocolVersion")
	if !ok {
		return nil, &failure{outcome: NotMCP, flaw: FlawMissingFields, step: c.step, status: 200}
	}
	e.setEvident()
	if !mcp.IsLegacy(version) {
		return nil, &failure{outcome: UnsupportedProtocol, step: c.step, status: 200, offered: versionsIn(version)}
	}
	e.agreed(a.session, version)
	h := &handshake{era: EraLegacy, version: version, session: a.session}
	h.fill(a.result, e.secrets)
	return h, nil
}

// maxCapabilities bounds the capabilities that are kept.
const maxCapabilities = 32

// fill takes over what both handshakes say of the server.
func (h *handshake) fill(result []byte, secrets []string) {
	meta, _ := member(result, "_meta")
	info, ok := member(result, "serverInfo")
	if !ok {
		info, _ = member(meta, mcp.MetaServerInfo)
	}
	name, _ := stringMember(info, "name")
	version, _ := stringMember(info, "version")
	h.server = ServerInfo{Name: escape(struck(name, secrets), maxServerInfo), Version: escape(struck(version, secrets), maxServerInfo)}
	if digest, _ := stringMember(meta, mcp.MetaCatalogDigest); wellFormedDigest(digest) {
		h.catalogDigest = digest
	}
	if instructions, ok := stringMember(result, "instructions"); ok {
		h.instructions = contract.OfText(instructions)
	}
	h.ttl = ttlOf(result)
	capabilities, _ := member(result, "capabilities")
	if !isObject(capabilities) {
		return
	}
	h.capabilities = []string{}
	walkObject(capabilities, func(key string, value []byte) bool {
		if isNull(value) {
			return true
		}
		h.capabilities = append(h.capabilities, escape(struck(key, secrets), 64))
		if changed, _ := member(value, "listChanged"); isObject(value) && string(changed) == "true" {
			h.listChanged = true
		}
		return len(h.capabilities) < maxCapabilities
	})
	slices.Sort(h.capabilities)
	h.capabilities = slices.Compact(h.capabilities)
}

// maxServerInfo bounds a server's name and version.
const maxServerInfo = 128

// declares reports whether a capability is declared, or none is at all.
func (h *handshake) declares(capability string) bool {
	return h.capabilities == nil || slices.Contains(h.capabilities, capability)
}
