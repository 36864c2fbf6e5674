// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reach talks to MCP servers in the cluster from the user's machine:
// each connection is forwarded by the API server to a pod, as "kubectl
// port-forward" does, so that no ingress is needed and the user's own rights
// decide. It opens no port on the user's machine.
package reach

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/dialing"
	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/plugin/env"
	"github.com/espalier-dev/espalier/internal/podstate"
	"github.com/espalier-dev/espalier/internal/resources"
)

// DefaultMaxBytes of one message.
const DefaultMaxBytes = 10 << 20

// Endpoint is one replica, an External server, or a server as a whole, that
// can be talked to. It is safe for concurrent use once its fields are set.
type Endpoint struct {
	// Pod is the replica's; empty for External servers and for a server as a
	// whole.
	Pod string
	// URL of the MCP endpoint as the cluster has it.
	URL string
	// Transport spoken there; TransportAuto where that is to be found out.
	Transport mcpprobe.Transport
	// Host header; empty for the URL's.
	Host string
	// Header of each request, never printed. Credential says that one is
	// among them.
	Header     http.Header
	Credential bool
	// TLS of an https or wss URL.
	TLS mcpprobe.TLS
	// MaxBytes of one message.
	MaxBytes int64

	dial   dialer
	direct bool
	oauth  *mcpprobe.OAuth
	// unread says what the user may not read, or is not there, and what for.
	unread []string
}

// dialer is net.Dialer's DialContext.
type dialer = func(ctx context.Context, network, address string) (net.Conn, error)

// Name tells endpoints of one server apart, for people.
func (p *Endpoint) Name() string {
	if p.Pod != "" {
		return p.Pod
	}
	return withoutQuery(p.URL)
}

// Address is the URL as it may be printed: without its query.
func (p *Endpoint) Address() string { return withoutQuery(p.URL) }

// Where is the server that the user called so, in a sentence.
func (p *Endpoint) Where(server string) string {
	if IsURL(server) {
		return withoutQuery(p.URL)
	}
	return fmt.Sprintf("MCPServer %q", server)
}

// DialContext makes a connection to the endpoint, whatever the address says.
func (p *Endpoint) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return p.dial(ctx, network, address)
}

// HTTP gives a client of the endpoint alone, with connections of its own. It
// follows no redirect; headers are those of the request.
func (p *Endpoint) HTTP() *http.Client {
	config, err := p.TLS.Config()
	if err != nil {
		// Whoever made the endpoint has checked it; a broken one trusts nobody.
		config = &tls.Config{MinVersion: tls.VersionTLS12, VerifyConnection: func(tls.ConnectionState) error { return err }}
	}
	if config.ServerName == "" && p.Host != "" {
		config.ServerName = hostname(p.Host)
	}
	transport := &http.Transport{
		DialContext: p.DialContext, TLSClientConfig: config, ForceAttemptHTTP2: true,
		MaxResponseHeaderBytes: 64 << 10,
	}
	if p.direct {
		transport.Proxy = http.ProxyFromEnvironment
	}
	out := &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	if p.Host != "" || p.oauth != nil {
		out.Transport = &dressed{Transport: transport, host: p.Host, token: newBearer(p.oauth)}
	}
	return out
}

// Target is the endpoint as the operator's probe takes it.
func (p *Endpoint) Target() mcpprobe.Target {
	t := mcpprobe.Target{URL: p.URL, Transport: p.Transport, Host: p.Host, TLS: p.TLS, OAuth: p.oauth}
	if !p.direct {
		t.Dial = p.DialContext
	}
	for name, values := range p.Header {
		for _, value := range values {
			t.Headers = append(t.Headers, mcpprobe.Header{Name: name, Value: value, Credential: p.Credential})
		}
	}
	slices.SortStableFunc(t.Headers, func(a, b mcpprobe.Header) int { return strings.Compare(a.Name, b.Name) })
	return t
}

// Replicas gives every pod of server whose containers are ready, sorted by
// name; of an External server the one endpoint there is. There is one at least.
func Replicas(ctx context.Context, e *env.Env, server *mcpv1.MCPServer) ([]*Endpoint, error) {
	c, err := clusterOf(e)
	if err != nil {
		return nil, err
	}
	return c.replicas(ctx, server)
}

// Any gives server as a whole: each connection leads to a replica that is ready
// when it is made, the same one as long as that is, and is waited for within
// the dial's context when there is none. So it outlives its pods.
func Any(ctx context.Context, e *env.Env, server *mcpv1.MCPServer) (*Endpoint, error) {
	c, err := clusterOf(e)
	if err != nil {
		return nil, err
	}
	return c.whole(ctx, server)
}

