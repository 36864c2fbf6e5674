// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
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

func openLog(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	return os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
}
