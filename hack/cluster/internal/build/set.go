// SPDX-License-Identifier: Apache-2.0

// Package build compiles the cluster's programs from pinned Go modules into a cache that
// outlives the checkout, so that a program is compiled once per machine and version.
package build

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Set is a group of programs that are built together from one module.
type Set struct {
	// Name names the cache folder.
	Name string
	// Dir is the module's folder, relative to hack/cluster.
	Dir string
	// Packages are the import paths (or ./ paths) of the main packages.
	Packages []string
	// Sources are the files, besides go.mod and go.sum, that the programs are made of,
	// as patterns relative to Dir. Programs of other modules are pinned by go.sum alone.
	Sources []string
	// LDFlags are the linker's flags beyond those that every set is given.
	LDFlags []string
	// Rename maps the name that go build chooses to the wanted one.
	Rename map[string]string
}

// commonFlags keep machine paths and debug tables out of the programs.
var commonFlags = []string{"-trimpath", "-buildvcs=false"}

func (s Set) ldflags() string {
	return strings.Join(append([]string{"-s", "-w"}, s.LDFlags...), " ")
}

// key is a hash of all that decides what the programs of the set look like.
func (s Set) key(root, goVersion string) (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, goVersion, s.Packages, commonFlags, s.ldflags(), s.Rename)
	files, err := s.files(root)
	if err != nil {
		return "", err
	}
	for _, file := range files {
		if err := hashFile(h, filepath.Join(root, s.Dir), file); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil))[:16], nil
}

// files lists the files that the key covers, relative to the module's folder.
func (s Set) files(root string) ([]string, error) {
	module := os.DirFS(filepath.Join(root, s.Dir))
	var files []string
	for _, pattern := range append([]string{"go.mod", "go.sum"}, s.Sources...) {
		matches, err := fs.Glob(module, pattern)
		if err != nil {
			return nil, fmt.Errorf("pattern %q: %w", pattern, err)
		}
		files = append(files, matches...)
	}
	files = slices.DeleteFunc(files, func(file string) bool { return strings.HasSuffix(file, "_test.go") })
	slices.Sort(files)
	return files, nil
}

func hashFile(w io.Writer, dir, name string) error {
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s %d\n%s\n", name, len(data), data)
	return err
}

// goVersion is the version and platform of the Go toolchain that would do the build.
func goVersion(dir string) (string, error) {
	cmd := exec.Command("go", "env", "GOVERSION", "GOOS", "GOARCH")
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go env: %w", err)
	}
	return strings.Join(strings.Fields(string(out)), " "), nil
}
