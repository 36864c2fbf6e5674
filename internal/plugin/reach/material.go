// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/catalog"
	"github.com/espalier-dev/espalier/internal/dialing"
	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/oauth"
	"github.com/espalier-dev/espalier/internal/plugin/env"
)

// values reads what is needed to dial server by the user's own rights. What is
// missing or may not be read is named in unread, and may turn out not to be
// needed.
func (c *cluster) values(ctx context.Context, server *mcpv1.MCPServer) (values map[catalog.Ref][]byte, unread []string, err error) {
	values = map[catalog.Ref][]byte{}
	for _, ref := range catalog.ProbeRefs(server) {
		value, ok, err := dialing.Read(ctx, c.client, server.Namespace, ref)
		switch {
		case apierrors.IsForbidden(err):
			unread = append(unread, fmt.Sprintf("%s %s may not be read with your rights", ref.Kind, ref.Name))
		case apierrors.IsNotFound(err):
			unread = append(unread, fmt.Sprintf("%s %s does not exist", ref.Kind, ref.Name))
		case err != nil:
			return nil, nil, env.ClusterError(err)
		case ok:
			values[ref] = value
		}
	}
	return values, unread, nil
}

// dressed adds to each request what no header of a request can say.
type dressed struct {
	*http.Transport
	host  string
	token *bearer
}

// RoundTrip is http.RoundTripper's.
func (d *dressed) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	if d.host != "" {
		request.Host = d.host
	}
	if d.token != nil && request.Header.Get("Authorization") == "" {
		token, err := d.token.get(request.Context())
		if err != nil {
			return nil, err
		}
		request.Header.Set("Authorization", "Bearer "+token)
	}
	return d.Transport.RoundTrip(request)
}

// bearer gets tokens of the client that the server's spec names.
type bearer struct {
	client  *mcpprobe.OAuth
	fetcher oauth.Fetcher

	mu    sync.Mutex
	value string
	until time.Time
}

// tokenMargin is how long before its end a token is not used any more; one
// that does not say when it ends is used for tokenSilent.
const (
	tokenMargin = 30 * time.Second
	tokenSilent = 5 * time.Minute
)

func newBearer(client *mcpprobe.OAuth) *bearer {
	if client == nil {
		return nil
	}
	return &bearer{client: client}
}

func (b *bearer) get(ctx context.Context) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if time.Now().Before(b.until) {
		return b.value, nil
	}
	config, err := b.client.TLS.Config()
	if err != nil {
		return "", err
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: config, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	c := b.client
	token, err := b.fetcher.Fetch(ctx, &http.Client{Transport: transport}, &oauth.Request{
		TokenURL: c.TokenURL, ClientID: c.ClientID, Secret: c.Secret, Scopes: c.Scopes, Audience: c.Audience, Resource: c.Resource,
	})
	if err != nil {
		return "", env.Hint(fmt.Errorf("the authorization server of external.auth gave no token: %w", err),
			"It is asked from this machine. Give a token of your own with --token-file where it cannot be reached from here.")
	}
	b.value, b.until = token.Value, time.Now().Add(tokenSilent)
	if !token.Expires.IsZero() {
		b.until = token.Expires.Add(-tokenMargin)
	}
	return b.value, nil
}

// hostname of a Host header.
func hostname(host string) string { return (&url.URL{Host: host}).Hostname() }

// withoutQuery is a URL as it may be printed.
func withoutQuery(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "(a URL that cannot be read)"
	}
	u.User, u.RawQuery, u.ForceQuery, u.Fragment = nil, "", false, ""
	return u.String()
}
