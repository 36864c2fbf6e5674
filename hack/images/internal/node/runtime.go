// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/espalier-dev/espalier/hack/images/internal/image"
)

// nodePath is where Node lies in the image.
const nodePath = "/usr/local/bin/node"

// programs are what an image has of this machine, and where: Node, and what the scripts of
// packages and npx are started with.
var programs = []struct{ name, path string }{{"node", nodePath}, {"env", "/usr/bin/env"}, {"sh", "/bin/sh"}}

// runtimeFiles are Node itself, what scripts are started with, and the libraries that these
// are linked with.
func runtimeFiles() ([]image.File, error) {
	files := append(image.BaseFiles(),
		image.File{Path: "/etc/nsswitch.conf", Mode: 0o644, Content: []byte("hosts: files dns\n")},
	)
	known := map[string]bool{}
	for _, p := range programs {
		program, err := exec.LookPath(p.name)
		if err != nil {
			return nil, err
		}
		program, err = filepath.EvalSymlinks(program)
		if err != nil {
			return nil, err
		}
		out, err := exec.Command("ldd", program).Output()
		if err != nil {
			return nil, fmt.Errorf("ldd %s: %w", program, err)
		}
		files = append(files, image.File{Path: p.path, Mode: 0o755, Source: program})
		for _, library := range libraries(string(out)) {
			if !known[library] {
				known[library] = true
				files = append(files, image.File{Path: library, Mode: 0o755, Source: library})
			}
		}
	}
	return files, nil
}

// libraries reads the paths from the output of ldd: "libm.so.6 => /lib/libm.so.6 (0x..)",
// and for the loader "/lib64/ld-linux-x86-64.so.2 (0x..)".
func libraries(ldd string) []string {
	var paths []string
	for line := range strings.Lines(ldd) {
		for _, field := range strings.Fields(line) {
			if strings.HasPrefix(field, "/") {
				paths = append(paths, field)
			}
		}
	}
	return paths
}

// version is that of the Node which would get into the image.
func version() (string, error) {
	out, err := exec.Command("node", "--version").Output()
	if err != nil {
		return "", fmt.Errorf("node --version: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}
