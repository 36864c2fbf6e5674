// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	_ "embed"
)

//go:embed manifests/dns.yaml
var dnsManifest string

// applyDNS installs CoreDNS. Without a name server that pods can reach it answers for the
// cluster alone, for an empty list would keep it from starting.
func (c *Cluster) applyDNS(ctx context.Context, bins binaries) error {
	return c.apply(ctx, bins, dnsManifest, map[string]any{
		"Domain": domain, "DNSServiceIP": dnsServiceIP, "Image": coreDNSImage, "Forward": len(resolvConf()) > 0,
	})
}
