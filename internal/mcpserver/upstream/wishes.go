// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"encoding/json"
	"slices"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/mcpserver/principal"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// wishes are what a caller declares and wants, as far as it concerns an upstream.
type wishes struct {
	// capabilities is the raw object that is passed on, nil for none; legacy
	// is the part of it that a legacy server is told.
	capabilities, legacy []byte
	// asked: the caller can be asked by elicitation or sampling.
	asked bool
	// level is the least level of log messages; empty for none.
	level string
}

// asks are what a server may ask of a client: the method, the capability that
// allows it, and its name in a catalog.
var asks = []struct {
	method, capability string
	name               serverconfig.Ask
}{
	{mcp.MethodElicit, "elicitation", serverconfig.AskElicitation},
	{mcp.MethodCreateMessage, "sampling", serverconfig.AskSampling},
	{mcp.MethodListRoots, "roots", serverconfig.AskRoots},
}

// extensionUI is the one extension that is passed on.
const extensionUI = "io.modelcontextprotocol/ui"

// wishesOf says what the caller of c wants of an upstream. forward limits what
// a child may ask; others may ask all.
func wishesOf(c *call.Call, child *serverconfig.Stdio) wishes {
	if c.Client == nil {
		return wishes{}
	}
	w := wishes{level: c.Client.LogLevel()}
	raw := c.Client.Capabilities()
	if len(raw) <= len("{}") {
		return w
	}
	declared, err := wire.DecodeObject(raw)
	if err != nil {
		return w
	}
	for _, ask := range asks {
		value := declared.Get(ask.capability)
		if !wire.IsObject(value) || child != nil && !slices.Contains(child.Forward, ask.name) {
			continue
		}
		if ask.name != serverconfig.AskRoots {
			w.asked = true
		} else if c.Client.Session() == "" {
			value = []byte("{}") // A change of them could be told by nobody.
		}
		w.capabilities = addMember(w.capabilities, ask.capability, value)
	}
	w.legacy = braced(w.capabilities)
	if extensions, err := wire.DecodeObject(declared.Get("extensions")); err == nil {
		if ui := extensions.Get(extensionUI); ui != nil {
			w.capabilities = addMember(w.capabilities, "extensions", braced(addMember(nil, extensionUI, ui)))
		}
	}
	w.capabilities = braced(w.capabilities)
	return w
}

func addMember(dst []byte, key string, raw []byte) []byte {
	if len(dst) > 0 {
		return wire.AppendField(dst, key, raw)
	}
	return append(append(wire.AppendString(nil, key), ':'), raw...)
}

func braced(members []byte) []byte {
	if members == nil {
		return nil
	}
	return append(append([]byte{'{'}, members...), '}')
}

// allows reports whether capabilities, a raw object, let a server ask method.
func allows(capabilities []byte, method string) bool {
	declared, err := wire.DecodeObject(capabilities)
	if err != nil {
		return false
	}
	for _, ask := range asks {
		if ask.method == method {
			return wire.IsObject(declared.Get(ask.capability))
		}
	}
	return false
}

// takesURLs reports whether a client can be sent to a URL.
func takesURLs(capabilities []byte) bool {
	declared, err := wire.DecodeObject(capabilities)
	if err != nil {
		return false
	}
	elicitation, err := wire.DecodeObject(declared.Get("elicitation"))
	return err == nil && wire.IsObject(elicitation.Get("url"))
}

// levels of log messages, the least first.
var levels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

const (
	levelDebug = "debug"
	// levelShared is what is asked of a legacy session that callers share:
	// the level is the session's, so none of them may set it.
	levelShared = "info"
)

// wants reports whether a caller that wants least is told a message with these
// params. An unknown level counts as info.
func wants(least string, params json.RawMessage) bool {
	if least == "" {
		return false
	}
	object, err := wire.DecodeObject(params)
	if err != nil {
		return false
	}
	level, _ := object.Text("level")
	at := slices.Index(levels, level)
	if at < 0 {
		at = slices.Index(levels, levelShared)
	}
	return at >= slices.Index(levels, least)
}

// owner tells clients apart, as far as they can be: by their session, else by
// who they are. verified is false for those who may be anybody.
func owner(c *call.Call) (key string, verified bool) {
	if c.Client != nil && c.Client.Session() != "" {
		return sessionKey(c.Client.Session()), true
	}
	return principalOf(c)
}

func sessionKey(id string) string { return "session/" + id }

// principalOf tells who calls; verified is false for the anonymous.
func principalOf(c *call.Call) (key string, verified bool) {
	return "principal/" + c.Caller.Key(), c.Caller.Kind != principal.Anonymous
}
