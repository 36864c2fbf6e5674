// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpprobe

import (
	"fmt"
	"strconv"
	"strings"
)

// MaxMessage is the length of the longest Message, in bytes.
const MaxMessage = 700

// Where says where a reader finds the evidence that a message may not carry.
type Where struct {
	// Pod whose log has it, and its namespace; empty for external servers and
	// Services.
	Pod, Namespace string
	// External: the server is not run by Espalier, so its spec holds the URL.
	External bool
}

// evidence is the sentence that leads to the peer's own words.
func (w Where) evidence() string {
	if w.Pod != "" {
		return "Read: kubectl logs " + w.Pod + " -n " + w.Namespace + "."
	}
	return "Read the server's own log."
}

// Message says in a fixed text what the report means, where the evidence lies
// and what to do. It holds no words, address, header or time of the peer, is
// the same for equal facts, and is at most MaxMessage bytes.
func Message(r *Report, where Where) string {
	parts := []string{what(r)}
	if r.Outcome == Proved {
		if r.Truncated {
			parts = append(parts, "Its lists were cut at the probe's bounds: the counts are of what was read.")
		}
		return cut(strings.Join(parts, " "), MaxMessage)
	}
	switch r.Outcome {
	case Canceled, InvalidTarget, ProbeDenied, TokenFailed, DNSFailed, Unreachable:
		// The server has seen nothing of it.
	default:
		parts = append(parts, where.evidence())
	}
	if h := hint(r, where); h != "" {
		parts = append(parts, h)
	}
	return cut(strings.Join(parts, " "), MaxMessage)
}

// at names the request that was under way.
func at(r *Report) string {
	switch r.Step {
	case StepDial:
		return "connecting"
	case StepTLS:
		return "the TLS handshake"
	case StepReport:
		return "the pod's report"
	case StepToken:
		return "the request for a token"
	}
	return string(r.Step)
}

// code is the JSON-RPC error's code, when there was one.
func code(r *Report) string {
	if r.RPCCode == 0 {
		return "an error"
	}
	return "JSON-RPC error " + strconv.Itoa(r.RPCCode)
}

// status is the HTTP status, when there was an answer.
func status(r *Report) string {
	if r.HTTPStatus == 0 {
		return ""
	}
	return fmt.Sprintf(" (HTTP %d)", r.HTTPStatus)
}

// fixed are the texts that depend on nothing but the outcome.
var fixed = map[Outcome]string{
	Canceled:             "The probe was cancelled.",
	InvalidTarget:        "The address, a header or the TLS material cannot be used; nothing was dialled.",
	ProbeDenied:          "The address is one that the probe never dials.",
	DNSFailed:            "The host name did not resolve.",
	ConnectionRefused:    "The connection was refused: nothing listens on the port.",
	Unreachable:          "The network has no way to the address.",
	TLSUntrusted:         "The server's certificate is signed by no authority that is trusted here.",
	TLSExpired:           "The server's certificate is expired or not valid yet.",
	TLSWrongName:         "The server's certificate is for another name.",
	TLSClientCertificate: "The server wants a client certificate, or another one than it was given.",
	TLSNotOffered:        "The URL says https, and the server speaks plain HTTP.",
	TLSExpected:          "The URL says http, and the server speaks TLS.",
	TLSFailed:            "The TLS handshake failed.",
	ReportInvalid:        "The pod's report cannot be read.",
}

// what says what was seen.
func what(r *Report) string {
	if text, ok := fixed[r.Outcome]; ok {
		return text
	}
	if tell, ok := told[r.Outcome]; ok {
		return tell(r)
	}
	return "The outcome is " + string(r.Outcome) + "."
}

