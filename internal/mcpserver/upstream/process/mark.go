// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"crypto/rand"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// A descendant that begins a session of its own leaves the child's group and
// would outlive it. What it keeps is the environment, so that each child gets
// a mark there.
const (
	markName = "ESPALIER_CHILD="
	// rounds of looking for marked processes: one may be starting another
	// while it is looked for.
	rounds     = 20
	roundPause = 5 * time.Millisecond
)

func newMark() string { return markName + rand.Text() }

// killMarked ends all processes that carry mark, and returns when none is
// left or all rounds are over.
func killMarked(mark string) {
	for range rounds {
		found := marked(mark)
		for _, pid := range found {
			kill(pid, syscall.SIGKILL)
		}
		if len(found) == 0 {
			return
		}
		time.Sleep(roundPause)
	}
}

// marked gives the processes whose environment holds mark. That of a process
// that has ended is empty. Where the system does not tell there are none.
func marked(mark string) []int {
	var out []int
	variable := append([]byte(mark), 0)
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(raw, variable) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil && pid != os.Getpid() {
			out = append(out, pid)
		}
	}
	return out
}
