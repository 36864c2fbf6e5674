// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"path/filepath"
	"time"

	"github.com/espalier-dev/espalier/hack/cluster/internal/build"
	"github.com/espalier-dev/espalier/hack/cluster/internal/proc"
)

const lockDir = "/run/lock"

// lockForUp takes the cluster's lock and notes who holds it, for a down that interrupts.
func (c *Cluster) lockForUp(ctx context.Context) (*build.Lock, error) {
	lock, err := c.lock(ctx, func() { logf("waiting for another up or down") })
	if err != nil {
		return nil, err
	}
	self, err := proc.Self(c.lockName())
	if err == nil {
		err = self.Write(lockDir)
	}
	if err != nil {
		lock.Release()
		return nil, err
	}
	return lock, nil
}

// unlockUp removes the note before it lets go of the lock.
func (c *Cluster) unlockUp(lock *build.Lock) {
	proc.Forget(lockDir, c.lockName())
	lock.Release()
}

// lockForDown takes the lock too, and stops an up that holds it.
func (c *Cluster) lockForDown(ctx context.Context) (*build.Lock, error) {
	return c.lock(ctx, func() {
		if note, err := proc.Read(lockDir, c.lockName()); err == nil && note.Alive() {
			logf("stopping the up that runs as process %d", note.PID)
			proc.Stop(note, 10*time.Second)
		}
	})
}

func (c *Cluster) lock(ctx context.Context, waiting func()) (*build.Lock, error) {
	return build.Acquire(ctx, filepath.Join(lockDir, c.lockName()+".lock"), waiting)
}
