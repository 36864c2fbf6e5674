// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"path/filepath"

	"github.com/espalier-dev/espalier/hack/cluster/internal/build"
)

// binaries are the folders that the sets were built into.
type binaries map[string]string

// Build makes every program that up needs.
func (c *Cluster) Build(ctx context.Context) error {
	_, err := c.ensure(ctx, sets...)
	return err
}

// Assets returns the folder with etcd, kube-apiserver and kubectl.
func (c *Cluster) Assets(ctx context.Context) (string, error) {
	return c.Cache.Ensure(ctx, assetsSet)
}

// ensure builds the sets that are not built yet.
func (c *Cluster) ensure(ctx context.Context, sets ...build.Set) (binaries, error) {
	bins := binaries{}
	for _, set := range sets {
		dir, err := c.Cache.Ensure(ctx, set)
		if err != nil {
			return nil, err
		}
		bins[set.Name] = dir
	}
	return bins, nil
}

func (b binaries) program(set build.Set, name string) string {
	return filepath.Join(b[set.Name], name)
}
