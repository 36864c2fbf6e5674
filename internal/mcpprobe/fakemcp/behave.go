// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package fakemcp

import (
	"encoding/json"
	"net/http"

	"github.com/espalier-dev/espalier/internal/mcp"
)

// Default answers as if no handler for Any was set.
func (c *Call) Default() {
	key := c.Method
	switch c.R.Method {
	case http.MethodGet:
		key = GET
	case http.MethodDelete:
		key = DELETE
	case http.MethodPost:
		if key == "" {
			key = Reply
		}
	default:
		c.Text(http.StatusMethodNotAllowed, "", "")
		return
	}
	if h := c.handler(key); h != nil {
		h(c)
		return
	}
	c.WellBehaved()
}

// WellBehaved answers as the base server does, whatever handlers are set.
func (c *Call) WellBehaved() {
	switch {
	case c.R.Method == http.MethodGet:
		c.Text(http.StatusMethodNotAllowed, "", "")
	case c.R.Method == http.MethodDelete:
		c.end(c.R.Header.Get(mcp.HeaderSessionID))
		c.Text(http.StatusOK, "", "")
	case c.Settings.Modern && c.R.Header.Get(mcp.HeaderProtocolVersion) >= mcp.Version20260728:
		c.modern()
	case !c.Settings.Legacy:
		c.Error(http.StatusBadRequest, mcp.CodeUnsupportedProtocolVersion, "unsupported protocol version",
			map[string]any{"supported": mcp.ModernVersions})
	default:
		c.legacy()
	}
}

func (c *Call) legacy() {
	switch c.Method {
	case mcp.MethodDiscover:
		c.Text(http.StatusBadRequest, "text/plain", "unsupported")
		return
	case mcp.MethodInitialize:
		c.Initialize(c.Settings.Version)
		return
	}
	if !c.Settings.Stateless {
		id := c.R.Header.Get(mcp.HeaderSessionID)
		if id == "" {
			c.Text(http.StatusBadRequest, "text/plain", "session header missing")
			return
		}
		if !c.known(id) {
			c.Text(http.StatusNotFound, "text/plain", "unknown session")
			return
		}
	}
	if c.Method == mcp.NotificationInitialized || c.Method == "" {
		c.Text(http.StatusAccepted, "", "")
		return
	}
	c.list(map[string]any{})
}

// Open opens a session and names it in the answer, whatever that will be.
func (c *Call) Open() { c.W.Header().Set(mcp.HeaderSessionID, c.open()) }

// Initialize answers initialize with a version, and opens a session unless
// the server is stateless.
func (c *Call) Initialize(version string) {
	if !c.Settings.Stateless {
		c.Open()
	}
	result := map[string]any{
		"protocolVersion": version,
		"serverInfo":      map[string]any{"name": c.Settings.Name, "version": "1"},
	}
	if c.Settings.Capabilities != nil {
		result["capabilities"] = c.Settings.Capabilities
	}
	c.Result(result)
}

func (c *Call) modern() {
	if c.R.Header.Get(mcp.HeaderMethod) != c.Method {
		c.Error(http.StatusBadRequest, mcp.CodeHeaderMismatch, "header mismatch", nil)
		return
	}
	base := map[string]any{"resultType": "complete", "ttlMs": c.Settings.TTLMs, "cacheScope": "public"}
	if c.Method != mcp.MethodDiscover {
		c.list(base)
		return
	}
	base["supportedVersions"] = mcp.ModernVersions
	base["_meta"] = map[string]any{mcp.MetaServerInfo: map[string]any{"name": c.Settings.Name, "version": "1"}}
	if c.Settings.Capabilities != nil {
		base["capabilities"] = c.Settings.Capabilities
	}
	c.Result(base)
}

// list answers lists and calls.
func (c *Call) list(base map[string]any) {
	switch c.Method {
	case mcp.MethodToolsList:
		base["tools"] = entries(c.Settings.Tools)
	case mcp.MethodResourcesList:
		base["resources"] = entries(c.Settings.Resources)
	case mcp.MethodPromptsList:
		base["prompts"] = entries(c.Settings.Prompts)
	case mcp.MethodToolsCall:
		var p struct {
			Arguments json.RawMessage `json:"arguments"`
		}
		_ = json.Unmarshal(c.Params, &p)
		base["content"] = []any{map[string]any{"type": "text", "text": string(p.Arguments)}}
	default:
		c.Error(http.StatusOK, mcp.CodeMethodNotFound, "method not found", nil)
		return
	}
	c.Result(base)
}

func entries(list []json.RawMessage) []json.RawMessage {
	if list == nil {
		return []json.RawMessage{}
	}
	return list
}
