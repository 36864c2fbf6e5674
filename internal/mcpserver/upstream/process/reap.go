// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"os/exec"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// children are those that this program started: they are awaited by those who
// did. All others that end as ours are orphans.
var children = registry{own: map[int]bool{}}

type registry struct {
	mu  sync.Mutex
	own map[int]bool
}

// begin holds reaping up until started says which number the child has.
func (r *registry) begin() { r.mu.Lock() }

func (r *registry) started(command *exec.Cmd, err error) {
	if err == nil {
		r.own[command.Process.Pid] = true
	}
	r.mu.Unlock()
}

func (r *registry) ended(pid int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.own, pid)
}

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
