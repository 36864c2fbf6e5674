// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/clusterhost"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// destinations within the cluster, and literal addresses, that a catalog names.
// All are sorted.
type destinations struct {
	// servers are MCPServers of the same namespace, by name.
	servers []string
	// namespaces of Services.
	namespaces []string
	addresses  []netip.AddrPort
}

// destinationsOf finds what config makes the server connect to. Hosts outside
// of the cluster are none: a NetworkPolicy knows no names.
func destinationsOf(server *mcpv1.MCPServer, config *serverconfig.Config) destinations {
	var d destinations
	if config == nil {
		return d
	}
	d.upstreams(server, config)
	for i := range config.Tools {
		if h := config.Tools[i].HTTP; h != nil {
			d.connection(server.Namespace, &h.Connection)
		}
	}
	for _, list := range [][]serverconfig.Resource{config.Resources, config.Templates} {
		for i := range list {
			if h := list[i].HTTP; h != nil {
				d.connection(server.Namespace, &h.Connection)
			}
		}
	}
	if a := config.Auth; a != nil && a.JWT != nil && len(a.JWT.JWKS) == 0 {
		// The issuer's metadata may lead to another host; that needs cidrs, or
		// jwksURI.
		d.url(server.Namespace, a.JWT.JWKSURI)
		if a.JWT.JWKSURI == "" {
			d.url(server.Namespace, a.JWT.Issuer)
		}
	}
	d.sort()
	return d
}

// upstreams adds where those of config lead.
func (d *destinations) upstreams(server *mcpv1.MCPServer, config *serverconfig.Config) {
	refs := map[string]string{}
	for _, u := range server.Spec.Upstreams {
		if u.ServerRef != nil {
			refs[u.Name] = u.ServerRef.Name
		}
	}
	for i := range config.Upstreams {
		u := &config.Upstreams[i]
		target := &mcpv1.MCPServer{}
		target.Name, target.Namespace = refs[u.Name], server.Namespace
		if parsed, err := url.Parse(u.URL); err == nil && target.Name != "" && parsed.Hostname() == Host(target) {
			d.servers = append(d.servers, target.Name)
			continue
		}
		// An External server, or no server at all.
		d.connection(server.Namespace, &u.Connection)
		if u.OpenAPI != nil {
			d.url(server.Namespace, u.OpenAPI.DocumentURL)
		}
	}
}

func (d *destinations) connection(namespace string, c *serverconfig.Connection) {
	d.url(namespace, c.URL)
	if c.Auth == nil {
		return
	}
	if client := c.Auth.ClientCredentials; client != nil {
		d.url(namespace, client.TokenURL)
	}
	if exchange := c.Auth.Exchange; exchange != nil {
		d.url(namespace, exchange.TokenURL)
	}
}

// url adds where text leads. namespace is that of the server.
func (d *destinations) url(namespace, text string) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return
	}
	host := u.Hostname()
	if address, err := netip.ParseAddr(strings.TrimSuffix(host, ".")); err == nil {
		d.addresses = append(d.addresses, netip.AddrPortFrom(address.Unmap(), portOf(u)))
		return
	}
	// What can be no namespace would make the whole policy invalid.
	if ns := clusterhost.Namespace(host, namespace); len(validation.IsDNS1123Label(ns)) == 0 {
		d.namespaces = append(d.namespaces, ns)
	}
}

func portOf(u *url.URL) uint16 {
	if port, err := strconv.ParseUint(u.Port(), 10, 16); err == nil && port > 0 {
		return uint16(port)
	}
	if u.Scheme == "https" || u.Scheme == "wss" {
		return 443
	}
	return 80
}

func (d *destinations) sort() {
	slices.Sort(d.servers)
	slices.Sort(d.namespaces)
	slices.SortFunc(d.addresses, netip.AddrPort.Compare)
	d.servers, d.namespaces, d.addresses = slices.Compact(d.servers), slices.Compact(d.namespaces), slices.Compact(d.addresses)
}
