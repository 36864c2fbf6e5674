// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/mcpserver/upstream/process"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// TestMain makes this program the child of its own tests.
func TestMain(m *testing.M) {
	if mode := os.Getenv("CHILD_MODE"); mode != "" {
		beChild(mode)
		return
	}
	os.Exit(m.Run())
}

// beChild is an MCP server over stdin and stdout that does what mode says.
func beChild(mode string) {
	switch mode {
	case "exit":
		_, _ = os.Stderr.WriteString("cannot find the database\n")
		os.Exit(3)
	case "hang":
		time.Sleep(time.Hour)
	case "deaf":
		signal.Ignore(syscall.SIGTERM)
		time.Sleep(time.Hour)
	case "grandchild", "emigrant":
		grand := exec.Command("sleep", "3600") // It is to outlive everybody.
		grand.SysProcAttr = &syscall.SysProcAttr{Setsid: mode == "emigrant"}
		grand.Stdout, grand.Stderr = os.Stdout, os.Stderr
		if err := grand.Start(); err != nil {
			panic(err)
		}
		_ = os.WriteFile(os.Getenv("PID_FILE"), fmt.Appendf(nil, "%d", grand.Process.Pid), 0o600)
	case "slow":
		time.Sleep(4 * time.Second)
	case "noise":
		fmt.Print("🚀 Server v1.0 starting\n\n{\"level\":\"info\",\"msg\":\"starting\"}\n[1,2]\nhalf a ")
		time.Sleep(200 * time.Millisecond)
		fmt.Print("line\n\x1b[32mgreen\x1b[0m\r\n{\"jsonrpc\":\"1.0\",\"id\":1,\"result\":{}}\n")
	case "flood":
		go func() {
			for line := strings.Repeat("e", 10<<10) + "\n"; ; {
				_, _ = os.Stderr.WriteString(line)
			}
		}()
	}
	lines := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		answerAs(mode, line)
	}
}

func answerAs(mode string, line []byte) {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"params"`
	}
	_ = json.Unmarshal(line, &m)
	if m.ID == nil {
		return
	}
	if mode == "noise" {
		fmt.Print("processing request\r\n")
	}
	say := func(result string) { fmt.Printf(`{"result":%s,"jsonrpc":"2.0","id":%s}`+"\r\n", result, m.ID) }
	switch m.Method {
	case "server/discover":
		switch mode {
		case "modern":
			say(`{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"resultType":"complete"}`)
		case "dies-of-discover":
			os.Exit(1)
		case "silent":
		default:
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`+"\n", m.ID)
		}
	case "initialize":
		say(`{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"c","version":"1"}}`)
	case "tools/list":
		say(`{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}`)
	case "tools/call":
		callAs(m.Params.Name, m.ID, m.Params.Arguments, say)
	default:
		say("{}")
	}
}

func callAs(name string, id, args json.RawMessage, say func(string)) {
	content := func(text string) {
		encoded, _ := json.Marshal(text)
		say(`{"content":[{"type":"text","text":` + string(encoded) + `}]}`)
	}
	switch name {
	case "big":
		var a struct{ Bytes int }
		_ = json.Unmarshal(args, &a)
		out := bufio.NewWriter(os.Stdout)
		_, _ = out.WriteString(`{"result":{"content":[{"type":"text","text":"`)
		for chunk := strings.Repeat("x", 1000); a.Bytes > 0; a.Bytes -= len(chunk) {
			_, _ = out.WriteString(chunk)
		}
		_, _ = fmt.Fprintf(out, `"}]},"jsonrpc":"2.0","id":%s}`+"\n", id)
		_ = out.Flush()
	case "babble":
		for range 2 << 10 {
			_, _ = os.Stdout.WriteString(strings.Repeat("bla ", 2<<10))
		}
		fmt.Println()
		content("after it")
	case "env":
		content(strings.Join(os.Environ(), "\n"))
	case "die":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "leave":
		os.Exit(7)
	case "sleep":
		time.Sleep(time.Hour)
	default:
		content(string(args))
	}
}

// captured is a log that tests can read.
type captured struct {
	mu   sync.Mutex
	text strings.Builder
}

func (c *captured) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.Write(p)
}

func (c *captured) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.String()
}

func childOptions(mode string, env ...string) (Options, *captured) {
	log := &captured{}
	return Options{Version: "test", MaxBytes: 10 << 20, Process: &process.Options{
		Command: []string{os.Args[0]}, Env: append([]string{"CHILD_MODE=" + mode, "PATH=" + os.Getenv("PATH")}, env...), MaxStderr: 64 << 10,
		Log: slog.New(slog.NewJSONHandler(log, nil)),
	}}, log
}

