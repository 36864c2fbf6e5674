// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/espalier-dev/espalier/hack/cluster/internal/build"
)

const (
	pauseImage   = "espalier.local/pause:dev"
	coreDNSImage = "espalier.local/coredns:" + coreDNSVersion
	metricsImage = "espalier.local/metrics-server:" + metricsVersion
)

// systemImages returns the tarballs of the images that the cluster itself needs.
func (c *Cluster) systemImages(ctx context.Context, bins binaries) ([]string, error) {
	var tarballs []string
	for _, image := range []struct {
		set          build.Set
		program, tag string
	}{
		{pauseSet, "pause", pauseImage},
		{coreDNSSet, "coredns", coreDNSImage},
	} {
		tarball, err := c.systemImage(ctx, bins, image.set, image.program, image.tag)
		if err != nil {
			return nil, err
		}
		tarballs = append(tarballs, tarball)
	}
	return tarballs, nil
}

// systemImage puts one program into an image, cached under the key of that program and
// that of the tool which makes the image.
func (c *Cluster) systemImage(ctx context.Context, bins binaries, set build.Set, program, tag string) (string, error) {
	key := filepath.Base(bins[set.Name]) + "-" + filepath.Base(bins[imagesSet.Name])
	dir := filepath.Join(c.Cache.Dir, "images", key)
	err := c.Cache.Once(ctx, dir, func(temp string) error {
		cmd := exec.CommandContext(ctx, bins.program(imagesSet, "images"), "build",
			"--binary", bins.program(set, program), "--entrypoint", "/"+program,
			"--tag", tag, "-o", filepath.Join(temp, "image.tar"))
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("image %s: %w\n%s", tag, err, out)
		}
		return nil
	})
	return filepath.Join(dir, "image.tar"), err
}

// Load makes the images of some tarballs available to pods.
func (c *Cluster) Load(ctx context.Context, tarballs ...string) error {
	bins, err := c.ensure(ctx, containerdSet)
	if err != nil {
		return err
	}
	return c.load(ctx, bins, tarballs)
}

func (c *Cluster) load(ctx context.Context, bins binaries, tarballs []string) error {
	for _, tarball := range tarballs {
		if out, err := c.ctr(ctx, bins, "images", "import", tarball).CombinedOutput(); err != nil {
			return fmt.Errorf("import of %s: %w\n%s", tarball, err, out)
		}
	}
	return nil
}

func (c *Cluster) containerdReady(bins binaries) func(context.Context) error {
	return func(ctx context.Context) error {
		if _, err := os.Stat(c.socket()); err != nil {
			return err
		}
		return c.ctr(ctx, bins, "version").Run()
	}
}

func (c *Cluster) ctr(ctx context.Context, bins binaries, args ...string) *exec.Cmd {
	args = append([]string{"--address", c.socket(), "--namespace", "k8s.io"}, args...)
	return exec.CommandContext(ctx, bins.program(containerdSet, "ctr"), args...)
}
