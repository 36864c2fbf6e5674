// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// resident is memory of a process, in MiB.
type resident struct {
	// peak is the most that it had at one time.
	peak float64
	// anonymous and file are the most that was seen of each: what the program
	// allocated, and pages of its binary, which are shared with all that run
	// it and which the kernel may drop at any time.
	anonymous, file float64
}

// memorySampling is how often memory is looked at for its parts, of which the
// kernel keeps no peak.
const memorySampling = 50 * time.Millisecond

// memory watches what a process holds.
type memory struct {
	pid int

	mu   sync.Mutex
	most resident
}

// watchMemory looks until the process has ended.
func watchMemory(pid int, ended <-chan struct{}) *memory {
	m := &memory{pid: pid}
	go func() {
		ticker := time.NewTicker(memorySampling)
		defer ticker.Stop()
		for {
			select {
			case <-ended:
				return
			case <-ticker.C:
				_, _ = m.read() // Who wants the figures reads again, and sees the error.
			}
		}
	}()
	return m
}

// read gives the most so far.
func (m *memory) read() (resident, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", m.pid))
	if err != nil {
		return resident{}, err
	}
	now, err := parseResident(string(raw))
	if err != nil {
		return resident{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.most = resident{max(m.most.peak, now.peak), max(m.most.anonymous, now.anonymous), max(m.most.file, now.file)}
	return m.most, nil
}

// parseResident reads /proc/PID/status.
func parseResident(status string) (resident, error) {
	var out resident
	into := map[string]*float64{"VmHWM": &out.peak, "RssAnon": &out.anonymous, "RssFile": &out.file}
	for line := range strings.Lines(status) {
		name, value, _ := strings.Cut(line, ":")
		field, ok := into[name]
		if !ok {
			continue
		}
		kib, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")))
		if err != nil {
			return resident{}, fmt.Errorf("/proc/PID/status: %s: %w", name, err)
		}
		*field = float64(kib) / 1024
		delete(into, name)
	}
	if len(into) > 0 {
		return resident{}, errors.New("/proc/PID/status lacks VmHWM, RssAnon or RssFile")
	}
	return out, nil
}
