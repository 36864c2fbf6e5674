// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/espalier-dev/espalier/internal/plugin/env"
)

// forwarder makes a connection to a port of a pod.
type forwarder func(ctx context.Context, namespace, pod string, port int32) (net.Conn, error)

// toPod is the dialer of one pod.
func (c *cluster) toPod(namespace, pod string, port int32) dialer {
	return func(ctx context.Context, _, _ string) (net.Conn, error) { return c.forward(ctx, namespace, pod, port) }
}

// forwardBy forwards through the API server of config. Each connection has a
// tunnel of its own: one that stalls holds up no other, and its end ends all
// that belongs to it.
func forwardBy(config *rest.Config) forwarder {
	return func(ctx context.Context, namespace, pod string, port int32) (net.Conn, error) {
		to, err := podURL(config, namespace, pod)
		if err != nil {
			return nil, err
		}
		dialer, err := tunnels(config, to)
		if err != nil {
			return nil, env.ClusterError(err)
		}
		tunnel, err := dialTunnel(ctx, dialer)
		if err != nil {
			return nil, forwardError(err, pod)
		}
		conn, err := openConn(tunnel, port)
		if err != nil {
			_ = tunnel.Close()
			return nil, fmt.Errorf("the way to pod %s broke: %w", pod, err)
		}
		return conn, nil
	}
}

// podURL of the subresource.
func podURL(config *rest.Config, namespace, pod string) (*url.URL, error) {
	config = rest.CopyConfig(config)
	config.APIPath, config.GroupVersion = "/api", &corev1.SchemeGroupVersion
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	c, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, env.ClusterError(err)
	}
	return c.Post().Resource("pods").Namespace(namespace).Name(pod).SubResource("portforward").URL(), nil
}

// tunnels dials by WebSocket, and by SPDY where a server or a proxy before it
// knows no WebSocket, or a role allows one way only, as kubectl does.
func tunnels(config *rest.Config, to *url.URL) (httpstream.Dialer, error) {
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return nil, err
	}
	older := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, to)
	newer, err := portforward.NewSPDYOverWebsocketDialerForStreaming(to, config)
	if err != nil {
		return nil, err
	}
	return &fallback{newer, older}, nil
}

// fallback is the library's, which does not tell why the first way failed: of
// the two errors that alone may hold a status of the API.
type fallback struct{ newer, older httpstream.Dialer }

// Dial is httpstream.Dialer's.
func (f *fallback) Dial(protocols ...string) (httpstream.Connection, string, error) {
	tunnel, protocol, first := f.newer.Dial(protocols...)
	var refused *httpstream.UpgradeFailureError
	upgrade := errors.As(first, &refused)
	if first == nil || !upgrade && !httpstream.IsHTTPSProxyError(first) {
		return tunnel, protocol, first
	}
	tunnel, protocol, err := f.older.Dial(protocols...)
	var status *apierrors.StatusError
	if err != nil && upgrade && errors.As(refused.Cause, &status) {
		return nil, "", status
	}
	return tunnel, protocol, err
}

// dialTunnel dials until ctx ends. The library knows no context: what comes
// too late is closed.
func dialTunnel(ctx context.Context, dialer httpstream.Dialer) (httpstream.Connection, error) {
	type result struct {
		tunnel httpstream.Connection
		err    error
	}
	done := make(chan result, 1)
	go func() {
		tunnel, protocol, err := dialer.Dial(portforward.PortForwardProtocolV1Name)
		if err == nil && protocol != portforward.PortForwardProtocolV1Name {
			_ = tunnel.Close()
			err = errors.New("the API server offers no protocol for it that is known here")
		}
		done <- result{tunnel, err}
	}()
	select {
	case r := <-done:
		return r.tunnel, r.err
	case <-ctx.Done():
		go func() {
			if r := <-done; r.err == nil {
				_ = r.tunnel.Close()
			}
		}()
		return nil, context.Cause(ctx)
	}
}

// forwardError says whose forwarding failed, and what to try.
func forwardError(err error, pod string) error {
	wrapped := fmt.Errorf("pod %s cannot be reached through the API server: %w", pod, err)
	if apierrors.IsForbidden(err) {
		return env.Hint(wrapped, "This takes the right to \"create\" and \"get\" pods/portforward in that namespace, which the ClusterRole edit has. Ask for it, or choose another user with --user, --context or --as.")
	}
	return wrapped
}

// streamHeaders of the two streams that make a connection.
func streamHeaders(kind string, port int32) http.Header {
	return http.Header{
		http.CanonicalHeaderKey(corev1.StreamType):                 {kind},
		http.CanonicalHeaderKey(corev1.PortHeader):                 {strconv.Itoa(int(port))},
		http.CanonicalHeaderKey(corev1.PortForwardRequestIDHeader): {"0"},
	}
}
