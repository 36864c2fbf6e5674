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

	"github.com/espalier-dev/espalier/internal/mcpserver"
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
    *'"tools/list"'*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"tools\":[{\"name\":\"hi\",\"inputSchema\":{\"type\":\"object\"}},{\"name\":\"slow\",\"inputSchema\":{\"type\":\"object\"}},{\"name\":\"stop\",\"inputSchema\":{\"type\":\"object\"}}]}}" ;;
    *'"stop"'*) kill -STOP $$ ;;
    *'"slow"'*) sleep 4; echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"at last\"}]}}" ;;
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

// childOf is the number of the child that was started last.
func childOf(t *testing.T, pidFile string) (pid int) {
	t.Helper()
	raw, err := os.ReadFile(pidFile)
	must(t, err)
	_, err = fmt.Sscan(string(raw), &pid)
	must(t, err)
	return pid
}

// TestWrappedChild serves, shares one child among all, and gets another one
// when that is killed. Lists and probes start none.
func TestWrappedChild(t *testing.T) {
	c, pidFile := wrapping(t, "", 10)
	f := start(t, c, hurried)
	f.lists("hi", "slow", "stop")
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
		before := starts(t, pidFile)
		must(t, syscall.Kill(childOf(t, pidFile), syscall.SIGKILL))
		f.until("another child", func() bool { return starts(t, pidFile) == before+1 })
		f.until("its answer", func() bool { return f.do(f.callModern("hi", `{}`)).text() == "hello" })
		if got := *f.server.Report().Upstreams[0].Child; got != (podreport.Child{State: podreport.ChildRunning, Restarted: "ChildExited", Signal: "KILL"}) {
			t.Errorf("reports %+v", got)
		}
	}
	f.lists("hi", "slow", "stop")
}

// TestWrappedChildExits at once: the server stays, says how, and tries again.
func TestWrappedChildExits(t *testing.T) {
	c, pidFile := wrapping(t, "test -e \"$PID_FILE.ok\" || exit 3", 60)
	began := time.Now()
	f := start(t, c, hurried)
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("ready after %s: nobody could see why", took)
	}
	f.until("how it ended", func() bool {
		u := f.server.Report().Upstreams[0]
		return u.Reason == "ChildExited" && u.Child != nil && u.Child.ExitCode == 3 && u.Child.State == podreport.ChildExited
	})
	must(t, os.WriteFile(pidFile+".ok", nil, 0o600))
	f.lists("hi", "slow", "stop")
}

// TestWrappedChildStartsSlowly: the pod is not ready before it answers.
func TestWrappedChildStartsSlowly(t *testing.T) {
	c, pidFile := wrapping(t, "sleep 4", 20)
	began := time.Now()
	f := start(t, c, hurried)
	if took := time.Since(began); took < 4*time.Second {
		t.Errorf("ready after %s", took)
	}
	f.lists("hi", "slow", "stop")
	if n := starts(t, pidFile); n != 1 {
		t.Errorf("%d children were started", n)
	}
}

// quick is hurried, and takes a child that is silent for a moment for one that
// hangs.
func quick(o *mcpserver.Options) {
	hurried(o)
	o.Upstreams.Handshake = 2 * time.Second
}

// TestWrappedChildHangs: it is found out by itself, or by a call that took too
// long, and it is gone before another one is started.
func TestWrappedChildHangs(t *testing.T) {
	for name, atRest := range map[string]bool{"at rest": true, "in a call": false} {
		t.Run(name, func(t *testing.T) {
			c, pidFile := wrapping(t, `test ! -e "$PID_FILE.last" || ! kill -0 "$(cat "$PID_FILE.last")" || exit 9; cp "$PID_FILE" "$PID_FILE.last"`, 10)
			c.Limits.CallTimeoutSeconds = 1
			f := start(t, c, quick, func(o *mcpserver.Options) {
				if !atRest {
					o.Upstreams.Health, o.Upstreams.Refresh = time.Hour, time.Hour
				}
			})
			f.lists("hi", "slow", "stop")
			if atRest {
				must(t, syscall.Kill(childOf(t, pidFile), syscall.SIGSTOP))
			} else if got := f.do(f.callModern("stop", `{}`)); got.reason() != "CallTimeout" {
				t.Errorf("answers %s", got.body)
			}
			f.until("another child", func() bool { return f.do(f.callModern("hi", `{}`)).text() == "hello" })
			if n := starts(t, pidFile); n != 2 {
				t.Errorf("%d children were started: one came while the first was still there", n)
			}
			if got := *f.server.Report().Upstreams[0].Child; got != (podreport.Child{State: podreport.ChildRunning, Restarted: "Timeout"}) {
				t.Errorf("reports %+v", got)
			}
		})
	}
}

// TestWrappedChildIsBusy: one that does one thing at a time is not taken for
// dead while it does it.
func TestWrappedChildIsBusy(t *testing.T) {
	c, pidFile := wrapping(t, "", 10)
	f := start(t, c, quick)
	f.lists("hi", "slow", "stop")
	if got := f.do(f.callModern("slow", `{}`)); got.text() != "at last" {
		t.Errorf("answers %s", got.body)
	}
	if n := starts(t, pidFile); n != 1 {
		t.Errorf("%d children were started", n)
	}
}
