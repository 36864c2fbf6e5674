// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterhost

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
)

var hosts = map[string]string{
	"backend": "own", "Backend": "own", "backend.": "own",
	"backend.shop.svc": "shop", "backend.shop.svc.": "shop", "backend.shop.svc.cluster.local": "shop", "BACKEND.Shop.SVC": "shop",
	"pod-0.backend.shop.svc": "shop", "pod-0.backend.shop.svc.example.internal": "shop",
	"backend.shop": "", "example.com": "", "svc": "own", "shop.svc": "", "svc.example.com": "", "a.svc.example.com": "",
	"localhost": "", "192.0.2.1": "", "2001:db8::1": "", "": "own",
}

func TestNamespace(t *testing.T) {
	for host, want := range hosts {
		if got := Namespace(host, "own"); got != want {
			t.Errorf("%q: got %q, want %q", host, got, want)
		}
	}
}

// TestProxy: what leaves the cluster goes through the proxy, all else does not.
func TestProxy(t *testing.T) {
	used := &url.URL{Scheme: "http", Host: "proxy.example.com:3128"}
	proxy := Proxy(func(*http.Request) (*url.URL, error) { return used, nil })
	for target, want := range map[string]bool{
		"https://api.example.com/x": true, "http://192.0.2.1:8080": true, "https://backend.shop:8443": true,
		"http://backend/x": false, "http://backend.shop.svc:8080/x": false, "https://web-mcp.team-a.svc.cluster.local:8080/mcp": false,
	} {
		got, err := proxy(httptest.NewRequest(http.MethodGet, target, nil))
		if err != nil || (got != nil) != want {
			t.Errorf("%s: got %v, %v", target, got, err)
		}
	}
}
