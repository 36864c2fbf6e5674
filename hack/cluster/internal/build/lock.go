// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Lock is an advisory lock on a file, let go by the kernel when its holder dies.
type Lock struct{ file *os.File }

// Acquire waits for the lock on path; waiting is called once if somebody else holds it.
func Acquire(ctx context.Context, path string, waiting func()) (*Lock, error) {
	lock, err := open(path)
	if err != nil {
		return nil, err
	}
	for first := true; ; first = false {
		if lock.try() {
			return lock, nil
		}
		if first && waiting != nil {
			waiting()
		}
		select {
		case <-ctx.Done():
			lock.file.Close()
			return nil, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// open opens the lock's file. Go opens files close-on-exec, so that no process started
// under the lock inherits it and holds it for ever.
func open(path string) (*Lock, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	return &Lock{file: file}, nil
}

func (l *Lock) try() bool {
	return syscall.Flock(int(l.file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}

// Release lets go of the lock. The file stays: removing it would let two callers hold
// locks on two files of the same name.
func (l *Lock) Release() { l.file.Close() }
