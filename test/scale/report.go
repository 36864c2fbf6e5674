// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"
)

// row is one line of the table. Those with a name are printed as BENCH too.
type row struct {
	name, title, unit string
	value             func(*figures) float64
}

func seconds(of func(*figures) time.Duration) func(*figures) float64 {
	return func(m *figures) float64 { return of(m).Seconds() }
}

var rows = []row{
	{"all-ready", "all Ready after", "s", seconds(func(m *figures) time.Duration { return m.ready })},
	{"writes-per-server", "writes per server until settled", "writes", func(m *figures) float64 {
		return float64(m.starting.writes.total()) / float64(m.fleet.servers)
	}},
	{"start-cpu", "CPU until settled", "s", seconds(func(m *figures) time.Duration { return m.starting.cpu })},
	{"start-lag", "largest lag of probes meanwhile", "s", func(m *figures) float64 { return m.starting.lag }},
	{"peak-rss", "peak RSS", "MiB", func(m *figures) float64 { return m.memory.peak }},
	{"peak-anonymous", "... largest part allocated", "MiB", func(m *figures) float64 { return m.memory.anonymous }},
	{"peak-file", "... largest part of the binary", "MiB", func(m *figures) float64 { return m.memory.file }},
	{"rest-writes", "writes at rest", "writes", func(m *figures) float64 { return float64(m.rest.writes.total()) }},
	{"rest-cpu", "CPU at rest", "s/min", func(m *figures) float64 { return m.rest.cpu.Seconds() / m.rest.took.Minutes() }},
	{"rest-probes", "probes at rest", "/s", func(m *figures) float64 { return m.rest.probes / m.rest.took.Seconds() }},
	{"rest-lag", "largest lag of probes at rest", "s", func(m *figures) float64 { return m.rest.lag }},
	{"rest-oldest", "oldest proof of a server at rest", "s", seconds(func(m *figures) time.Duration { return m.rest.oldest })},
	{"holes", "black holes beside", "servers", func(m *figures) float64 { return float64(m.holes) }},
	{"holes-lag", "largest lag of probes beside them", "s", func(m *figures) float64 { return m.beside.lag }},
	{"holes-oldest", "oldest proof of a server beside them", "s", seconds(func(m *figures) time.Duration { return m.beside.oldest })},
	{"holes-writes", "writes beside them", "writes", func(m *figures) float64 { return float64(m.beside.writes.total()) }},
	{"restart-writes", "writes after a restart", "writes", func(m *figures) float64 { return float64(m.restart.writes.total()) }},
	{"restart-settle", "all proved again after", "s", seconds(func(m *figures) time.Duration { return m.settle })},
	{"restart-rss", "peak RSS after the restart", "MiB", func(m *figures) float64 { return m.restartMemory.peak }},
	{"restart-anonymous", "... largest part allocated", "MiB", func(m *figures) float64 { return m.restartMemory.anonymous }},
	{"repair", "deleted Deployment back after", "s", seconds(func(m *figures) time.Duration { return m.repair })},
	{"unready", "Ready follows pods that are not ready", "s", seconds(func(m *figures) time.Duration { return m.unready })},
	{"down", "Ready follows endpoints that answer 503", "s", seconds(func(m *figures) time.Duration { return m.down })},
	{"up", "... and that serve again", "s", seconds(func(m *figures) time.Duration { return m.up })},
}

// report prints the figures and says which promises they break.
func report(out io.Writer, all []*figures) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprint(table, "servers x replicas")
	for _, m := range all {
		fmt.Fprintf(table, "\t%s", m.fleet)
	}
	fmt.Fprintln(table)
	for _, r := range rows {
		fmt.Fprint(table, r.title)
		for _, m := range all {
			fmt.Fprintf(table, "\t%.2f %s", r.value(m), r.unit)
		}
		fmt.Fprintln(table)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	var broken error
	for _, m := range all {
		fmt.Fprintf(out, "%s: writes per server until settled: %s\n", m.fleet, perServer(m))
		broken = errors.Join(broken, promises(m))
	}
	for _, m := range all {
		for _, r := range rows {
			fmt.Fprintf(out, "BENCH scale/%s/%s %.3f %s\n", m.fleet, r.name, r.value(m), r.unit)
		}
	}
	return broken
}

// perServer is the writes by kind.
func perServer(m *figures) string {
	text := ""
	for _, what := range slices.Sorted(maps.Keys(m.starting.writes)) {
		text += fmt.Sprintf("%s %.2f, ", what, float64(m.starting.writes[what])/float64(m.fleet.servers))
	}
	return text
}

// promises are those of docs/architecture.md.
func promises(m *figures) error {
	var errs error
	if n := m.rest.writes.total(); n > 0 {
		errs = errors.Join(errs, fmt.Errorf("%s: %d writes at rest: %v", m.fleet, n, m.rest.writes))
	}
	if n := m.restart.writes.total(); n > 0 {
		errs = errors.Join(errs, fmt.Errorf("%s: %d writes after a restart: %v", m.fleet, n, m.restart.writes))
	}
	if n := m.beside.writes.total(); n > 0 {
		errs = errors.Join(errs, fmt.Errorf("%s: %d writes beside black holes: %v", m.fleet, n, m.beside.writes))
	}
	return errs
}
