// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"sync"
	"syscall"
	"time"
)

// Stop asks the noted process to end and kills it after the grace period.
func Stop(note Note, grace time.Duration) {
	if !note.Alive() {
		return
	}
	if grace > 0 {
		_ = syscall.Kill(note.PID, syscall.SIGTERM)
		if wait(note, grace) {
			return
		}
	}
	_ = syscall.Kill(note.PID, syscall.SIGKILL)
	wait(note, 5*time.Second)
}

// StopAll stops several processes at the same time.
func StopAll(notes []Note, grace time.Duration) {
	var group sync.WaitGroup
	for _, note := range notes {
		group.Go(func() { Stop(note, grace) })
	}
	group.Wait()
}

// wait reports whether the process ended in time.
func wait(note Note, limit time.Duration) bool {
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); {
		if !note.Alive() {
			return true
		}
		time.Sleep(10 * time.Millisecond)
	}
	return !note.Alive()
}