// told are the texts that depend on more than the outcome.
var told = map[Outcome]func(*Report) string{
	Proved: proved,
	ConnectionLost: func(r *Report) string {
		return fmt.Sprintf("The connection broke during %s.", at(r))
	},
	Timeout: func(r *Report) string {
		if r.Step == StepDial {
			return "No connection was made within the time allowed."
		}
		return fmt.Sprintf("No answer to %s within the time allowed.", at(r))
	},
	Redirected: func(r *Report) string {
		return fmt.Sprintf("The server redirects %s to another place%s.", at(r), status(r))
	},
	UnexpectedStatus: func(r *Report) string {
		return fmt.Sprintf("The answer to %s is HTTP %d and no MCP.", at(r), r.HTTPStatus)
	},
	NotMCP: func(r *Report) string {
		return fmt.Sprintf("The answer to %s is not MCP%s: %s.", at(r), status(r), flaw(r))
	},
	UnsupportedEncoding: func(r *Report) string {
		return fmt.Sprintf("The answer to %s is compressed with %s, which was not asked for.", at(r), r.Encoding)
	},
	ResponseTooLarge: func(r *Report) string {
		return fmt.Sprintf("The answer to %s is larger than %d bytes.", at(r), r.Limit)
	},
	StreamEnded: func(r *Report) string {
		return fmt.Sprintf("The event stream ended before the answer to %s.", at(r))
	},
	AuthRequired: func(r *Report) string {
		return fmt.Sprintf("The server wants a credential for %s%s, and the probe has none.", at(r), status(r))
	},
	AuthUnverified: func(r *Report) string {
		return fmt.Sprintf("Something wants a credential for %s%s, and nothing shows that it is an MCP server.", at(r), status(r))
	},
	AuthRejected: func(r *Report) string {
		return fmt.Sprintf("The credential was refused for %s%s.", at(r), status(r))
	},
	TokenFailed: func(r *Report) string {
		return fmt.Sprintf("The authorization server gave no token%s; the server itself was not asked.", status(r))
	},
	HostRejected: func(r *Report) string {
		return fmt.Sprintf("The server refuses the Host header%s.", status(r))
	},
	UnsupportedProtocol: unsupported,
	HandshakeRejected: func(r *Report) string {
		return fmt.Sprintf("The server answered %s with %s%s.", at(r), code(r), status(r))
	},
	SessionLost: func(r *Report) string {
		return fmt.Sprintf("The server did not know its own session any more at %s%s.", at(r), status(r))
	},
	ListFailed: func(r *Report) string {
		if r.Flaw != "" {
			return fmt.Sprintf("The answer to %s is no list%s: %s.", at(r), status(r), flaw(r))
		}
		return fmt.Sprintf("The server answered %s with %s%s.", at(r), code(r), status(r))
	},
}

func proved(r *Report) string {
	if r.Tools.State == ToolsNotDeclared {
		return fmt.Sprintf("Answered as an MCP server (%s); it declares no tools.", r.ProtocolVersion)
	}
	return fmt.Sprintf("Answered as an MCP server (%s) with %d tools.", r.ProtocolVersion, len(r.Tools.Tools))
}

func unsupported(r *Report) string {
	offered := "no version that can be read"
	if len(r.Offered) > 0 {
		offered = strings.Join(r.Offered, ", ")
	}
	return fmt.Sprintf("The server offers %s; spoken here are %s.", offered, spoken)
}

// flaw says in what way an answer is not what it should be.
func flaw(r *Report) string {
	switch r.Flaw {
	case FlawMediaType:
		switch r.MediaType {
		case typeNone:
			return "no content type"
		case typeMalformed:
			return "a malformed content type"
		case typeOther:
			return "an unexpected content type"
		}
		return "content type " + r.MediaType
	case FlawNotHTTP:
		return "the bytes are no HTTP"
	case FlawEmpty:
		return "the body is empty"
	case FlawNotJSON:
		return "the body is not JSON"
	case FlawNotJSONRPC:
		return "JSON, but no JSON-RPC response"
	case FlawWrongID:
		return "a response to another request"
	case FlawMissingFields:
		return "the result lacks required fields"
	}
	return "unknown"
}
