// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"errors"
	"net"
	"net/url"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// ErrNoServer says that the document does not say where its API is.
var ErrNoServer = errors.New("the document names no server with a whole URL, and none is given")

// Base gives the URL of the document's first server. A relative one, and that
// of a document without servers, is relative to where the document is from.
func (d *Document) Base(documentURL string) (string, error) {
	return resolveServer(d.doc.Servers, documentURL)
}

func resolveServer(servers openapi3.Servers, documentURL string) (string, error) {
	raw := "/"
	if len(servers) > 0 && servers[0] != nil {
		raw = servers[0].URL
		for name, variable := range servers[0].Variables {
			if variable != nil {
				raw = strings.ReplaceAll(raw, "{"+name+"}", variable.Default)
			}
		}
	}
	u, err := url.Parse(raw)
	if err != nil || strings.ContainsAny(raw, "{}") {
		return "", ErrNoServer
	}
	if !u.IsAbs() {
		at, err := url.Parse(documentURL)
		if err != nil || documentURL == "" {
			return "", ErrNoServer
		}
		u = at.ResolveReference(u)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return "", ErrNoServer
	}
	u.RawQuery, u.Fragment, u.ForceQuery = "", "", false
	return strings.TrimSuffix(u.String(), "/"), nil
}

// base of one operation: the nearest of the servers that it, its path and the
// document name.
func (b *builder) base() (string, Reason) {
	servers := b.item.Servers
	if b.op.Servers != nil && len(*b.op.Servers) > 0 {
		servers = *b.op.Servers
	}
	if b.options.BaseDeclared || len(servers) == 0 {
		return b.options.Base, ""
	}
	own, err := resolveServer(servers, b.options.DocumentURL)
	if err != nil || !SameOrigin(own, b.options.Base) {
		return "", ReasonOtherServer
	}
	return own, ""
}

// SameOrigin reports whether two URLs have scheme, host and port in common.
func SameOrigin(a, b string) bool {
	x, err1 := url.Parse(a)
	y, err2 := url.Parse(b)
	return err1 == nil && err2 == nil && x.Scheme == y.Scheme && strings.EqualFold(hostPort(x), hostPort(y))
}

func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}
