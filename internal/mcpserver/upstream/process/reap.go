// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"os/exec"
	"sync"
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
