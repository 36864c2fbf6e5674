// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
)

// apply renders a manifest and applies it as the administrator.
func (c *Cluster) apply(ctx context.Context, bins binaries, manifest string, values any) error {
	rendered, err := render(manifest, values)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, bins.program(assetsSet, "kubectl"), "--kubeconfig", c.Kubeconfig(),
		"apply", "--server-side", "--validate=false", "-f", "-")
	cmd.Stdin = bytes.NewReader(rendered)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("kubectl apply: %w\n%s", err, out)
	}
	return nil
}
