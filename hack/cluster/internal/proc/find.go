// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Find returns the processes whose program has one of the names and whose command line
// mentions mark: those that nobody noted.
func Find(names []string, mark string) []Note {
	return scan(func(exe string, args []string) bool {
		return slices.Contains(names, filepath.Base(exe)) && mentions(args, mark)
	})
}

// Named returns the processes whose program has the given file name.
func Named(name string) []Note {
	return scan(func(exe string, _ []string) bool { return filepath.Base(exe) == name })
}

func mentions(args []string, mark string) bool {
	for _, arg := range args {
		if strings.Contains(arg, mark) {
			return true
		}
	}
	return false
}

func scan(match func(exe string, args []string) bool) []Note {
	entries, _ := os.ReadDir("/proc")
	var found []Note
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		if note, ok := inspect(pid, match); ok {
			found = append(found, note)
		}
	}
	return found
}

func inspect(pid int, match func(exe string, args []string) bool) (Note, bool) {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	exe, err := os.Readlink(filepath.Join(dir, "exe"))
	if err != nil {
		return Note{}, false
	}
	// The program may have been rebuilt or removed since the process began.
	exe = strings.TrimSuffix(exe, " (deleted)")
	line, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
	args := strings.Split(string(bytes.TrimRight(line, "\x00")), "\x00")
	if !match(exe, args) {
		return Note{}, false
	}
	note, err := noteOf(Command{Name: filepath.Base(exe), Path: exe, Args: args}, pid)
	return note, err == nil
}
