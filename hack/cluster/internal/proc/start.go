// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// Start runs the command in a session of its own, its output going to its log, and notes
// it in dir.
func Start(dir string, command Command) (Note, error) {
	log, err := openLog(command.Log)
	if err != nil {
		return Note{}, err
	}
	defer log.Close()
	cmd := exec.Command(command.Path, command.Args...)
	cmd.Env = append(os.Environ(), command.Env...)
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	keepInherited()
	if err := cmd.Start(); err != nil {
		return Note{}, fmt.Errorf("start %s: %w", command.Name, err)
	}
	// Collect it should it die while we run, or it would look alive as a zombie.
	go func() { _ = cmd.Wait() }()
	note, err := noteOf(command, cmd.Process.Pid)
	if err != nil {
		return note, fmt.Errorf("%s ended at once, see %s", command.Name, command.Log)
	}
	return note, note.Write(dir)
}

// keepInherited keeps to ourselves the open files that a caller left to us: a
// daemon would hold its caller's locks and pipes for as long as it runs.
func keepInherited() {
	const firstInherited = 3
	_ = unix.CloseRange(firstInherited, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC)
}

func openLog(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	return os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
}
