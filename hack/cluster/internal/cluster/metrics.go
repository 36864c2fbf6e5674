// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	_ "embed"
)

//go:embed manifests/metrics.yaml
var metricsManifest string

// ensureMetrics installs metrics-server in a cluster that is up, if it is asked for:
// without it a HorizontalPodAutoscaler sees no CPU and kubectl top nothing at all.
func (c *Cluster) ensureMetrics(ctx context.Context) error {
	api, err := c.api()
	if err != nil || !c.Metrics || api.metricsReady(ctx) == nil {
		return err
	}
	bins, err := c.ensure(ctx, assetsSet, containerdSet, imagesSet, metricsSet)
	if err != nil {
		return err
	}
	tarball, err := c.systemImage(ctx, bins, metricsSet, "metrics-server", metricsImage)
	if err != nil {
		return err
	}
	if err := c.load(ctx, bins, []string{tarball}); err != nil {
		return err
	}
	if err := c.apply(ctx, bins, metricsManifest, map[string]any{"Image": metricsImage}); err != nil {
		return err
	}
	logf("waiting for metrics-server")
	return c.waitFor(ctx, api.metricsReady, components...)
}
