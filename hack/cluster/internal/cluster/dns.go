// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"os/exec"
)

//go:embed manifests/dns.yaml
var dnsManifest string

// applyDNS installs CoreDNS. Without a name server that pods can reach it answers for the
// cluster alone, for an empty list would keep it from starting.
func (c *Cluster) applyDNS(ctx context.Context, bins binaries) error {
	manifest, err := render(dnsManifest, map[string]any{
		"Domain": domain, "DNSServiceIP": dnsServiceIP, "Image": coreDNSImage, "Forward": len(resolvConf()) > 0,
	})
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, bins.program(assetsSet, "kubectl"), "--kubeconfig", c.Kubeconfig(),
		"apply", "--server-side", "--validate=false", "-f", "-")
	cmd.Stdin = bytes.NewReader(manifest)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("kubectl apply: %w\n%s", err, out)
	}
	return nil
}
