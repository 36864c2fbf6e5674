// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clusterhost tells host names of the cluster from those outside, by
// their looks: what a NetworkPolicy opens and what needs no proxy.
package clusterhost

import (
	"net/http"
	"net/url"
	"strings"
)

// Namespace gives the namespace of the Service that host names as seen from
// the namespace own, and empty for any other host. NAME.NAMESPACE alone is not
// taken for one: it looks like a domain.
func Namespace(host, own string) string {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	labels := strings.Split(host, ".")
	// A pod of a headless Service has a label of its own before the Service's.
	for i := 2; i < len(labels); i++ {
		if labels[i] == "svc" {
			return labels[i-1]
		}
	}
	if len(labels) == 1 && host != "localhost" && !strings.Contains(host, ":") {
		return own
	}
	return ""
}

// Proxy gives the proxy of a request as next does (http.ProxyFromEnvironment),
// and none for hosts of the cluster: NO_PROXY need not name them.
func Proxy(next func(*http.Request) (*url.URL, error)) func(*http.Request) (*url.URL, error) {
	return func(r *http.Request) (*url.URL, error) {
		if Namespace(r.URL.Hostname(), "own") != "" {
			return nil, nil //nolint:nilnil // That is how a request without a proxy is told.
		}
		return next(r)
	}
}
