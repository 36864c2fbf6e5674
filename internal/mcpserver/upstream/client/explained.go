// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package client

// explained says of each reason what it means and what to do. Nothing of the
// peer's words is in it.
var explained = map[Reason]struct{ message, hint string }{
	CredentialMissing:   {"a credential is not mounted", "create the Secret or ConfigMap key that the headers name"},
	TokenFailed:         {"the authorization server gave no token", "check tokenURL, clientID, the Secret and the scopes of auth; the pod's log says how it failed"},
	DNSFailed:           {"the host name cannot be resolved", "check the host of the URL"},
	ConnectionRefused:   {"nothing listens at the address", "check the port, and that the server runs"},
	ConnectionLost:      {"the connection ended before the answer", "read the log of the server behind"},
	TLSFailed:           {"the TLS connection failed", "check tls.ca, tls.serverName and the server's certificate"},
	Timeout:             {"no answer came in time", "read the log of the server behind; give it more time if it is slow to start"},
	AuthRequired:        {"the server wants a credential", "give one by headers"},
	AuthRejected:        {"the server refused the credential", "check the value that the headers send"},
	SessionLost:         {"the server does not know the session any more", "none: a new session is opened"},
	Redirected:          {"the server redirects to another place", "name that place as the URL"},
	UnexpectedStatus:    {"the server answered with an HTTP status that means nothing here", "check the path of the URL"},
	NotMCP:              {"the answer is no MCP message", "check that the URL is that of an MCP endpoint"},
	TooLarge:            {"a message is larger than is allowed", "raise maxMessageBytes"},
	UnsupportedProtocol: {"there is no revision of the protocol that both sides speak", "update the server behind"},
	HandshakeRejected:   {"the server refused the handshake", "read the log of the server behind"},
	ListFailed:          {"the server did not list its tools", "read the log of the server behind"},
	ChildExited:         {"the child process ended", "read the pod's log, and check command, args and env"},
	StartFailed:         {"the child process cannot be started", "check that the image has the program that command names"},
	InvalidDocument:     {"the OpenAPI document cannot be read", "check that it is OpenAPI 3.0 or 3.1, and not too large"},
	NoServer:            {"the OpenAPI document does not say where its API is", "name it by openAPI.url"},
	UntrustedServer:     {"the OpenAPI document names a server that must not get the credentials", "name the API's address by openAPI.url"},
	Failed:              {"the upstream failed", "read the log of the pod"},
}
