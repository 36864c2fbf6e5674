// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/espalier-dev/espalier/hack/cluster/internal/host"
	"github.com/espalier-dev/espalier/hack/cluster/internal/proc"
)

// Up starts the cluster, unless it runs already. What a crashed run left is removed first.
func (c *Cluster) Up(ctx context.Context) error {
	if os.Geteuid() != 0 {
		return errors.New("the cluster needs root: it mounts, makes network namespaces and sets firewall rules")
	}
	lock, err := c.lockForUp(ctx)
	if err != nil {
		return err
	}
	defer c.unlockUp(lock)
	if c.running(ctx) == nil {
		logf("already up; kubeconfig %s", c.Kubeconfig())
		return c.ensureExtras(ctx)
	}
	start := time.Now()
	if err := c.start(ctx); err != nil {
		return err
	}
	logf("up in %s; kubeconfig %s", time.Since(start).Round(100*time.Millisecond), c.Kubeconfig())
	return c.ensureExtras(ctx)
}

// ensureExtras adds what was asked for and may be missing from a cluster that is up.
func (c *Cluster) ensureExtras(ctx context.Context) error {
	if err := c.ensureRouter(ctx); err != nil {
		return fmt.Errorf("kube-router: %w", err)
	}
	if err := c.ensureMetrics(ctx); err != nil {
		return fmt.Errorf("metrics-server: %w", err)
	}
	return nil
}

// run carries what the steps of one start hand on.
type run struct {
	*Cluster
	bins   binaries
	images []string
	api    *api
}

func (c *Cluster) start(ctx context.Context) error {
	r := &run{Cluster: c}
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"packages", func(ctx context.Context) error { return host.EnsurePackages(ctx, logf) }},
		{"programs", r.programs},
		{"images", r.makeImages},
		{"leftovers", r.leftovers},
		{"configuration", r.configure},
		{"control plane", r.controlPlane},
		{"node", r.node},
		{"DNS", r.dns},
	} {
		start := time.Now()
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		logf("%-14s %s", step.name, time.Since(start).Round(10*time.Millisecond))
	}
	return nil
}

func (r *run) programs(ctx context.Context) (err error) {
	r.bins, err = r.ensure(ctx, sets...)
	return err
}

func (r *run) makeImages(ctx context.Context) (err error) {
	r.images, err = r.systemImages(ctx, r.bins)
	return err
}

func (r *run) leftovers(context.Context) error {
	r.clean()
	if foreign := proc.Named("kubelet"); len(foreign) > 0 {
		return fmt.Errorf("another kubelet runs here (process %d); two cannot share a machine", foreign[0].PID)
	}
	return nil
}

func (r *run) configure(context.Context) (err error) {
	if err := r.network().SetUp(); err != nil {
		return err
	}
	if err := r.writeCredentials(); err != nil {
		return err
	}
	if err := r.writeNodeConfig(r.bins); err != nil {
		return err
	}
	r.api, err = r.Cluster.api()
	return err
}

// controlPlane starts what all else waits for, and loads images in the meantime.
func (r *run) controlPlane(ctx context.Context) error {
	if err := r.launch(r.etcd(r.bins), r.containerd(r.bins), r.apiServer(r.bins)); err != nil {
		return err
	}
	if err := r.waitFor(ctx, r.containerdReady(r.bins), containerd); err != nil {
		return err
	}
	if err := r.load(ctx, r.bins, r.images); err != nil {
		return err
	}
	return r.waitFor(ctx, r.api.serverReady, etcd, apiServer)
}

func (r *run) node(ctx context.Context) error {
	err := r.launch(r.controllerManager(r.bins), r.scheduler(r.bins), r.kubelet(r.bins), r.kubeProxy(r.bins))
	if err != nil {
		return err
	}
	if err := r.applyDNS(ctx, r.bins); err != nil {
		return err
	}
	return r.waitFor(ctx, r.api.nodeReady, controllerManager, scheduler, kubelet, kubeProxy)
}

func (r *run) dns(ctx context.Context) error {
	return r.waitFor(ctx, r.api.dnsReady, controllerManager, scheduler, kubelet, kubeProxy)
}

func (c *Cluster) launch(commands ...proc.Command) error {
	for _, command := range commands {
		if _, err := proc.Start(c.notes(), command); err != nil {
			return err
		}
	}
	return nil
}

// running returns nil if every component lives and the cluster answers as it should.
func (c *Cluster) running(ctx context.Context) error {
	if dead := c.firstDead(components); dead != "" {
		return fmt.Errorf("%s does not run", dead)
	}
	api, err := c.api()
	if err != nil {
		return err
	}
	return errors.Join(api.serverReady(ctx), api.nodeReady(ctx), api.dnsReady(ctx))
}

// components are those without which the cluster is not up.
var components = []string{etcd, apiServer, containerd, controllerManager, scheduler, kubelet, kubeProxy}
