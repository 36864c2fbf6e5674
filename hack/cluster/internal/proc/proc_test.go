// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

func startSleep(t *testing.T, dir string) Note {
	t.Helper()
	note, err := Start(dir, Command{Name: "sleeper", Path: "/bin/sleep", Args: []string{"60"}, Log: filepath.Join(dir, "logs", "sleeper.log")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { Stop(note, 0) })
	return note
}

// TestStartKeepsInheritedFiles holds a file as a caller leaves it to the cluster
// command, open across exec, and looks whether a daemon has it.
func TestStartKeepsInheritedFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lock")
	fd, err := syscall.Open(file, syscall.O_CREAT|syscall.O_RDWR, 0o600) // Without O_CLOEXEC.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	note := startSleep(t, t.TempDir())
	open, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", note.PID))
	if err != nil || len(open) == 0 {
		t.Fatal(open, err)
	}
	for _, link := range open {
		if target, _ := os.Readlink(link); target == file {
			t.Errorf("the daemon holds %s", target)
		}
	}
}

func TestStopEndsWhatStartBegan(t *testing.T) {
	dir := t.TempDir()
	startSleep(t, dir)
	notes := Notes(dir)
	if len(notes) != 1 || !notes[0].Alive() {
		t.Fatalf("notes %+v", notes)
	}
	StopAll(notes, time.Second)
	if notes[0].Alive() {
		t.Error("still alive")
	}
}

// TestStopSparesAStranger holds a note whose process id was given to another process.
func TestStopSparesAStranger(t *testing.T) {
	note := startSleep(t, t.TempDir())
	for name, change := range map[string]func(*Note){
		"start time": func(n *Note) { n.StartTime-- },
		"boot":       func(n *Note) { n.BootID = "another" },
	} {
		stale := note
		change(&stale)
		Stop(stale, 0)
		if !note.Alive() {
			t.Fatalf("%s: stopped a process that is not the noted one", name)
		}
	}
}

func TestParseStat(t *testing.T) {
	fields := " 1 1 1 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 4711 0 0"
	start, err := parseStat("42 (a ) b (c)) S" + fields)
	if err != nil || start != 4711 {
		t.Errorf("got %d, %v", start, err)
	}
	if _, err := parseStat("42 (x) Z" + fields); err == nil {
		t.Error("a zombie counts as alive")
	}
	if _, err := parseStat("42 (x) Z" + strings.Replace(fields, " 20 0 1 ", " 20 0 12 ", 1)); err != nil {
		t.Error("a process counts as ended while its threads hold its ports")
	}
	if _, err := parseStat(""); err == nil {
		t.Error("an empty line counts as alive")
	}
}

func TestFindWantsProgramAndMark(t *testing.T) {
	exe, err := filepath.EvalSymlinks("/bin/sleep")
	if err != nil {
		t.Fatal(err)
	}
	note := startSleep(t, t.TempDir())
	found := func(name, mark string) bool {
		return slices.ContainsFunc(Find([]string{name}, mark), func(n Note) bool { return n.PID == note.PID })
	}
	if !found(filepath.Base(exe), "60") {
		t.Error("not found")
	}
	if found(filepath.Base(exe), "another mark") || found("another program", "60") {
		t.Error("found by one of the two alone")
	}
}
