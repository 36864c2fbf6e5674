// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// score counts scenarios.
type score struct {
	passed, total int
	// accepted: the suite itself says that all is as expected.
	accepted bool
	// expected to fail are so many, by the file.
	expected int
}

// good: all passed, but for what was expected to fail.
func (s score) good() bool { return s.accepted && s.total > 0 && s.passed+s.expected == s.total }

// add sums two scores up.
func (s *score) add(o score) {
	s.accepted = (s.total == 0 || s.accepted) && o.accepted
	s.passed += o.passed
	s.total += o.total
	s.expected += o.expected
}

// check is one line of a scenario's checks.json.
type check struct {
	ID           string `json:"id"`
	Status       string `json:"status"`
	Description  string `json:"description"`
	ErrorMessage string `json:"errorMessage"`
}

// result is one scenario that was run.
type result struct {
	scenario string
	checks   []check
}

// passed as the suite has it with a file of expected failures: a warning is a
// failure too, and something must have succeeded.
func (r *result) passed() bool {
	return len(r.flaws()) == 0 && slices.ContainsFunc(r.checks, func(c check) bool { return c.Status == "SUCCESS" })
}

func (r *result) flaws() []check {
	var out []check
	for _, c := range r.checks {
		if c.Status == "FAILURE" || c.Status == "WARNING" {
			out = append(out, c)
		}
	}
	return out
}

// folderName is how the suite names the results of a scenario.
var folderName = regexp.MustCompile(`^(?:server-)?(.+)-\d{4}-\d\d-\d\dT[\d-]+Z$`)

// read gives what the suite left in a folder, by scenario.
func read(folder string) (map[string]*result, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*", "checks.json"))
	if err != nil {
		return nil, err
	}
	out := map[string]*result{}
	for _, file := range files {
		match := folderName.FindStringSubmatch(filepath.Base(filepath.Dir(file)))
		if match == nil {
			return nil, fmt.Errorf("%s is not named after a scenario", filepath.Dir(file))
		}
		raw, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		r := &result{scenario: match[1]}
		if err := json.Unmarshal(raw, &r.checks); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		out[r.scenario] = r
	}
	return out, nil
}

// required reads the server scenarios that a revision scores from what the
// suite lists.
func required(listing string) ([]string, error) {
	var out []string
	inside := false
	for line := range strings.Lines(listing) {
		line = strings.TrimRight(line, "\n")
		name, item := strings.CutPrefix(line, "  - ")
		switch {
		case strings.HasPrefix(line, "Server scenarios"):
			inside = true
		case inside && item:
			out = append(out, name)
		case inside && len(out) > 0:
			return out, nil
		}
	}
	if len(out) == 0 {
		return nil, errors.New("the suite lists no server scenarios")
	}
	return out, nil
}
