// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpprobe

import (
	"net/http"
	"strings"

	"github.com/espalier-dev/espalier/internal/mcp"
)

// spoken are the versions spoken here, for messages.
var spoken = strings.Join(mcp.AllVersions(), ", ")

// hints say what to do, for outcomes where that is always the same.
var hints = map[Outcome]string{
	ProbeDenied:          "Loopback, link-local, metadata addresses and --probe-deny-cidrs are refused.",
	DNSFailed:            "Check the host in the URL.",
	Unreachable:          "Check network policies and routes between the operator and the server.",
	ConnectionLost:       "Check that the server does not crash or close connections while it answers.",
	TLSUntrusted:         "Set tls.ca to the authority that signed the certificate.",
	TLSExpired:           "Renew the server's certificate.",
	TLSWrongName:         "Set tls.serverName to a name in the certificate, or correct the URL.",
	TLSClientCertificate: "Set tls.clientCertificateRef to one that the server accepts.",
	TLSNotOffered:        "Write http in the URL, or switch TLS on at the server.",
	TLSExpected:          "Write https in the URL.",
	Redirected:           "Use the URL that it redirects to; only redirects with 307 or 308 to the same origin are followed.",
	UnsupportedEncoding:  "Switch compression off, or to gzip, in the proxy in front of the server.",
	ResponseTooLarge:     "Let the server page its lists, or list less.",
	StreamEnded:          "A proxy may cut event streams short.",
	AuthRequired:         "Clients bring their own credential. For the probe to see more, give it one in probe.headers.",
	AuthUnverified:       "Check the URL. An MCP server would send a Bearer challenge or a JSON-RPC error.",
	AuthRejected:         "Check that the Secret holds a credential which is valid and allowed to list.",
	TokenFailed:          "Check tokenURL, clientID, scopes and the Secret of auth, and that the operator reaches the token endpoint.",
	HostRejected:         "Allow the Service's name among the server's allowed hosts, or set probe.host to one that it allows.",
	UnsupportedProtocol:  "Upgrade the server, or Espalier.",
	SessionLost:          "Several replicas behind one address need sessions pinned or shared.",
}

// hint says what to do.
func hint(r *Report, where Where) string {
	if h, ok := hints[r.Outcome]; ok {
		return h
	}
	switch r.Outcome {
	case ConnectionRefused:
		if where.External {
			return "Check the port in the URL and that the server runs."
		}
		return "Check that the port in the spec is the one the container listens on, on all addresses and not on loopback alone."
	case Timeout:
		if r.Step == StepDial {
			return "Check that network policies let the operator's namespace reach the port."
		}
		return "If the server needs longer, raise probe.timeoutSeconds."
	case UnexpectedStatus:
		return statusHint(r.HTTPStatus)
	case NotMCP:
		return "Check that the URL's port and path are those of the MCP endpoint."
	}
	return ""
}

func statusHint(status int) string {
	switch {
	case status == http.StatusNotFound, status == http.StatusMethodNotAllowed:
		return "Check the path: the MCP endpoint is somewhere else."
	case status == http.StatusUpgradeRequired:
		return "A proxy in front of the server does not let WebSockets pass."
	case status == http.StatusTooManyRequests:
		return "The server limits requests; raise its limit or probe.intervalSeconds."
	case status == http.StatusNotAcceptable, status == http.StatusUnsupportedMediaType:
		return "The server does not take JSON by streamable HTTP."
	case status >= 500:
		return "The server or a proxy in front of it fails."
	}
	return "Check that the URL is that of the MCP endpoint."
}
