// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/version"
)

func TestFlags(t *testing.T) {
	tests := []struct {
		args           []string
		code           int
		stdout, stderr string
	}{
		{[]string{"--version"}, 0, version.Version + "\n", ""},
		{[]string{"--nope"}, 2, "", "flag provided but not defined"},
		{[]string{"stray"}, 2, "", `unexpected argument "stray"`},
		{[]string{"--listen", "no address"}, 1, "", "Server cannot start"},
		{[]string{"--audit-log", "here"}, 2, "", "absolute path"},
		{[]string{"--audit-arguments", "true"}, 2, "", "say where it goes"},
		{[]string{"--audit-log", "stdout", "--transport", "stdio"}, 2, "", "give the path of a file"},
	}
	for _, tt := range tests {
		var stdout, stderr bytes.Buffer
		if code := run(tt.args, nil, &stdout, &stderr); code != tt.code || stdout.String() != tt.stdout || !strings.Contains(stderr.String(), tt.stderr) {
			t.Errorf("%q: got %d, %q, %q", tt.args, code, stdout.String(), stderr.String())
		}
	}
}

func TestTermination(t *testing.T) {
	logs, writer := io.Pipe()
	defer logs.Close()
	code := make(chan int, 1)
	go func() {
		code <- run([]string{"--catalog", t.TempDir(), "--credentials", t.TempDir(), "--listen", "127.0.0.1:0", "--internal-listen", "127.0.0.1:0", "--drain-delay", "0s"}, nil, io.Discard, writer)
		_ = writer.Close()
	}()
	buffer := make([]byte, 64<<10)
	for seen := ""; !strings.Contains(seen, "Server started"); {
		n, err := logs.Read(buffer)
		if err != nil {
			t.Fatal(err)
		}
		seen += string(buffer[:n])
	}
	go func() { _, _ = io.Copy(io.Discard, logs) }()
	if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case got := <-code:
		if got != 0 {
			t.Errorf("ended with %d", got)
		}
	case <-time.After(time.Minute):
		t.Fatal("did not end")
	}
}
