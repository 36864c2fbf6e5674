// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// watcher ends etcd and kube-apiserver when the test process is gone without
// having stopped them: after a panic, a timeout or a kill. It is a shell that
// reads from a pipe, which closes when this process ends in whatever way.
type watcher struct {
	command *exec.Cmd
	pipe    io.WriteCloser
}

// watchScript waits for the word that all was stopped. Its arguments are
// process ids, then "--", then folders to remove.
const watchScript = `
read -r word
[ "$word" = stopped ] && exit 0
while [ "$1" != -- ]; do kill -9 "$1"; shift; done
shift
sleep 1
rm -rf -- "$@"`

// watch looks after the children that this process has now, and their folders.
func watch(folders ...string) (*watcher, error) {
	children, err := childrenOf(os.Getpid())
	if err != nil {
		return nil, err
	}
	arguments := append([]string{"-c", watchScript, "watch"}, children...)
	arguments = append(append(arguments, "--"), folders...)
	command := exec.Command("sh", arguments...)
	// Ctrl-C goes to the test's process group; the watcher outlives it.
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	pipe, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	return &watcher{command: command, pipe: pipe}, command.Start()
}

// stopped tells the watcher that there is nothing to end any more.
func (w *watcher) stopped() error {
	_, err := io.WriteString(w.pipe, "stopped\n")
	return errors.Join(err, w.pipe.Close(), w.command.Wait())
}

// childrenOf lists the ids of a process's children.
func childrenOf(parent int) ([]string, error) {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	var children []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // It has ended.
		}
		// "PID (NAME) STATE PPID ...", where NAME may hold anything.
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		if len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
			children = append(children, filepath.Base(filepath.Dir(file)))
		}
	}
	if len(children) == 0 {
		return nil, fmt.Errorf("found no child of process %d in /proc", parent)
	}
	return children, nil
}