// Direct is an endpoint that the user's machine reaches by itself.
func Direct(url string, transport mcpprobe.Transport) *Endpoint {
	return &Endpoint{URL: url, Transport: transport, MaxBytes: DefaultMaxBytes, dial: new(net.Dialer).DialContext, direct: true}
}

// cluster is what reaching takes of it.
type cluster struct {
	client  client.WithWatch
	forward forwarder
}

func clusterOf(e *env.Env) (*cluster, error) {
	c, err := e.Client()
	if err != nil {
		return nil, err
	}
	config, err := e.REST()
	if err != nil {
		return nil, err
	}
	return &cluster{client: c, forward: forwardBy(config)}, nil
}

func (c *cluster) replicas(ctx context.Context, server *mcpv1.MCPServer) ([]*Endpoint, error) {
	base, err := c.endpoint(ctx, server)
	if err != nil || !resources.HasPods(server) {
		return []*Endpoint{base}, err
	}
	pods, err := c.pods(ctx, server)
	if err != nil {
		return nil, err
	}
	var out []*Endpoint
	for i := range pods.Items {
		if pod := &pods.Items[i]; podstate.Dialable(pod) {
			one := *base
			one.Pod, one.dial = pod.Name, c.toPod(pod.Namespace, pod.Name, resources.ContainerPort(server))
			out = append(out, &one)
		}
	}
	if out == nil {
		return nil, noReplica(server, len(pods.Items))
	}
	slices.SortFunc(out, func(a, b *Endpoint) int { return strings.Compare(a.Pod, b.Pod) })
	return out, nil
}

func (c *cluster) whole(ctx context.Context, server *mcpv1.MCPServer) (*Endpoint, error) {
	out, err := c.endpoint(ctx, server)
	if err != nil || !resources.HasPods(server) {
		return out, err
	}
	if resources.Replicas(server) == 0 {
		return nil, noReplica(server, 0)
	}
	out.dial = (&picker{cluster: c, server: server}).dial
	return out, nil
}

// endpoint is what all endpoints of server have in common. The headers of the
// probe are the operator's and stay with it.
func (c *cluster) endpoint(ctx context.Context, server *mcpv1.MCPServer) (*Endpoint, error) {
	bare := server.DeepCopy()
	if bare.Spec.Probe != nil {
		bare.Spec.Probe.Headers = nil
	}
	values, unread, err := c.values(ctx, bare)
	if err != nil {
		return nil, err
	}
	material := dialing.Gather(bare, values)
	if _, err := material.TLS.Config(); err != nil {
		return nil, env.Hint(fmt.Errorf("the TLS material of MCPServer %q cannot be used: %w", server.Name, err),
			"Check the Secret or ConfigMap that its spec names; \"kubectl mcp why "+server.Name+"\" says which.")
	}
	t := material.Target(bare)
	out := &Endpoint{
		URL: t.URL, Transport: t.Transport, Host: t.Host, Header: http.Header{}, TLS: t.TLS, MaxBytes: DefaultMaxBytes,
		oauth: t.OAuth, unread: unread, dial: new(net.Dialer).DialContext, direct: !resources.HasPods(server),
	}
	if s, ok := serviceOf(t.URL); ok && out.direct {
		out.dial, out.direct = c.toService(s), false
	}
	for _, h := range t.Headers {
		out.Header.Add(h.Name, h.Value)
		out.Credential = out.Credential || h.Credential
	}
	out.Credential = out.Credential || out.oauth != nil
	return out, nil
}

func (c *cluster) pods(ctx context.Context, server *mcpv1.MCPServer) (*corev1.PodList, error) {
	pods := &corev1.PodList{}
	err := c.client.List(ctx, pods, client.InNamespace(server.Namespace), client.MatchingLabels(resources.Selector(server)))
	return pods, env.ClusterError(err)
}

// noReplica says why there is none to talk to, as far as that is plain.
func noReplica(server *mcpv1.MCPServer, pods int) error {
	err := fmt.Errorf("no replica of MCPServer %q can be talked to: none of its %d pods is ready", server.Name, pods)
	switch {
	case server.Spec.Suspend != nil && *server.Spec.Suspend:
		return env.Hint(fmt.Errorf("MCPServer %q is suspended and has no pods", server.Name), "Set spec.suspend to false to start it again.")
	case resources.Replicas(server) == 0:
		return env.Hint(fmt.Errorf("MCPServer %q is scaled to zero", server.Name),
			fmt.Sprintf("Start it: kubectl scale mcpserver %s -n %s --replicas=1", server.Name, server.Namespace))
	case pods == 0:
		err = fmt.Errorf("MCPServer %q has no pods", server.Name)
	}
	return env.Hint(err, fmt.Sprintf("Find out why: kubectl mcp why %s -n %s", server.Name, server.Namespace))
}
