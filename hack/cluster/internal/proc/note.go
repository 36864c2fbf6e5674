// SPDX-License-Identifier: Apache-2.0

// Package proc starts processes that outlive their starter, and notes them on disk well
// enough that a later run stops exactly those and never a stranger with a recycled id.
package proc

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Command is what to run.
type Command struct {
	Name string   `json:"name"`
	Path string   `json:"path"`
	Args []string `json:"args"`
	// Env is added to the starter's environment.
	Env []string `json:"env,omitempty"`
	Log string   `json:"log"`
}

// Note remembers a started process.
type Note struct {
	Command
	PID int `json:"pid"`
	// StartTime, in clock ticks since boot, tells the process from a later one with its id.
	StartTime uint64 `json:"startTime"`
	// BootID tells this boot's ticks from those of an earlier one.
	BootID string `json:"bootID"`
}

// Self is a note about the calling process.
func Self(name string) (Note, error) {
	return noteOf(Command{Name: name, Args: os.Args[1:]}, os.Getpid())
}

func noteOf(command Command, pid int) (Note, error) {
	start, err := startTime(pid)
	return Note{Command: command, PID: pid, StartTime: start, BootID: bootID()}, err
}

// Alive says whether the noted process still runs.
func (n Note) Alive() bool {
	if n.PID <= 0 || n.BootID != bootID() {
		return false
	}
	start, err := startTime(n.PID)
	return err == nil && start == n.StartTime
}

// Write stores the note in a folder, under the command's name.
func (n Note) Write(dir string) error {
	data, err := json.MarshalIndent(n, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	temp := filepath.Join(dir, "."+n.Name+".tmp")
	if err := os.WriteFile(temp, data, 0o644); err != nil {
		return err
	}
	return os.Rename(temp, notePath(dir, n.Name))
}

// Read returns the note stored under name.
func Read(dir, name string) (Note, error) {
	var note Note
	data, err := os.ReadFile(notePath(dir, name))
	if err != nil {
		return note, err
	}
	return note, json.Unmarshal(data, &note)
}

// Forget removes the note stored under name.
func Forget(dir, name string) { _ = os.Remove(notePath(dir, name)) }

// Notes returns every readable note in a folder.
func Notes(dir string) []Note {
	paths, _ := filepath.Glob(notePath(dir, "*"))
	var notes []Note
	for _, path := range paths {
		if note, err := Read(dir, strings.TrimSuffix(filepath.Base(path), ".json")); err == nil {
			notes = append(notes, note)
		}
	}
	return notes
}

func notePath(dir, name string) string { return filepath.Join(dir, name+".json") }

func bootID() string {
	data, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(data))
}

// startTime reads field 22 of /proc/PID/stat. The second field, the program's name, may
// hold blanks and parentheses: count from the last closing one. A zombie counts as gone,
// but not while other threads of it still end: they hold its files and its ports.
func startTime(pid int) (uint64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	return parseStat(string(data))
}

func parseStat(stat string) (uint64, error) {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 {
		return 0, errors.New("short stat line")
	}
	state, threads := fields[0], fields[17]
	if state == "X" || state == "Z" && (threads == "0" || threads == "1") {
		return 0, errors.New("process has ended")
	}
	return strconv.ParseUint(fields[19], 10, 64)
}