func startChild(t *testing.T, o Options) (*Session, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	s, err := Connect(ctx, o)
	if err == nil {
		t.Cleanup(func() { s.Close(context.Background()) })
	}
	return s, err
}

func mustStart(t *testing.T, mode string) *Session {
	t.Helper()
	o, _ := childOptions(mode)
	s, err := startChild(t, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func say(s *Session, name, args string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	raw, err := s.Call(ctx, &Call{Tool: name, Args: []byte(args)})
	return string(raw), err
}

// TestChildEras: discover first, initialize where it is refused or not
// answered; the first valid answer decides.
func TestChildEras(t *testing.T) {
	for mode, version := range map[string]string{"legacy": "2025-06-18", "modern": "2026-07-28", "silent": "2025-06-18", "slow": "2025-06-18"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			s := mustStart(t, mode)
			if s.Version() != version {
				t.Errorf("speaks %s", s.Version())
			}
			list, err := s.Lists(t.Context())
			if err != nil || len(list.Tools) != 1 {
				t.Errorf("listed %v, %v", list, err)
			}
			if got, err := say(s, "echo", `{"a":1}`); err != nil || !strings.Contains(got, `{\"a\":1}`) {
				t.Errorf("answers %s, %v", got, err)
			}
			if err := s.Check(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestChildDiesOfDiscover(t *testing.T) {
	o, _ := childOptions("dies-of-discover")
	if _, err := startChild(t, o); ReasonOf(err) != ChildExited {
		t.Fatalf("got %v", err)
	}
	o.LegacyChild = true
	if _, err := startChild(t, o); err != nil {
		t.Error(err)
	}
}

// TestChildNoise is case B14: whatever is printed beside the messages is
// survived and logged as what it is.
func TestChildNoise(t *testing.T) {
	o, log := childOptions("noise")
	o.MaxBytes = 8 << 20
	s, err := startChild(t, o)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if got, err := say(s, "echo", `{"a":1}`); err != nil || !strings.Contains(got, `{\"a\":1}`) {
			t.Errorf("answers %s, %v", got, err)
		}
	}
	for _, size := range []int{200 << 10, 5 << 20} {
		got, err := say(s, "big", fmt.Sprintf(`{"Bytes":%d}`, size))
		if err != nil || len(got) < size {
			t.Errorf("%d bytes: got %d, %v", size, len(got), err)
		}
	}
	if got, err := say(s, "babble", `{}`); err != nil || !strings.Contains(got, "after it") {
		t.Errorf("noise without an end of line is taken for an answer: %s, %v", got, err)
	}
	slow := make(chan error, 1)
	go func() {
		_, err := say(s, "big", `{"Bytes":300000000}`)
		slow <- err
	}()
	if err := <-slow; ReasonOf(err) != TooLarge {
		t.Errorf("300 MB: %v", err)
	}
	if got, err := say(s, "echo", `{"b":2}`); err != nil || !strings.Contains(got, `{\"b\":2}`) {
		t.Errorf("after it: %s, %v", got, err)
	}
	for _, line := range []string{"🚀 Server v1.0 starting", "half a line", "green", `\"level\":\"info\"`, "processing request"} {
		if !strings.Contains(log.String(), line) || !strings.Contains(log.String(), `"stream":"stdout"`) {
			t.Errorf("the log lacks %q: %.2000s", line, log.String())
		}
	}
}

// TestChildFloodsStderr: it never waits for its log, and only the most recent
// bytes are kept.
func TestChildFloodsStderr(t *testing.T) {
	s := mustStart(t, "flood")
	for began := time.Now(); time.Since(began) < time.Second; {
		if _, err := say(s, "echo", `{}`); err != nil {
			t.Fatal(err)
		}
	}
	if kept, truncated := s.child.Stderr(); len(kept) != 64<<10 || !truncated {
		t.Errorf("%d bytes are kept, truncated %t", len(kept), truncated)
	}
}

func TestChildEnds(t *testing.T) {
	for name, want := range map[string]process.State{"die": {Signal: "KILL"}, "leave": {ExitCode: 7}} {
		s := mustStart(t, "legacy")
		if _, err := say(s, name, `{}`); ReasonOf(err) != ConnectionLost {
			t.Errorf("%s: %v", name, err)
		}
		<-s.Done()
		var known *Error
		if err := s.Lost(); ReasonOf(err) != ChildExited {
			t.Errorf("%s: %v", name, err)
		} else if known, _ = err.(*Error); *known.Child != want { //nolint:errorlint // It is never wrapped.
			t.Errorf("%s: %+v", name, known.Child)
		}
	}
	o, log := childOptions("exit")
	_, err := startChild(t, o)
	var known *Error
	if ReasonOf(err) != ChildExited {
		t.Fatalf("got %v", err)
	} else if known, _ = err.(*Error); known.Child == nil || known.Child.ExitCode != 3 { //nolint:errorlint // As above.
		t.Errorf("got %+v", known.Child)
	}
	if strings.Contains(err.Error(), "database") {
		t.Errorf("the error has the child's words: %v", err)
	}
	if !strings.Contains(log.String(), "cannot find the database") || !strings.Contains(log.String(), `"exitCode":3`) {
		t.Errorf("the log lacks them: %s", log.String())
	}
}

func TestChildHangs(t *testing.T) {
	o, _ := childOptions("hang")
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := Connect(ctx, o); ReasonOf(err) != Timeout {
		t.Errorf("got %v", err)
	}
}

func TestChildCannotStart(t *testing.T) {
	for _, command := range [][]string{{"no-such-program"}, {"/no/such/program"}, {"sh -c true"}} {
		o, _ := childOptions("legacy")
		o.Process.Command = command
		if _, err := startChild(t, o); ReasonOf(err) != StartFailed {
			t.Errorf("%v: %v", command, err)
		}
	}
}

// TestChildEnvironment holds what was named and nothing of this process's own.
func TestChildEnvironment(t *testing.T) {
	t.Setenv("ESPALIER_SECRET", "s3cr3t")
	t.Setenv("NAMED", "yes")
	o, _ := childOptions("legacy")
	o.Process.Env = append(process.Environment([]string{"NAMED", "NOT_SET"}), "CHILD_MODE=legacy")
	s, err := startChild(t, o)
	if err != nil {
		t.Fatal(err)
	}
	got, err := say(s, "env", `{}`)
	if err != nil || strings.Contains(got, "s3cr3t") || !strings.Contains(got, "NAMED=yes") || !strings.Contains(got, "PATH=") {
		t.Errorf("environment %s, %v", got, err)
	}
}

// TestChildLeavesNothing: a grandchild ends with its child, whether it stayed
// in the group or began a session of its own.
func TestChildLeavesNothing(t *testing.T) {
	for _, mode := range []string{"grandchild", "emigrant"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "pid")
			o, _ := childOptions(mode, "PID_FILE="+file)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			s, err := Connect(ctx, o)
			if err != nil {
				t.Fatal(err)
			}
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			pid := 0
			if _, err := fmt.Sscan(string(raw), &pid); err != nil {
				t.Fatal(err)
			}
			s.Close(ctx)
			for range 3000 {
				if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err != nil || strings.Contains(string(stat), ") Z ") {
					return
				}
				time.Sleep(10 * time.Millisecond)
			}
			t.Errorf("process %d is left", pid)
		})
	}
}

func TestChildThatDoesNotListenIsKilled(t *testing.T) {
	o, _ := childOptions("deaf")
	p, err := process.Start(*o.Process)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = bufio.NewReader(p.Stdout()).ReadByte() }()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	p.Close(ctx)
	if took := time.Since(began); took > 3*time.Second || p.State().Signal == "" {
		t.Errorf("%s, %+v", took, p.State())
	}
}

