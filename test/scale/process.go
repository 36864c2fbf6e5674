// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is one that this one started. It is killed when this one ends in
// whatever way.
type process struct {
	name   string
	log    *os.File
	cancel context.CancelFunc
	cmd    *exec.Cmd
	ended  chan struct{}
	memory *memory
}

// start starts a program that logs to a file. The environment has no proxy:
// everything that is dialled is on this machine.
func start(ctx context.Context, log, program string, args ...string) (*process, error) {
	file, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdout, cmd.Stderr = file, file
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 20 * time.Second
	if err := cmd.Start(); err != nil {
		cancel()
		return nil, errors.Join(err, file.Close())
	}
	p := &process{name: program, log: file, cancel: cancel, cmd: cmd, ended: make(chan struct{})}
	p.memory = watchMemory(cmd.Process.Pid, p.ended)
	go func() {
		defer close(p.ended)
		// That it was told to end is no error; when it ended by itself, the
		// figures tell.
		_ = cmd.Wait()
	}()
	return p, nil
}

// stop ends it and waits for that.
func (p *process) stop() error {
	p.cancel()
	<-p.ended
	return p.log.Close()
}

// alive is an error once it has ended.
func (p *process) alive() error {
	select {
	case <-p.ended:
		return fmt.Errorf("%s has ended: %s", p.name, tail(p.log.Name()))
	default:
		return nil
	}
}

// tail is the end of a log.
func tail(path string) string {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(raw[max(0, len(raw)-2000):])
}

// clockTick is the unit of /proc/PID/stat, the same on every Linux.
const clockTick = time.Second / 100

// cpu is the time that it has run for.
func (p *process) cpu() (time.Duration, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	// "PID (NAME) STATE ...", where NAME may hold anything; utime and stime
	// are the 14th and 15th field.
	fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))
	if len(fields) < 13 {
		return 0, errors.New("/proc/PID/stat is short")
	}
	user, err := strconv.Atoi(fields[11])
	system, err2 := strconv.Atoi(fields[12])
	return time.Duration(user+system) * clockTick, errors.Join(err, err2)
}
