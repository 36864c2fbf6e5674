// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// key names a figure.
type key struct {
	subject     string
	connections int
}

// figure is what was measured of a subject.
type figure struct {
	// cpu of the server per call.
	cpu time.Duration
	// rate of calls per second.
	rate float64
}

// groups gives those whose names begin with prefix, group by group.
func groups(all []subject, prefix string) [][]subject {
	var out [][]subject
	for _, s := range all {
		if !strings.HasPrefix(s.name, prefix) {
			continue
		}
		if n := len(out); n > 0 && out[n-1][0].group == s.group {
			out[n-1] = append(out[n-1], s)
			continue
		}
		out = append(out, []subject{s})
	}
	return out
}

// running is a subject that was started, with its callers.
type running struct {
	subject
	process *process
	address string
	// callers by the number of connections.
	callers map[int][]*caller
	seen    map[int][]figure
	failed  bool
}

// measure measures the subjects of one group in turns, so that what else the
// machine does meets all of them. One that fails does not keep the others from
// being measured.
func (s *stage) measure(group []subject, figures map[key]figure) error {
	var all []*running
	var failures []error
	defer func() {
		for _, r := range all {
			r.stop()
		}
	}()
	for _, each := range group {
		r, err := s.begin(each)
		if err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", each.name, err))
			continue
		}
		all = append(all, r)
	}
	for range s.rounds {
		for _, n := range s.connections {
			for _, r := range all {
				if r.failed {
					continue
				}
				if err := r.round(n, s.window); err != nil {
					r.failed = true
					failures = append(failures, fmt.Errorf("%s with %d connections: %w", r.name, n, err))
				}
			}
		}
	}
	for _, r := range all {
		for n, seen := range r.seen {
			if !r.failed {
				figures[key{r.name, n}] = median(seen)
			}
		}
	}
	return errors.Join(failures...)
}

// begin starts a subject and warms it up.
func (s *stage) begin(each subject) (*running, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	p, err := each.start(port)
	if err != nil {
		return nil, err
	}
	r := &running{subject: each, process: p, address: fmt.Sprintf("127.0.0.1:%d", port), callers: map[int][]*caller{}, seen: map[int][]figure{}}
	for _, n := range s.connections {
		for range n {
			c, err := dial(r.address, r.path, r.era)
			if err != nil {
				r.stop()
				return nil, err
			}
			r.callers[n] = append(r.callers[n], c)
		}
		if _, _, err := load(r.callers[n], s.window/4); err != nil {
			r.stop()
			return nil, err
		}
	}
	return r, nil
}

func (r *running) stop() {
	for _, callers := range r.callers {
		for _, c := range callers {
			_ = c.conn.Close()
		}
	}
	r.process.stop()
}

func (r *running) round(connections int, window time.Duration) error {
	for _, c := range r.callers[connections] {
		// While others had their turn the server may have closed it.
		if err := c.connect(); err != nil {
			return err
		}
	}
	before, err := r.process.cpu()
	if err != nil {
		return err
	}
	calls, took, err := load(r.callers[connections], window)
	if err != nil {
		return err
	}
	after, err := r.process.cpu()
	if err != nil {
		return err
	}
	r.seen[connections] = append(r.seen[connections], figure{cpu: (after - before) / time.Duration(calls), rate: float64(calls) / took.Seconds()})
	return nil
}

// median of each part of figures.
func median(seen []figure) figure {
	at := len(seen) / 2
	byCPU := slices.SortedFunc(slices.Values(seen), func(a, b figure) int { return int(a.cpu - b.cpu) })
	byRate := slices.SortedFunc(slices.Values(seen), func(a, b figure) int { return int(a.rate - b.rate) })
	return figure{cpu: byCPU[at].cpu, rate: byRate[at].rate}
}

// tell prints all figures, and how they stand to those of their floor.
func tell(all []subject, connections []int, figures map[key]figure) {
	bench := func(name string, n int, what string, value float64, unit string) {
		fmt.Fprintf(os.Stdout, "BENCH dataplane/%s/c%d/%s %.4g %s\n", name, n, what, value, unit)
	}
	for _, s := range all {
		for _, n := range connections {
			f, ok := figures[key{s.name, n}]
			if !ok {
				continue
			}
			bench(s.name, n, "cpu", float64(f.cpu.Nanoseconds())/1000, "us/call")
			bench(s.name, n, "rate", f.rate, "calls/s")
			if floor, ok := figures[key{s.floor, n}]; ok {
				bench(s.name, n, "cpu-to-"+s.floor, float64(f.cpu)/float64(floor.cpu), "x")
				bench(s.name, n, "rate-to-"+s.floor, f.rate/floor.rate, "x")
			}
		}
	}
}
