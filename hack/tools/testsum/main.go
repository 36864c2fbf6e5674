// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Testsum reads the output of "go test -json" and prints what "go test" would:
// a line per package, the output of what failed, and "N passed, N failed" at
// the end. It exits with 1 if anything failed.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
)

// event is a line of "go test -json".
type event struct {
	Action     string
	Package    string
	ImportPath string
	Test       string
	Output     string
	Elapsed    float64
}

type summary struct {
	out            io.Writer
	output         map[string][]string // of what has not ended yet
	failedIn       map[string]bool     // packages with a failed test
	passed, failed int
}

func main() {
	if !summarise(os.Stdin, os.Stdout) {
		os.Exit(1)
	}
}

// summarise says whether all passed.
func summarise(in io.Reader, out io.Writer) bool {
	s := summary{out: out, output: map[string][]string{}, failedIn: map[string]bool{}}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		s.line(lines.Bytes())
	}
	if err := lines.Err(); err != nil {
		fmt.Fprintln(out, "testsum:", err)
		s.failed++
	}
	fmt.Fprintf(out, "%d passed, %d failed\n", s.passed, s.failed)
	return s.failed == 0
}

func (s *summary) line(line []byte) {
	var e event
	if json.Unmarshal(line, &e) != nil {
		fmt.Fprintln(s.out, string(line)) // The go command itself speaks, on stderr.
		return
	}
	key := e.Package + e.ImportPath + " " + e.Test
	switch e.Action {
	case "output", "build-output":
		s.output[key] = append(s.output[key], e.Output)
		if strings.HasPrefix(e.Output, "BENCH ") {
			fmt.Fprint(s.out, e.Output)
		}
	case "pass", "skip", "fail", "build-fail":
		s.end(e, key)
	}
}

func (s *summary) end(e event, key string) {
	failed := strings.HasSuffix(e.Action, "fail")
	switch {
	case failed:
		fmt.Fprint(s.out, strings.Join(s.output[key], ""))
		s.count(e)
	case e.Test != "" && e.Action == "pass":
		s.passed++
	case e.Action == "pass":
		fmt.Fprintf(s.out, "ok  \t%s\t%.1fs\n", e.Package, e.Elapsed)
	}
	delete(s.output, key)
}

// count counts a failure once: not the package beside its test, not a build
// that failed beside the package that needed it.
func (s *summary) count(e event) {
	if e.Action == "build-fail" {
		return
	}
	if e.Test != "" || !s.failedIn[e.Package] {
		s.failed++
	}
	s.failedIn[e.Package] = true
}
