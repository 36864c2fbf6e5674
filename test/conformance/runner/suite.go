// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// suite is the program that judges.
type suite struct{ node, script, out, expected string }

// scenario of a client, by one revision.
type scenario struct{ name, revision string }

// probeScenarios are those of a client that connects and lists and does no
// more: others want it to call tools, or to log in at an authorization server.
var probeScenarios = []scenario{
	{"initialize", "2025-11-25"},
	{"request-metadata", "2026-07-28"},
	{"http-standard-headers", "2026-07-28"},
	{"json-schema-ref-no-deref", "2026-07-28"},
}

// pluginScenarios are those of a client that lists and calls. Left out is what
// logs in at an authorization server: kubectl mcp is given its credentials.
var pluginScenarios = []scenario{
	{"initialize", "2025-11-25"},
	{"tools_call", "2025-11-25"},
	{"elicitation-sep1034-client-defaults", "2025-11-25"},
	{"json-schema-2020-12-preservation", "2025-11-25"},
	{"sse-retry", "2025-11-25"},
	{"tools_call", "2026-07-28"},
	{"request-metadata", "2026-07-28"},
	{"sep-2322-client-request-state", "2026-07-28"},
	{"http-standard-headers", "2026-07-28"},
	{"http-custom-headers", "2026-07-28"},
	{"http-invalid-tool-headers", "2026-07-28"},
	{"json-schema-ref-no-deref", "2026-07-28"},
	{"json-schema-2020-12-preservation", "2026-07-28"},
}

// run runs the suite and gives what it printed. ok is false when it ended
// with another status than 0.
func (s *suite) run(ctx context.Context, args ...string) (output string, ok bool, err error) {
	cmd := exec.CommandContext(ctx, s.node, append([]string{s.script}, args...)...)
	raw, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && ctx.Err() == nil {
		return string(raw), false, nil
	}
	return string(raw), err == nil, err
}

// baseline is the file of expected failures, an empty one where none is named.
func (s *suite) baseline() (string, error) {
	if s.expected != "" {
		return filepath.Abs(s.expected)
	}
	file := filepath.Join(s.out, "none.yaml")
	return file, os.WriteFile(file, nil, 0o600)
}

// server judges one server by one revision.
func (s *suite) server(ctx context.Context, t target, revision string) (score, error) {
	listing, ok, err := s.run(ctx, "list", "--requirements", revision)
	if err != nil || !ok {
		return score{}, fmt.Errorf("list what %s requires: %w\n%s", revision, err, listing)
	}
	scored, err := required(listing)
	if err != nil {
		return score{}, err
	}
	baseline, err := s.baseline()
	if err != nil {
		return score{}, err
	}
	folder := filepath.Join(s.out, t.name, revision)
	if err := os.RemoveAll(folder); err != nil {
		return score{}, err
	}
	output, ok, err := s.run(ctx, "server", "--url", t.url, "--requirements", revision, "--expected-failures", baseline, "-o", folder)
	if err != nil {
		return score{}, fmt.Errorf("judge %s: %w", t.url, err)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return score{}, err
	}
	if err := os.WriteFile(filepath.Join(folder, "output.txt"), []byte(output), 0o600); err != nil {
		return score{}, err
	}
	results, err := read(folder)
	if err != nil {
		return score{}, err
	}
	got := score{accepted: ok, total: len(scored), expected: expected(section(output, "Expected failures"))}
	for _, name := range scored {
		if r := results[name]; r != nil && r.passed() {
			got.passed++
		}
	}
	show(t.name+" "+revision, got, scored, results)
	if stale := section(output, "Stale baseline entries"); stale != "" {
		fmt.Println("  " + stale)
	}
	return got, nil
}

// expected counts the scenarios of which something failed as expected. The
// suite names them, or one check of them as "scenario:check".
func expected(list string) int {
	scenarios := map[string]bool{}
	for line := range strings.Lines(list) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "~ "); ok {
			scenario, _, _ := strings.Cut(name, ":")
			scenarios[scenario] = true
		}
	}
	return len(scenarios)
}

// section is a part of what the suite printed, from its title to an empty line.
func section(output, title string) string {
	_, rest, found := strings.Cut(output, title)
	if !found {
		return ""
	}
	part, _, _ := strings.Cut(rest, "\n\n")
	return title + part
}

// show prints the count, what failed and why, and what is not scored.
func show(title string, s score, scored []string, results map[string]*result) {
	fmt.Printf("%-24s %d/%d", title, s.passed, s.total)
	if s.expected > 0 {
		fmt.Printf(" (%d expected to fail)", s.expected)
	}
	fmt.Println()
	for _, name := range scored {
		r := results[name]
		if r == nil {
			fmt.Printf("  %s: was not run\n", name)
			continue
		}
		if r.passed() {
			continue
		}
		fmt.Printf("  %s:\n", name)
		for _, c := range r.flaws() {
			fmt.Printf("    %s %s: %s\n", c.Status, c.ID, c.ErrorMessage)
		}
	}
	var others []string
	for _, name := range slices.Sorted(maps.Keys(results)) {
		if !slices.Contains(scored, name) && results[name].passed() {
			others = append(others, name)
		}
	}
	if len(others) > 0 {
		fmt.Printf("  passed, and not scored: %s\n", strings.Join(others, ", "))
	}
}

// client judges a client by scenarios. The suite gives it the URL as its last
// argument.
func (s *suite) client(ctx context.Context, title, command string, scenarios []scenario) (score, error) {
	command, err := filepath.Abs(command)
	if err != nil {
		return score{}, err
	}
	baseline, err := s.baseline()
	if err != nil {
		return score{}, err
	}
	got := score{accepted: true, total: len(scenarios)}
	scored := make([]string, 0, len(scenarios))
	all := map[string]*result{}
	for _, c := range scenarios {
		folder := filepath.Join(s.out, title, c.revision, c.name)
		if err := os.RemoveAll(folder); err != nil {
			return score{}, err
		}
		output, ok, err := s.run(ctx, "client", "--command", command, "--scenario", c.name, "--spec-version", c.revision,
			"--expected-failures", baseline, "-o", folder)
		if err != nil {
			return score{}, fmt.Errorf("judge %s: %w\n%s", command, err, output)
		}
		if err := os.WriteFile(filepath.Join(folder, "output.txt"), []byte(output), 0o600); err != nil {
			return score{}, err
		}
		results, err := read(folder)
		if err != nil {
			return score{}, err
		}
		name := c.name + " " + c.revision
		scored = append(scored, name)
		if r := results[c.name]; r != nil {
			all[name] = r
			if ok && r.passed() {
				got.passed++
			}
		}
		got.accepted = got.accepted && ok
	}
	show(title, got, scored, all)
	return got, nil
}
