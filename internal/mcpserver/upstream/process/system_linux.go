// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// attributes of a child: it leads a group of its own.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// kill signals a process, or a group by its negative number; that it is gone
// is no error.
func kill(pid int, s syscall.Signal) { _ = syscall.Kill(pid, s) }

// reapEvery is how often orphans are looked for.
const reapEvery = time.Second

// Reap takes in the orphans that children leave behind, until ctx ends: this
// program becomes their parent, as the first of a container is anyway.
func Reap(ctx context.Context) {
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	ticker := time.NewTicker(reapEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			for children.reapOne() {
			}
		}
	}
}

// reapOne reaps an orphan that has ended. It only looks at first: a child of
// somebody here is left to him.
func (r *registry) reapOne() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	var info unix.Siginfo
	if err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil); err != nil {
		return false
	}
	pid := pidOf(&info)
	if pid <= 0 || r.own[pid] {
		return false
	}
	reaped, err := unix.Wait4(pid, nil, unix.WNOHANG, nil)
	return err == nil && reaped == pid
}
