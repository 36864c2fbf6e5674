// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package process runs a child that speaks over stdin and stdout: without a
// shell, with the environment that is named and no other, in a process group
// of its own that ends as a whole. What it writes to stderr is untrusted: it is
// bounded, kept for diagnosis, and stands in no error.
package process

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Limits of settings. What is out of range is refused before anything starts.
const (
	MaxMessageLimit = 1 << 30
	MaxStderrLimit  = 16 << 20

	// stdinWait is how long a child may take to end once its stdin is closed,
	// termWait once it was told to.
	stdinWait = 2 * time.Second
	termWait  = 3 * time.Second
	// drainWait is how long output is read on after the end.
	drainWait = time.Second
	// writeLimit is how long a child may leave its stdin full.
	writeLimit = 10 * time.Second
)

// Options of a child.
type Options struct {
	// Command and its arguments; the first is looked up in the PATH of Env.
	Command []string
	// Env is the whole environment, NAME=VALUE.
	Env []string
	// Dir to start in; empty for that of this process.
	Dir string
	// MaxStderr bytes are kept, the most recent.
	MaxStderr int
	Log       *slog.Logger
}

// State of a child.
type State struct {
	Running bool
	// ExitCode, when it ended by itself; Signal, when one ended it.
	ExitCode int
	Signal   string
}

// Process is a child that was started.
type Process struct {
	command *exec.Cmd
	// mark is a variable that all its descendants inherit.
	mark   string
	stdin  *os.File
	stdout *os.File
	stderr *ring
	done   chan struct{}
	work   sync.WaitGroup

	writing sync.Mutex
	mu      sync.Mutex
	state   State
}

// Validate checks what can be checked without starting anything.
func (o *Options) Validate() error {
	switch {
	case len(o.Command) == 0 || o.Command[0] == "":
		return errors.New("a command is needed")
	case o.MaxStderr < 0 || o.MaxStderr > MaxStderrLimit:
		return fmt.Errorf("the bytes of stderr to keep are between 0 and %d", MaxStderrLimit)
	}
	return nil
}

// Start starts a child.
func Start(o Options) (*Process, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	path, err := lookPath(o.Command[0], o.Env)
	if err != nil {
		return nil, err
	}
	pipes, theirs, err := newPipes()
	if err != nil {
		return nil, err
	}
	mark := newMark()
	p := &Process{mark: mark, stdin: pipes[0], stdout: pipes[1], stderr: newRing(o.MaxStderr, o.Log), done: make(chan struct{}), state: State{Running: true}}
	p.command = &exec.Cmd{
		Path: path, Args: o.Command, Env: append(slices.Clip(o.Env), mark), Dir: o.Dir, Stdin: theirs[0], Stdout: theirs[1], Stderr: theirs[2],
		SysProcAttr: attributes(),
	}
	children.begin()
	err = p.command.Start()
	children.started(p.command, err)
	for _, file := range theirs {
		_ = file.Close()
	}
	if err != nil {
		for _, file := range pipes {
			_ = file.Close()
		}
		return nil, err
	}
	p.work.Go(func() {
		defer pipes[2].Close()
		p.stderr.readAll(pipes[2])
	})
	p.work.Go(func() { p.wait(pipes[2]) })
	return p, nil
}

// newPipes gives our ends and theirs of stdin, stdout and stderr.
func newPipes() (ours, theirs []*os.File, err error) {
	for i := range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			for _, file := range append(ours, theirs...) {
				_ = file.Close()
			}
			return nil, nil, err
		}
		if i == 0 {
			r, w = w, r
		}
		ours, theirs = append(ours, r), append(theirs, w)
	}
	return ours, theirs, nil
}

// wait reaps the child and ends what it left behind.
func (p *Process) wait(stderr *os.File) {
	err := p.command.Wait()
	children.ended(p.command.Process.Pid)
	state := State{ExitCode: p.command.ProcessState.ExitCode()}
	if status, ok := p.command.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		state.ExitCode, state.Signal = 0, signalName(status.Signal())
	}
	_ = err // The state says it all.
	p.signal(syscall.SIGKILL)
	killMarked(p.mark)
	p.mu.Lock()
	p.state = state
	p.mu.Unlock()
	close(p.done)
	// A descendant that left the group may hold the pipes open.
	_ = p.stdout.SetReadDeadline(time.Now().Add(drainWait))
	_ = stderr.SetReadDeadline(time.Now().Add(drainWait))
	_ = p.stdin.Close()
}

// Done is closed when the child has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// State of the child now.
func (p *Process) State() State {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state
}

// Stderr are the most recent bytes that the child wrote there, and whether
// earlier ones were dropped.
func (p *Process) Stderr() (text []byte, truncated bool) { return p.stderr.bytes() }

// Stdout is what the child says. It must be read, by one reader.
func (p *Process) Stdout() *os.File { return p.stdout }

// Write sends one message. A child that does not read it in time cannot be
// spoken to any more, and is killed.
func (p *Process) Write(message []byte) error {
	p.writing.Lock()
	defer p.writing.Unlock()
	_ = p.stdin.SetWriteDeadline(time.Now().Add(writeLimit))
	if _, err := p.stdin.Write(message); err != nil {
		p.Kill()
		return err
	}
	return nil
}

// signal the whole group; that it is gone is no error.
func (p *Process) signal(s syscall.Signal) { kill(-p.command.Process.Pid, s) }

// Kill ends the group at once.
func (p *Process) Kill() {
	select {
	case <-p.done: // Its number may be another's by now.
	default:
		p.signal(syscall.SIGKILL)
	}
}

// Abort kills the child and its group at once and awaits its end. The reader of
// Stdout must go on until its end.
func (p *Process) Abort() {
	p.Kill() // First: a child that sees its stdin closed may end by itself.
	_ = p.stdin.Close()
	<-p.done
	p.work.Wait()
}

// Close ends the child gracefully: stdin is closed, then it is told to end,
// then it is killed, and its group with it. When ctx ends it is killed at once.
// The reader of Stdout must go on until its end.
func (p *Process) Close(ctx context.Context) {
	_ = p.stdin.Close()
	if !p.ends(ctx, stdinWait) {
		p.signal(syscall.SIGTERM)
		p.ends(ctx, termWait)
	}
	p.Kill()
	<-p.done
	p.work.Wait()
}

func (p *Process) ends(ctx context.Context, within time.Duration) bool {
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-p.done:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}
