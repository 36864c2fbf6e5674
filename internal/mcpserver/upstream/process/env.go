// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// safe variables that a child gets from this process, where they are set.
var safe = []string{
	"PATH", "HOME", "LANG", "TMPDIR", "USER", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "npm_config_cache", "UV_CACHE_DIR",
}

// Environment gives the safe variables and the named ones, as far as they are
// set, and nothing else of this process's.
func Environment(named []string) []string {
	var out []string
	seen := map[string]bool{}
	for _, name := range append(append([]string{}, safe...), named...) {
		if value, ok := os.LookupEnv(name); ok && !seen[name] {
			seen[name] = true
			out = append(out, name+"="+value)
		}
	}
	return out
}

// lookPath finds a command in the PATH that the child will have.
func lookPath(command string, env []string) (string, error) {
	if strings.ContainsRune(command, filepath.Separator) {
		return command, nil
	}
	for _, variable := range env {
		list, ok := strings.CutPrefix(variable, "PATH=")
		if !ok {
			continue
		}
		for _, dir := range filepath.SplitList(list) {
			path := filepath.Join(dir, command)
			if info, err := os.Stat(path); filepath.IsAbs(path) && err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
				return path, nil
			}
		}
	}
	return "", &exec.Error{Name: command, Err: exec.ErrNotFound}
}

var signals = map[syscall.Signal]string{
	syscall.SIGKILL: "KILL", syscall.SIGTERM: "TERM", syscall.SIGSEGV: "SEGV", syscall.SIGABRT: "ABRT", syscall.SIGINT: "INT",
	syscall.SIGHUP: "HUP", syscall.SIGPIPE: "PIPE", syscall.SIGBUS: "BUS", syscall.SIGILL: "ILL", syscall.SIGFPE: "FPE", syscall.SIGQUIT: "QUIT",
}

func signalName(s syscall.Signal) string {
	if name := signals[s]; name != "" {
		return name
	}
	return "OTHER"
}
