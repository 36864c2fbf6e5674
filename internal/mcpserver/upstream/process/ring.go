// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"
)

const (
	// maxLogged is how much of a line goes to the log, linesPerSecond how many.
	maxLogged      = 2000
	linesPerSecond = 50
)

// ring keeps the most recent bytes of a stream and passes its lines on to the
// log, some of them when there are many.
type ring struct {
	lines *Lines

	mu      sync.Mutex
	max     int
	kept    []byte
	dropped bool
}

func newRing(limit int, log *slog.Logger) *ring {
	return &ring{max: limit, lines: &Lines{Log: log, Stream: "stderr"}}
}

// readAll reads until the end. It never stops the writer for long.
func (r *ring) readAll(from io.Reader) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		r.add(buffer[:n])
		r.lines.Add(buffer[:n])
		if err != nil {
			return
		}
	}
}

func (r *ring) add(p []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept = append(r.kept, p...)
	if over := len(r.kept) - r.max; over > 0 {
		r.dropped = true
		r.kept = append(r.kept[:0], r.kept[over:]...)
	}
}

func (r *ring) bytes() ([]byte, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return bytes.Clone(r.kept), r.dropped
}

// Lines writes lines of a child's output to the log, bounded in length and
// number and marked as what they are.
type Lines struct {
	Log    *slog.Logger
	Stream string

	part    []byte
	second  int64
	written int
	skipped int
}

// Add takes the next bytes of the stream. It is for one goroutine.
func (l *Lines) Add(p []byte) {
	for len(p) > 0 {
		line, rest, whole := bytes.Cut(p, []byte("\n"))
		if room := maxLogged - len(l.part); room > 0 {
			l.part = append(l.part, line[:min(len(line), room)]...)
		}
		if whole {
			l.Line(l.part)
			l.part = l.part[:0]
		}
		p = rest
	}
}

// Line writes one line.
func (l *Lines) Line(line []byte) {
	line = bytes.TrimSpace(line)
	if l.Log == nil || len(line) == 0 {
		return
	}
	if now := time.Now().Unix(); now != l.second {
		if l.skipped > 0 {
			l.Log.Info("Output of the child was left out", "stream", l.Stream, "lines", l.skipped)
		}
		l.second, l.written, l.skipped = now, 0, 0
	}
	if l.written >= linesPerSecond {
		l.skipped++
		return
	}
	l.written++
	l.Log.Info("Output of the child", "stream", l.Stream, "line", strings.ToValidUTF8(string(line[:min(len(line), maxLogged)]), "?"))
}
