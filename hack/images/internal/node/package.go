// SPDX-License-Identifier: Apache-2.0

// Package node makes images of servers that are published as npm packages, from the Node
// and the shared libraries of this machine.
package node

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// install puts packages and what they need into dir. Scripts of packages are not run.
func install(ctx context.Context, dir string, packages []string) error {
	args := append([]string{"install", "--prefix", dir, "--ignore-scripts", "--omit=dev", "--no-audit", "--no-fund", "--loglevel=error"}, packages...)
	cmd := exec.CommandContext(ctx, "npm", args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("npm install: %w\n%s", err, out)
	}
	return nil
}

// packageName cuts the version off: @scope/name@1.2.3 is @scope/name.
func packageName(spec string) string {
	if at := strings.LastIndexByte(spec, '@'); at > 0 {
		return spec[:at]
	}
	return spec
}

// binField reads the field bin of a package's manifest, and gives the package's folder,
// relative to dir.
func binField(dir, spec string) (bin json.RawMessage, folder string, err error) {
	folder = path.Join("node_modules", packageName(spec))
	data, err := os.ReadFile(filepath.Join(dir, folder, "package.json"))
	if err != nil {
		return nil, "", err
	}
	var manifest struct {
		Bin json.RawMessage `json:"bin"`
	}
	err = json.Unmarshal(data, &manifest)
	return manifest.Bin, folder, err
}

// mainScript finds, relative to dir, the script of a package's command: the one named, or
// the only one, or the one that is called like the package.
func mainScript(dir, spec, command string) (string, error) {
	bin, folder, err := binField(dir, spec)
	if err != nil {
		return "", err
	}
	script, err := chooseScript(bin, path.Base(packageName(spec)), command)
	if err != nil {
		return "", fmt.Errorf("%s: %w", spec, err)
	}
	return path.Join(folder, script), nil
}

// commands gives the commands of a package and, relative to dir, their scripts.
func commands(dir, spec string) (map[string]string, error) {
	bin, folder, err := binField(dir, spec)
	if err != nil {
		return nil, err
	}
	scripts := map[string]string{}
	var single string
	if json.Unmarshal(bin, &single) == nil && single != "" {
		scripts[path.Base(packageName(spec))] = single
	} else if len(bin) > 0 {
		if err := json.Unmarshal(bin, &scripts); err != nil {
			return nil, fmt.Errorf("%s: %w", spec, err)
		}
	}
	for name, script := range scripts {
		scripts[name] = path.Join(folder, script)
	}
	return scripts, nil
}

// chooseScript reads the field bin, which is a string or a map from command to script.
func chooseScript(bin json.RawMessage, packageBase, command string) (string, error) {
	var single string
	if json.Unmarshal(bin, &single) == nil && single != "" {
		return single, nil
	}
	var scripts map[string]string
	if err := json.Unmarshal(bin, &scripts); err != nil || len(scripts) == 0 {
		return "", fmt.Errorf("the package has no command")
	}
	names := make([]string, 0, len(scripts))
	for name := range scripts {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, wanted := range []string{command, packageBase} {
		if script, found := scripts[wanted]; found {
			return script, nil
		}
	}
	if command != "" || len(names) > 1 {
		return "", fmt.Errorf("choose one of its commands: %s", strings.Join(names, ", "))
	}
	return scripts[names[0]], nil
}
