// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package streamhttp

import (
	"net/http"
	"strings"

	"github.com/espalier-dev/espalier/internal/mcp"
)

// corsHeaders are the request headers that a page may send.
var corsHeaders = []string{
	"Content-Type", "Accept", "Authorization", "Last-Event-ID",
	"Mcp-Protocol-Version", "Mcp-Session-Id", "Mcp-Method", "Mcp-Name",
}

const preflightSeconds = "600"

// allowOrigin writes the CORS headers for an Origin that passed the rule.
func allowOrigin(header http.Header, r *http.Request, origin string) {
	header.Set("Access-Control-Allow-Origin", origin)
	header.Add("Vary", "Origin")
	header.Set("Access-Control-Expose-Headers", mcp.HeaderSessionID)
	if r.Method != http.MethodOptions {
		return
	}
	header.Set("Access-Control-Allow-Methods", allowedMethods)
	header.Set("Access-Control-Max-Age", preflightSeconds)
	allowed := corsHeaders
	for name := range strings.SplitSeq(r.Header.Get("Access-Control-Request-Headers"), ",") {
		// Parameters' headers are named by the tools; a list cannot hold them.
		name = http.CanonicalHeaderKey(strings.TrimSpace(name))
		if strings.HasPrefix(name, mcp.HeaderParamPrefix) && len(allowed) < 100 {
			allowed = append(allowed[:len(allowed):len(allowed)], name)
		}
	}
	header.Set("Access-Control-Allow-Headers", strings.Join(allowed, ", "))
}

// isJSON reports whether a Content-Type is JSON, whatever its case and its
// parameters.
func isJSON(contentType string) bool {
	base, _, _ := strings.Cut(contentType, ";")
	return strings.EqualFold(strings.TrimSpace(base), "application/json")
}

// accepts reports whether the Accept headers let a media type pass. None at
// all accepts everything, as HTTP has it.
func accepts(values []string, mediaType string) bool {
	if len(values) == 0 {
		return true
	}
	group, _, _ := strings.Cut(mediaType, "/")
	named := false
	for _, value := range values {
		for part := range strings.SplitSeq(value, ",") {
			base, parameters, _ := strings.Cut(part, ";")
			base = strings.TrimSpace(base)
			if base == "" {
				continue
			}
			named = true
			matches := base == "*/*" || strings.EqualFold(base, mediaType) ||
				len(base) == len(group)+2 && strings.EqualFold(base[:len(group)], group) && base[len(group):] == "/*"
			if matches && !refusedByQ(parameters) {
				return true
			}
		}
	}
	return !named
}

// refusedByQ reports whether parameters hold q=0.
func refusedByQ(parameters string) bool {
	for p := range strings.SplitSeq(parameters, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(p), "=")
		if strings.EqualFold(name, "q") && strings.Trim(value, "0.") == "" && value != "" {
			return true
		}
	}
	return false
}
