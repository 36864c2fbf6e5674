// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package audit writes who called what: one line of JSON for each call of a
// tool, reading of a resource, getting of a prompt and completion, when it
// ends.
package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

// Principal is who called, as it was recognised.
type Principal struct {
	Kind    string `json:"kind"`
	Subject string `json:"subject,omitempty"`
}

// Line of the log. What is empty is left out.
type Line struct {
	// Audit marks the line among others on the same stream; it is "call".
	Audit string    `json:"audit"`
	Time  time.Time `json:"time"`
	// RequestID is that of X-Request-Id; TraceID that of the call's span.
	RequestID string    `json:"requestId"`
	TraceID   string    `json:"traceId,omitempty"`
	Server    string    `json:"server"`
	Principal Principal `json:"principal"`
	Method    string    `json:"method"`
	// Tool, Resource and Prompt are of the catalog: a resource is its URI or
	// the template that it came from. One that is not served stands in Asked.
	Tool     string `json:"tool,omitempty"`
	Resource string `json:"resource,omitempty"`
	Prompt   string `json:"prompt,omitempty"`
	// Asked is the caller's own word for a tool or prompt that is not served,
	// or that they may not see; at most 200 bytes.
	Asked string `json:"asked,omitempty"`
	// Outcome is that of the metrics; Code of the error that was answered.
	Outcome         string  `json:"outcome"`
	Code            int     `json:"code,omitempty"`
	DurationSeconds float64 `json:"durationSeconds"`
	CostCategory    string  `json:"costCategory,omitempty"`
	Upstream        string  `json:"upstream,omitempty"`
	// Params are the raw arguments or URI, where they were asked for;
	// ParamsOmitted is their size in bytes where that is more than 16 KiB.
	Params        json.RawMessage `json:"params,omitempty"`
	ParamsOmitted int             `json:"paramsOmitted,omitempty"`
}

// maxParams is how much of the caller's words stands in a line, in bytes.
const maxParams = 16 << 10

// SetParams keeps params, or their size.
func (l *Line) SetParams(raw []byte) {
	if len(raw) > maxParams {
		l.ParamsOmitted = len(raw)
		return
	}
	l.Params = raw
}

// Log is safe for concurrent use.
type Log struct {
	// Params: lines have the arguments of calls.
	Params bool
	// Failed, if set, is told of each line that could not be written; first
	// says that the one before could be.
	Failed func(err error, first bool)

	mu      sync.Mutex
	out     io.Writer
	failing bool
}

// New gives a log that writes to out, each line by one Write.
func New(out io.Writer) *Log { return &Log{out: out} }

// Stdout is the target that is no path.
const Stdout = "stdout"

// Open gives the log that target names: "stdout", or the absolute path of a
// file that is appended to; nil for an empty one. params is "true" or "false",
// empty for the latter. The error says what is wrong with which.
func Open(target, params string, stdout io.Writer) (*Log, error) {
	with := false
	if params != "" {
		var err error
		if with, err = strconv.ParseBool(params); err != nil {
			return nil, fmt.Errorf("whether the audit log has arguments is true or false, not %q", params)
		}
	}
	var log *Log
	switch {
	case target == "" && with:
		return nil, errors.New("arguments cannot be in an audit log that is off: say where it goes")
	case target == "":
		return nil, nil //nolint:nilnil // Off is no error.
	case target == Stdout:
		if stdout == nil {
			return nil, errors.New("the audit log cannot go to stdout, which is a client's here: give the path of a file")
		}
		log = New(stdout)
	case !filepath.IsAbs(target):
		return nil, fmt.Errorf("the audit log goes to stdout or to a file with an absolute path, not to %q", target)
	default:
		file, err := os.OpenFile(target, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o640) //nolint:gosec // The group may read it: whoever collects it.
		if err != nil {
			return nil, fmt.Errorf("the audit log cannot be opened: %w", err)
		}
		log = New(file)
	}
	log.Params = with
	return log, nil
}

// Write writes one line.
func (l *Log) Write(line *Line) {
	raw, err := json.Marshal(line)
	l.mu.Lock()
	if err == nil {
		_, err = l.out.Write(append(raw, '\n'))
	}
	first := !l.failing
	l.failing = err != nil
	l.mu.Unlock()
	if err != nil && l.Failed != nil {
		l.Failed(err, first)
	}
}

// Close closes what Open has opened. Nothing may be written any more.
func (l *Log) Close() error {
	if l == nil {
		return nil
	}
	if file, ok := l.out.(*os.File); ok && file != os.Stdout {
		return file.Close()
	}
	return nil
}
