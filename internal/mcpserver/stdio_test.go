// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpserver_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/podreport"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// script is a child as a shell script. It answers what it is asked.
const script = `#!/bin/sh
echo "$$" > "$PID_FILE"
echo started >> "$PID_FILE.starts"
%s
while read -r line; do
  id=$(printf '%%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"server/discover"'*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"error\":{\"code\":-32601,\"message\":\"no\"}}" ;;
    *'"initialize"'*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"s\",\"version\":\"1\"}}}" ;;
    *'"tools/list"'*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"tools\":[{\"name\":\"hi\",\"inputSchema\":{\"type\":\"object\"}}]}}" ;;
    *'"tools/call"'*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"hello\"}]}}" ;;
    *'"id"'*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{}}" ;;
  esac
done
`

// wrapping is a server that wraps a script; before runs ahead of its loop.
func wrapping(t *testing.T, before string, startup int32) (_ *serverconfig.Config, pidFile string) {
	t.Helper()
	dir := t.TempDir()
	pidFile = filepath.Join(dir, "pid")
	t.Setenv("PID_FILE", pidFile)
	must(t, os.WriteFile(filepath.Join(dir, "child"), fmt.Appendf(nil, script, before), 0o755))
	c := config()
	c.Upstreams = []serverconfig.Upstream{{Name: serverconfig.StdioUpstream, Stdio: &serverconfig.Stdio{
		Command: []string{filepath.Join(dir, "child")}, Env: []string{"PID_FILE"},
		StartupTimeoutSeconds: startup, HandshakeTimeoutSeconds: 5, MaxMessageBytes: 1 << 20, MaxStderrBytes: 1024,
	}}}
	c.Policy = &serverconfig.ToolsPolicy{Max: 100}
	c.Requires = []string{serverconfig.FeatureUpstreams, serverconfig.FeatureStdio}
	return c, pidFile
}

func starts(t *testing.T, pidFile string) int {
	t.Helper()
	raw, err := os.ReadFile(pidFile + ".starts")
	must(t, err)
	return strings.Count(string(raw), "started")
}

// TestWrappedChild serves, shares one child among all, and gets another one
// when that is killed. Lists and probes start none.
func TestWrappedChild(t *testing.T) {
	c, pidFile := wrapping(t, "", 10)
	f := start(t, c, hurried)
	f.lists("hi")
	for range 5 {
		if got := f.do(f.callModern("hi", `{}`)); got.text() != "hello" {
			t.Fatalf("answers %s", got.body)
		}
		f.names()
	}
	if n := starts(t, pidFile); n != 1 {
		t.Errorf("%d children were started", n)
	}
	report := f.server.Report().Upstreams
	if len(report) != 1 || report[0].Child == nil || *report[0].Child != (podreport.Child{State: podreport.ChildRunning}) {
		t.Errorf("reports %+v", report)
	}
	for range 2 {
		raw, err := os.ReadFile(pidFile)
		must(t, err)
		pid := 0
		_, err = fmt.Sscan(string(raw), &pid)
		must(t, err)
		before := starts(t, pidFile)
		must(t, syscall.Kill(pid, syscall.SIGKILL))
		f.until("another child", func() bool { return starts(t, pidFile) == before+1 })
		f.until("its answer", func() bool { return f.do(f.callModern("hi", `{}`)).text() == "hello" })
	}
	f.lists("hi")
}

// TestWrappedChildExits at once: the server stays, says how, and tries again.
func TestWrappedChildExits(t *testing.T) {
	c, pidFile := wrapping(t, "test -e \"$PID_FILE.ok\" || exit 3", 10)
	began := time.Now()
	f := start(t, c, hurried)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("ready after %s: nobody could see why", took)
	}
	f.until("how it ended", func() bool {
		u := f.server.Report().Upstreams[0]
		return u.Reason == "ChildExited" && u.Child != nil && u.Child.ExitCode == 3 && u.Child.State == podreport.ChildExited
	})
	must(t, os.WriteFile(pidFile+".ok", nil, 0o600))
	f.lists("hi")
}

// TestWrappedChildStartsSlowly: the pod is not ready before it answers.
func TestWrappedChildStartsSlowly(t *testing.T) {
	c, pidFile := wrapping(t, "sleep 4", 20)
	began := time.Now()
	f := start(t, c, hurried)
	if took := time.Since(began); took < 4*time.Second {
		t.Errorf("ready after %s", took)
	}
	f.lists("hi")
	if n := starts(t, pidFile); n != 1 {
		t.Errorf("%d children were started", n)
	}
}
