// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Chartgen writes what of charts/espalier is made of other files, and refuses
// a chart whose values and templates do not fit each other.
//
//	chartgen ROOT
//
// It brings the CRDs of config/crd and the rules of config/rbac to the chart,
// makes values.schema.json and README.md of values.yaml, and brings the
// chart's alerts and dashboard to config/prometheus.
package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: chartgen ROOT")
		os.Exit(2)
	}
	if err := run(repository(os.Args[1])); err != nil {
		fmt.Fprintln(os.Stderr, "chartgen:", err)
		os.Exit(1)
	}
}

func run(root repository) error {
	values, err := readValues(root.chart("values.yaml"))
	if err != nil {
		return err
	}
	for _, write := range []func(repository) error{writeCRDs, writeRules, writeMonitoring} {
		if err := write(root); err != nil {
			return err
		}
	}
	if err := checkUse(root.chart("templates"), values); err != nil {
		return err
	}
	if err := writeSchema(root.chart("values.schema.json"), values); err != nil {
		return err
	}
	return writeReadme(root.chart("README.md"), values)
}

// repository is the root of a checkout.
type repository string

func (r repository) path(elements ...string) string {
	return filepath.Join(append([]string{string(r)}, elements...)...)
}

func (r repository) chart(elements ...string) string {
	return r.path(append([]string{"charts", "espalier"}, elements...)...)
}

// generated says what a file is, in its first line.
func generated(from string) string {
	return "Made of " + from + " by \"make manifests\"."
}

// replaceFolder makes folder hold files and nothing else. Files that are the
// same are not touched.
func replaceFolder(folder string, files map[string]string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if _, wanted := files[entry.Name()]; !wanted {
			if err := os.Remove(filepath.Join(folder, entry.Name())); err != nil {
				return err
			}
		}
	}
	for name, text := range files {
		if err := write(filepath.Join(folder, name), text); err != nil {
			return err
		}
	}
	return nil
}

func write(file, text string) error {
	return os.WriteFile(file, []byte(text), 0o644)
}

// readIfThere gives "" for a file that is not there.
func readIfThere(file string) (string, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(text), err
}

// indent every line but empty ones.
func indent(text, by string) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i, line := range lines {
		if line != "" {
			lines[i] = by + line
		}
	}
	return strings.Join(lines, "\n") + "\n"
}
