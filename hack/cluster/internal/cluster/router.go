// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"

	"github.com/espalier-dev/espalier/hack/cluster/internal/proc"
)

// ensureRouter starts kube-router in a cluster that is up, if it is asked for. It takes
// minutes to build and most tests need no network policy enforced.
func (c *Cluster) ensureRouter(ctx context.Context) error {
	if note, err := proc.Read(c.notes(), kubeRouter); !c.NetworkPolicies || (err == nil && note.Alive()) {
		return nil
	}
	bins, err := c.ensure(ctx, routerSet)
	if err != nil {
		return err
	}
	logf("network policies are enforced by kube-router")
	return c.launch(c.kubeRouter(bins))
}

func (c *Cluster) kubeRouter(bins binaries) proc.Command {
	return c.command(kubeRouter, bins.program(routerSet, "kube-router"),
		"--kubeconfig="+c.path("kube-router.kubeconfig"),
		"--hostname-override="+nodeName,
		"--run-firewall=true",
		"--run-router=false",
		"--run-service-proxy=false",
		"--run-loadbalancer=false",
		"--service-cluster-ip-range="+serviceCIDR,
	)
}