// TestOrphansAreReaped: what outlives its parent becomes ours and is taken in.
func TestOrphansAreReaped(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var reaping sync.WaitGroup
	reaping.Go(func() { process.Reap(ctx) })
	defer func() {
		cancel()
		reaping.Wait()
	}()
	time.Sleep(50 * time.Millisecond) // Until it is the parent of orphans.
	file := filepath.Join(t.TempDir(), "pid")
	p, err := process.Start(process.Options{
		Command: []string{"sh", "-c", "setsid sh -c 'echo $$ >" + file + "; sleep 0.3' & sleep 0.1"}, Env: []string{"PATH=" + os.Getenv("PATH")}, MaxStderr: 10,
	})
	if err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	p.Close(ctx)
	for range 3000 {
		if raw, err := os.ReadFile(file); err == nil && len(raw) > 0 {
			if _, err := os.Stat("/proc/" + strings.TrimSpace(string(raw))); err != nil {
				return
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("an orphan was not reaped")
}

func TestPinnedEra(t *testing.T) {
	o, _ := childOptions("legacy")
	o.Protocol = serverconfig.ProtocolModern
	if _, err := startChild(t, o); err == nil {
		t.Error("a legacy child was spoken to although Modern is pinned")
	}
	o, _ = childOptions("modern")
	o.Protocol = serverconfig.ProtocolLegacy
	if s, err := startChild(t, o); err != nil || s.Version() != "2025-06-18" {
		t.Errorf("%v", err)
	}
}
