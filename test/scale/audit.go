// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"os"

	"github.com/espalier-dev/espalier/test/apiserver"
)

// writes are numbers of requests by what was written: "patch deployments".
type writes map[string]int

func (w writes) total() int {
	n := 0
	for _, count := range w {
		n += count
	}
	return n
}

// since is what came on top of before.
func (w writes) since(before writes) writes {
	out := writes{}
	for what, count := range w {
		if n := count - before[what]; n > 0 {
			out[what] = n
		}
	}
	return out
}

// auditLog counts what an API server logs of the operator's writes. The few in
// the operator's own namespace, its keys, are not counted: they are made once.
type auditLog struct {
	path   string
	offset int64
	counts writes
}

type auditEvent struct {
	Verb      string `json:"verb"`
	ObjectRef struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
	} `json:"objectRef"`
}

// read gives all writes so far.
func (l *auditLog) read() (writes, error) {
	file, err := os.Open(l.path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if _, err := file.Seek(l.offset, io.SeekStart); err != nil {
		return nil, err
	}
	text, err := io.ReadAll(file)
	if err != nil {
		return nil, err
	}
	// The last line may be half written.
	text = text[:bytes.LastIndexByte(text, '\n')+1]
	l.offset += int64(len(text))
	if l.counts == nil {
		l.counts = writes{}
	}
	for line := range bytes.Lines(text) {
		var e auditEvent
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, err
		}
		if e.ObjectRef.Namespace == apiserver.OperatorNamespace {
			continue
		}
		what := e.Verb + " " + e.ObjectRef.Resource
		if e.ObjectRef.Subresource != "" {
			what += "/" + e.ObjectRef.Subresource
		}
		l.counts[what]++
	}
	return maps.Clone(l.counts), nil
}
