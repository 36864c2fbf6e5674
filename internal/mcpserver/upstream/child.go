// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"errors"
	"time"

	"github.com/espalier-dev/espalier/internal/mcpserver/upstream/client"
	"github.com/espalier-dev/espalier/internal/mcpserver/upstream/process"
	"github.com/espalier-dev/espalier/internal/podreport"
)

// patience is how long connecting may take: a child's first start may have to
// download and build.
func (s *source) patience() time.Duration {
	child := s.config.Stdio
	if child == nil {
		return s.m.timing.Handshake
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answered {
		return time.Duration(child.HandshakeTimeoutSeconds) * time.Second
	}
	return time.Duration(child.StartupTimeoutSeconds) * time.Second
}

// process fills options for a child.
func (s *source) process(options *client.Options) {
	child := s.config.Stdio
	options.Process = &process.Options{
		Command: child.Command, Dir: child.WorkingDir, Env: process.Environment(child.Env), MaxStderr: int(child.MaxStderrBytes), Log: s.log,
	}
	options.MaxBytes = min(options.MaxBytes, child.MaxMessageBytes)
	s.mu.Lock()
	defer s.mu.Unlock()
	options.LegacyChild = s.legacyOnly
}

// endChild ends a child that is not to be used any more for err, before
// another is started: two at once would quarrel over what only one can have.
// Who still waits for it hears so now.
func (s *source) endChild(l *lease, err error) {
	if s.config.Stdio == nil {
		return
	}
	s.diedOf(s.trueCause(l, err))
	s.mu.Lock()
	s.session = nil
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.m.life), closeTime)
	defer cancel()
	l.Close(ctx)
}

// reapTime is how long after a child's pipes its end may show.
const reapTime = time.Second

// trueCause: the broken pipe of a child that ended shows before its end does.
func (s *source) trueCause(l *lease, err error) error {
	if client.ReasonOf(err) != client.ConnectionLost {
		return err
	}
	timer := time.NewTimer(reapTime)
	defer timer.Stop()
	select {
	case <-l.Done():
		return l.Lost()
	case <-timer.C:
		return err
	}
}

// unlessBusy looks at an upstream, but not while a child works on a call: one
// that does one thing at a time is silent meanwhile, and not dead. A call that
// takes too long has it looked at.
func (s *source) unlessBusy(ctx context.Context, l *lease, look func(context.Context, *lease) error) error {
	if s.config.Stdio != nil && l.users.Load() > 0 {
		return nil
	}
	return look(ctx, l)
}

// diedOf notes why a child is not used any more, and how it ended. One that
// ends before its first answer may have ended of being asked what it does not
// know: the next is not asked.
func (s *source) diedOf(err error) {
	if s.config.Stdio == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.child, s.stderrCut, s.again = nil, false, client.ReasonOf(err)
	var known *client.Error
	if errors.As(err, &known) && (known.Reason == client.ChildExited || known.Reason == client.StartFailed) {
		s.child, s.stderrCut, s.known = known.Child, known.StderrTruncated, true
		s.legacyOnly = !s.answered && !s.legacyOnly
	}
}

// childState is what the report says of a child. It is called with the lock
// held.
func (s *source) childState() *podreport.Child {
	if s.config.Stdio == nil {
		return nil
	}
	out := podreport.Child{State: podreport.ChildExited}
	switch {
	case s.session != nil:
		out.State, out.Restarted = podreport.ChildRunning, string(s.again)
	case s.child == nil:
		return nil
	}
	if s.child != nil {
		out.ExitCode, out.Signal, out.StderrTruncated = s.child.ExitCode, s.child.Signal, s.stderrCut
	}
	return &out
}
