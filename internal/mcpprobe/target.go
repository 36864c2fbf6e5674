// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpprobe

import (
	"context"
	"net"
	"time"
)

// Target is one endpoint and how it is reached. All header values, tokens and
// keys in it are secret: they reach the wire and nothing else.
type Target struct {
	// URL of the MCP endpoint, http or https, without user information; ws and
	// wss too with TransportWebSocket.
	URL string
	// Transport to speak there.
	Transport Transport
	// DialAddress is "ip:port" to dial instead of the URL's host; empty to
	// resolve the host. The Host header and the TLS name stay the URL's.
	DialAddress string
	// Dial, when set, makes the connections to the target in place of the
	// network: a tunnel, of which the policy is not asked.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Host overrides the Host header and, unless TLS.ServerName is set, the
	// TLS server name.
	Host string
	// Headers sent to the MCP URL with each request.
	Headers []Header
	// BearerToken, when set, gives the value after "Bearer " for the MCP URL
	// (the probe's own credential at servers of ours with auth). An
	// Authorization header in Headers wins. It counts as a credential.
	BearerToken func() (string, error)
	// OAuth, when set, asks a token endpoint for the token instead. An
	// Authorization header in Headers wins.
	OAuth *OAuth
	TLS   TLS

	// ReportURL is where the pod of our image reports, empty for others. It
	// is dialled at DialAddress's IP when that is set.
	ReportURL string
	// ReportToken gives the bearer token for ReportURL.
	ReportToken func() (string, error)
	// ReportOnly: read the report and leave the MCP URL alone.
	ReportOnly bool

	// EraHint is Report.Era of the last probe of this target that had one, and
	// TransportHint its Transport, for TransportAuto.
	EraHint       Era
	TransportHint Transport
	// Kept is a proved report of this target whose lists may be kept still:
	// a modern server that says of itself what it said then is not asked for
	// them again. Nil to read the lists.
	Kept *Report
	// Tool, if set, is given each definition that the server lists as a tool,
	// in its own words, for the eyes of a person who probes by hand. It must
	// not keep the slice.
	Tool func(definition []byte)
	// Timeout of the whole probe; DefaultTimeout when 0.
	Timeout time.Duration
}

// Header is one header to send.
type Header struct {
	Name  string
	Value string
	// Credential: it is there to authenticate. With one, 401 and 403 mean
	// AuthRejected, without AuthRequired.
	Credential bool
}

// OAuth is a client at an authorization server (RFC 6749, 4.4). Its token
// endpoint is dialled by the probe's policy, without redirects.
type OAuth struct {
	TokenURL         string
	ClientID, Secret string
	Scopes           []string
	// Audience and Resource that the token is to be for; empty for none.
	Audience, Resource string
	TLS                TLS
}

// TLS of a target.
type TLS struct {
	// CAPEM replaces the system's roots when not empty; with System it is
	// added to them.
	CAPEM  []byte
	System bool
	// ServerName to send and to verify; default Host, then the URL's host.
	ServerName string
	// CertPEM and KeyPEM are the client certificate, both or none.
	CertPEM []byte
	KeyPEM  []byte
}

// Bounds of one probe. They are constants of the product, documented, and the
// same for everybody; tests shrink them.
type Bounds struct {
	// BodyBytes of one answer, after decompression.
	BodyBytes int64
	// TotalBytes of all answers of one probe.
	TotalBytes int64
	// Heavy is how many probes of one client may read more than 512 KiB at a
	// time; others wait for them within their own time.
	Heavy int
	// HeaderBytes of one answer.
	HeaderBytes int64
	// Pages over all lists.
	Pages int
	// IdlePages in a row that bring nothing new end a list.
	IdlePages int
	// Tools that are kept.
	Tools int
	// Redirects to the same origin per request.
	Redirects int
	// Replies to requests of the server per probe.
	Replies int
	// ReportTime for the pod's report.
	ReportTime time.Duration
	// EraWait is how long a silent discover is waited for before initialize
	// is sent beside it; a quarter of Timeout at most.
	EraWait time.Duration
	// EndTime for the DELETE that ends a session, and grace for an initialize
	// that is under way when the caller gives up.
	EndTime time.Duration
}

// DefaultTimeout of a probe.
const DefaultTimeout = 10 * time.Second

// DefaultBounds of the product.
func DefaultBounds() Bounds {
	return Bounds{
		BodyBytes:   10 << 20,
		TotalBytes:  32 << 20,
		Heavy:       8,
		HeaderBytes: 64 << 10,
		Pages:       100,
		IdlePages:   3,
		Tools:       5000,
		Redirects:   3,
		Replies:     10,
		ReportTime:  2 * time.Second,
		EraWait:     3 * time.Second,
		EndTime:     2 * time.Second,
	}
}
