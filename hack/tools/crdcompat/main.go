// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Crdcompat says whether CRDs still take every object that those of the last
// release took, and mean the same by it.
//
//	crdcompat -baseline FOLDER CRD...          compare
//	crdcompat -baseline FOLDER -write CRD...   make the CRDs the baseline
//
// FOLDER holds the CRDs of the last release without their descriptions, and
// exceptions.txt: findings, one a line as they are printed, that were judged to
// be harmless, each below a comment that says why.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

// exceptions is the name of the file of findings that are no trouble.
const exceptions = "exceptions.txt"

func main() {
	baseline := flag.String("baseline", "", "Folder of the last release's CRDs.")
	write := flag.Bool("write", false, "Make the CRDs the baseline.")
	flag.Parse()
	if err := run(*baseline, *write, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "crdcompat:", err)
		os.Exit(1)
	}
}

func run(baseline string, write bool, files []string) error {
	if write {
		return keep(baseline, files)
	}
	present := map[string]map[string]any{}
	for _, file := range files {
		crd, err := read(file)
		if err != nil {
			return err
		}
		present[nameOf(crd)] = crd
	}
	old, err := filepath.Glob(filepath.Join(baseline, "*.yaml"))
	if err != nil {
		return err
	}
	if len(old) == 0 {
		return fmt.Errorf("%s holds no CRDs", baseline)
	}
	harmless, err := readExceptions(filepath.Join(baseline, exceptions))
	if err != nil {
		return err
	}
	var findings []string
	for _, file := range old {
		crd, err := read(file)
		if err != nil {
			return err
		}
		findings = append(findings, compare(crd, present[nameOf(crd)])...)
	}
	return judge(findings, harmless)
}

// judge drops what is harmless, and complains of an exception that excepts
// nothing.
func judge(findings []string, harmless map[string]bool) error {
	var left []string
	used := map[string]bool{}
	for _, finding := range findings {
		if harmless[finding] {
			used[finding] = true
			continue
		}
		left = append(left, finding)
	}
	for finding := range harmless {
		if !used[finding] {
			left = append(left, "an exception that is none any more: "+finding)
		}
	}
	if len(left) > 0 {
		return errors.New("the CRDs do not take all that the last release's took:\n  " + strings.Join(left, "\n  "))
	}
	return nil
}

func readExceptions(file string) (map[string]bool, error) {
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	out := map[string]bool{}
	for _, line := range strings.Split(string(text), "\n") {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			out[line] = true
		}
	}
	return out, nil
}

func read(file string) (map[string]any, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var crd map[string]any
	if err := yaml.Unmarshal(text, &crd); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return crd, nil
}

func nameOf(crd map[string]any) string {
	name, _ := object(crd, "metadata")["name"].(string)
	return name
}

// keep writes the CRDs, without descriptions, as the baseline.
func keep(baseline string, files []string) error {
	for _, file := range files {
		crd, err := read(file)
		if err != nil {
			return err
		}
		undescribe(crd, false)
		text, err := yaml.Marshal(crd)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(baseline, filepath.Base(file)), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// undescribe removes descriptions. A field of that name, which stands among
// properties, stays.
func undescribe(value any, fields bool) {
	switch v := value.(type) {
	case map[string]any:
		if !fields {
			delete(v, "description")
		}
		for key, inner := range v {
			undescribe(inner, key == "properties" && !fields)
		}
	case []any:
		for _, inner := range v {
			undescribe(inner, false)
		}
	}
}
