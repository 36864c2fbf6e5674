// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"path/filepath"
)

// findRoot returns the folder of hack/cluster, where the modules of the programs lie:
// ESPALIER_CLUSTER_SOURCE, the working folder, or hack/cluster in one of its parents.
func findRoot() (string, error) {
	if dir := os.Getenv("ESPALIER_CLUSTER_SOURCE"); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		for _, candidate := range []string{dir, filepath.Join(dir, "hack", "cluster")} {
			if isRoot(candidate) {
				return candidate, nil
			}
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("run this inside a checkout, or set ESPALIER_CLUSTER_SOURCE to its hack/cluster")
		}
		dir = filepath.Dir(dir)
	}
}

func isRoot(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "tools", "kubernetes", "go.mod"))
	return err == nil
}
