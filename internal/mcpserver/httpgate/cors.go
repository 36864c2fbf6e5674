// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package httpgate

import (
	"net/http"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/espalier-dev/espalier/internal/mcp"
)

// corsHeaders are the request headers that a page may send.
var corsHeaders = []string{
	"Content-Type", "Accept", "Authorization", "X-Api-Key", "Last-Event-ID", HeaderRequestID,
	"Mcp-Protocol-Version", "Mcp-Session-Id", "Mcp-Method", "Mcp-Name",
}

const (
	preflightSeconds = "600"
	// maxAllowed headers of one answer to a preflight.
	maxAllowed = 100
)

// allowOrigin writes the CORS headers for an Origin that passed the rule. A
// page has to read the challenge to know whom to ask for a token.
func allowOrigin(header http.Header, r *http.Request, origin, methods string) {
	header.Set("Access-Control-Allow-Origin", origin)
	header.Add("Vary", "Origin")
	header.Set("Access-Control-Expose-Headers", mcp.HeaderSessionID+", WWW-Authenticate, "+HeaderRequestID)
	if r.Method != http.MethodOptions {
		return
	}
	header.Set("Access-Control-Allow-Methods", methods)
	header.Set("Access-Control-Max-Age", preflightSeconds)
	allowed := corsHeaders
	for name := range strings.SplitSeq(r.Header.Get("Access-Control-Request-Headers"), ",") {
		// Parameters' headers are named by the tools; a list cannot hold them.
		name = http.CanonicalHeaderKey(strings.TrimSpace(name))
		if strings.HasPrefix(name, mcp.HeaderParamPrefix) && httpguts.ValidHeaderFieldName(name) && len(allowed) < maxAllowed {
			allowed = append(allowed[:len(allowed):len(allowed)], name)
		}
	}
	header.Set("Access-Control-Allow-Headers", strings.Join(allowed, ", "))
}
