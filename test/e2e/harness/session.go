// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"net/http"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/espalier-dev/espalier/internal/mcp"
)

// Eras are one revision of each era that the official client speaks.
var Eras = map[string]string{
	"modern": mcp.Version20260728,
	"legacy": mcp.Version20251125,
}

// Session opens a session with p by the official Go client, at the revision
// of the protocol given.
func (p *Peer) Session(ctx context.Context, version string) *sdk.ClientSession {
	GinkgoHelper()
	return p.SessionWith(ctx, version, nil)
}

// SessionWith is Session with options of the client, which may be nil.
func (p *Peer) SessionWith(ctx context.Context, version string, options *sdk.ClientOptions) *sdk.ClientSession {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	client := sdk.NewClient(&sdk.Implementation{Name: "espalier-e2e", Version: "0"}, options)
	session, err := client.Connect(ctx, &sdk.StreamableClientTransport{
		Endpoint:             p.URL,
		HTTPClient:           &http.Client{Transport: hostTransport(p.Host)},
		MaxRetries:           -1,
		DisableStandaloneSSE: true,
	}, &sdk.ClientSessionOptions{ProtocolVersion: version})
	Expect(err).NotTo(HaveOccurred(), "session with %s at %s", p.Name, version)
	DeferCleanup(func() { _ = session.Close() })
	return session
}

// hostTransport sends requests with this Host header.
type hostTransport string

// RoundTrip implements http.RoundTripper.
func (h hostTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if h != "" {
		req = req.Clone(req.Context())
		req.Host = string(h)
	}
	return http.DefaultTransport.RoundTrip(req)
}
