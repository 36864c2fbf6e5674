// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
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

// diedOf notes how a child ended. One that ends before its first answer may
// have ended of being asked what it does not know: the next is not asked.
func (s *source) diedOf(err error) {
	var known *client.Error
	if s.config.Stdio == nil || !errors.As(err, &known) || known.Reason != client.ChildExited && known.Reason != client.StartFailed {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.child, s.stderrCut, s.known = known.Child, known.StderrTruncated, true
	s.legacyOnly = !s.answered && !s.legacyOnly
}

// childState is what the report says of a child. It is called with the lock
// held.
func (s *source) childState() *podreport.Child {
	if s.config.Stdio == nil {
		return nil
	}
	if s.state == podreport.UpstreamReady {
		return &podreport.Child{State: podreport.ChildRunning}
	}
	if s.child == nil {
		return nil
	}
	return &podreport.Child{State: podreport.ChildExited, ExitCode: s.child.ExitCode, Signal: s.child.Signal, StderrTruncated: s.stderrCut}
}
