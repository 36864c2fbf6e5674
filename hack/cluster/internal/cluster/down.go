// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/espalier-dev/espalier/hack/cluster/internal/host"
	"github.com/espalier-dev/espalier/hack/cluster/internal/proc"
)

// Down stops the cluster, also one that is half up, and leaves nothing of it.
func (c *Cluster) Down(ctx context.Context) error {
	if os.Geteuid() != 0 {
		return errors.New("stopping the cluster needs root")
	}
	lock, err := c.lockForDown(ctx)
	if err != nil {
		return err
	}
	defer lock.Release()
	c.clean()
	if left := c.left(); len(left) > 0 {
		return fmt.Errorf("still there:\n  %s", strings.Join(left, "\n  "))
	}
	return nil
}

// clean removes every trace of the cluster. Nothing in it is worth a graceful end, and
// the order matters: first those who would bring things back, then the things.
func (c *Cluster) clean() {
	proc.StopAll(c.processes(), 0)
	// Firewall chains and control groups carry no owner's name. Where another kubelet
	// runs they may be that one's.
	if len(proc.Named("kubelet")) == 0 {
		host.RemovePodGroups()
		host.FlushChains()
	}
	host.Unmount(c.Dir)
	c.network().TearDown()
	host.RemoveStrays(c.Dir, cniNetwork)
	_ = os.RemoveAll(c.Dir)
}

// programs are those that up starts or that containerd starts for it.
var programs = []string{
	"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy",
	"kube-router", "containerd", "containerd-shim-runc-v2", "ctr",
}

// processes are those noted, those that a crashed run had no time to note, and the shims,
// which containerd starts. All have the state folder in their arguments.
func (c *Cluster) processes() []proc.Note {
	return append(proc.Notes(c.notes()), proc.Find(programs, c.Dir)...)
}

// left lists what clean could not remove.
func (c *Cluster) left() []string {
	var left []string
	for _, note := range c.processes() {
		if note.Alive() {
			left = append(left, fmt.Sprintf("process %d (%s)", note.PID, note.Name))
		}
	}
	for _, point := range host.MountsUnder(c.Dir) {
		left = append(left, "mount "+point)
	}
	left = append(left, c.network().Left()...)
	if len(proc.Named("kubelet")) == 0 {
		left = append(left, host.ChainsLeft()...)
	}
	if _, err := os.Stat(c.Dir); err == nil {
		left = append(left, "folder "+c.Dir)
	}
	return left
}
