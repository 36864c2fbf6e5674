// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is one that was started here.
type process struct {
	command *exec.Cmd
	output  bytes.Buffer
}

// startTimeout is how long a process may take to listen.
const startTimeout = 30 * time.Second

// start runs a program that is to listen on port.
func start(port int, env []string, program string, args ...string) (*process, error) {
	p := &process{command: exec.Command(program, args...)}
	p.command.Env = append(os.Environ(), env...)
	p.command.Stdout, p.command.Stderr = &p.output, &p.output
	p.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	for began := time.Now(); time.Since(began) < startTimeout; time.Sleep(10 * time.Millisecond) {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			return p, conn.Close()
		}
	}
	p.stop()
	return nil, fmt.Errorf("%s does not listen on %s: %s", program, address, p.output.String())
}

// stop kills the process and its group.
func (p *process) stop() {
	_ = syscall.Kill(-p.command.Process.Pid, syscall.SIGKILL)
	_ = p.command.Wait()
}

// freePort is one that nobody listens on at present.
func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	address, _ := listener.Addr().(*net.TCPAddr)
	return address.Port, nil
}

// tick is the unit of times in /proc, the same on all Linux machines of today.
const tick = 10 * time.Millisecond

// cpu is the processor time that the process used, its children's not.
func (p *process) cpu() (time.Duration, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.command.Process.Pid))
	if err != nil {
		return 0, err
	}
	// The name in parentheses may hold anything.
	fields := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
	if len(fields) < 13 {
		return 0, errors.New("cannot read /proc/PID/stat")
	}
	user, err := strconv.ParseInt(fields[11], 10, 64)
	if err != nil {
		return 0, err
	}
	system, err := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * tick, err
}

// memory gives a line of /proc/PID/status in MiB: VmRSS, VmHWM.
func (p *process) memory(line string) (int, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.command.Process.Pid))
	if err != nil {
		return 0, err
	}
	for text := range strings.Lines(string(raw)) {
		if rest, ok := strings.CutPrefix(text, line+":"); ok {
			kib, err := strconv.Atoi(strings.Fields(rest)[0])
			return kib >> 10, err
		}
	}
	return 0, fmt.Errorf("no %s of process %d", line, p.command.Process.Pid)
}
