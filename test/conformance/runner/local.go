// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"
)

const headerTimeout = 10 * time.Second

// local serves a server that is elsewhere at a port of this machine until ctx
// ends, and gives the URL there. Each request goes over a connection of its
// own, so that a Service hands it to any replica. All headers, Host and
// Origin too, go through as they are.
func local(ctx context.Context, remote, port string) (string, error) {
	to, err := url.Parse(remote)
	if err != nil {
		return "", err
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = to.Scheme, to.Host
			r.Out.Host = r.In.Host
		},
		Transport:     &http.Transport{DisableKeepAlives: true, DisableCompression: true},
		FlushInterval: -1,
		// A client that goes away is no error here.
		ErrorLog: log.New(io.Discard, "", 0),
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		return "", fmt.Errorf("serve %s locally: %w", remote, err)
	}
	server := &http.Server{Handler: whole(proxy), ReadHeaderTimeout: headerTimeout}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() { _ = server.Serve(listener) }()
	here := *to
	here.Host = listener.Addr().String()
	return here.String(), nil
}

// maxBody is more than the suite sends.
const maxBody = 1 << 20

// whole reads a request's body before h begins. A server may refuse a request
// before it has read it; then the connection from the client would end, and
// the client's next request with it.
func whole(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			http.Error(w, "the body cannot be read", http.StatusBadRequest)
			return
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		if len(body) == 0 {
			r.Body = http.NoBody
		}
		h.ServeHTTP(w, r)
	})
}
