// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpprobe_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime/pprof"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/mcpprobe/fakemcp"
)

const (
	// quick is a timeout for probes that are meant to run into it, ample one
	// for all others.
	quick = time.Second
	ample = 20 * time.Second
	// settle is how long connections and goroutines may take to go away.
	settle = 30 * time.Second
)

// TestMain fails when a goroutine of the probe outlives the tests.
func TestMain(m *testing.M) {
	code := m.Run()
	if leaked := leakedGoroutines(); code == 0 && leaked != "" {
		fmt.Fprintf(os.Stderr, "goroutines left behind:\n%s\n", leaked)
		code = 1
	}
	os.Exit(code)
}

// leakedGoroutines waits for the goroutines of the probe and of its
// connections to end, and gives the stacks of those that do not.
func leakedGoroutines() (leaked string) {
	for end := time.Now().Add(settle); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		leaked = ""
		var buf bytes.Buffer
		if err := pprof.Lookup("goroutine").WriteTo(&buf, 1); err != nil {
			return err.Error()
		}
		for stack := range strings.SplitSeq(buf.String(), "\n\n") {
			ours := strings.Contains(stack, "espalier/internal/mcpprobe.") || strings.Contains(stack, "net/http.(*persistConn)")
			if ours && !strings.Contains(stack, "TestMain") {
				leaked += stack + "\n\n"
			}
		}
		if leaked == "" {
			return ""
		}
	}
	return leaked
}

// bench is a server under probe.
type bench struct {
	t     *testing.T
	fake  *fakemcp.Server
	http  *httptest.Server
	conns atomic.Int64
	// bounds of the client; options of the target.
	bounds mcpprobe.Bounds
	target mcpprobe.Target
	// get: the transport begins with a GET.
	get bool
}

// newBench serves fake on loopback.
func newBench(t *testing.T, fake *fakemcp.Server) *bench {
	t.Helper()
	return newBenchOf(t, fake, fake)
}

// newBenchOf serves handler, behind which fake stands.
func newBenchOf(t *testing.T, fake *fakemcp.Server, handler http.Handler) *bench {
	t.Helper()
	b := &bench{t: t, fake: fake, bounds: mcpprobe.DefaultBounds()}
	b.bounds.EndTime = 300 * time.Millisecond
	b.http = httptest.NewUnstartedServer(handler)
	b.http.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			b.conns.Add(1)
		case http.StateClosed, http.StateHijacked:
			b.conns.Add(-1)
		}
	}
	b.http.Config.ErrorLog = nil
	b.http.Start()
	t.Cleanup(func() {
		fake.Release()
		b.http.CloseClientConnections()
		b.http.Close()
	})
	b.target = mcpprobe.Target{URL: b.http.URL + "/mcp", Transport: mcpprobe.TransportStreamableHTTP, Timeout: ample}
	return b
}

// probe makes one probe and checks what must hold after every one: no GET or
// HEAD, no connection left, nothing in the report that is not meant to be.
func (b *bench) probe() mcpprobe.Report {
	b.t.Helper()
	return b.probeWith(context.Background())
}

func (b *bench) probeWith(ctx context.Context) mcpprobe.Report {
	b.t.Helper()
	client := mcpprobe.New(mcpprobe.Options{
		Policy: mcpprobe.Policy{AllowLoopback: true}, Bounds: b.bounds, Version: "1.2.3",
	})
	report := client.Probe(ctx, b.target)
	client.Close()
	for _, r := range b.fake.Requests() {
		if r.HTTP == http.MethodGet && !b.get || r.HTTP == http.MethodHead {
			b.t.Errorf("%s sent to the MCP path", r.HTTP)
		}
		if ids, ok := r.Header["Mcp-Session-Id"]; ok && ids[0] == "" {
			b.t.Error("empty session header sent")
		}
	}
	b.noConnections()
	checkReport(b.t, report)
	return report
}

func (b *bench) noConnections() {
	b.t.Helper()
	for end := time.Now().Add(settle); b.conns.Load() != 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			b.t.Fatalf("%d connections left open after the probe", b.conns.Load())
		}
	}
}

// foreign is what fakes say where a peer's words would be; it must never
// come out but in Diagnostics.
const foreign = "FOREIGN"

// checkReport holds for every report: known outcome, nothing foreign, a
// message within its bounds, stable facts.
func checkReport(t *testing.T, r mcpprobe.Report) {
	t.Helper()
	known := false
	for _, o := range mcpprobe.Outcomes {
		known = known || o == r.Outcome
	}
	if !known {
		t.Errorf("outcome %q is not declared", r.Outcome)
	}
	message := mcpprobe.Message(&r, mcpprobe.Where{Pod: "pod-1", Namespace: "team-a"})
	if message == "" || len(message) > mcpprobe.MaxMessage || strings.ContainsAny(message, "\n\r") {
		t.Errorf("message %q: empty, too long or with line breaks", message)
	}
	if strings.Contains(message, "127.0.0.1") || strings.Contains(message, foreign) {
		t.Errorf("message %q has an address or foreign words", message)
	}
	public := r
	public.Diagnostics = mcpprobe.Diagnostics{}
	encoded, err := json.Marshal(public)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(encoded, []byte(foreign)) {
		t.Errorf("the report has foreign words: %s", encoded)
	}
	if r.Facts() != public.Facts() {
		t.Error("diagnostics are no facts")
	}
}

// result is what most cases look at.
type result struct {
	Outcome mcpprobe.Outcome
	Step    mcpprobe.Step
	Flaw    mcpprobe.Flaw
	Tools   string // "a,b"; "?" unknown, "-" not declared
}

func resultOf(r mcpprobe.Report) result {
	got := result{Outcome: r.Outcome, Step: r.Step, Flaw: r.Flaw}
	switch r.Tools.State {
	case mcpprobe.ToolsUnknown:
		got.Tools = "?"
	case mcpprobe.ToolsNotDeclared:
		got.Tools = "-"
	default:
		got.Tools = strings.Join(toolNames(r), ",")
	}
	return got
}

func toolNames(r mcpprobe.Report) []string {
	names := []string{}
	for _, tool := range r.Tools.Tools {
		names = append(names, tool.Name)
	}
	return names
}

// proved is the result of a healthy base server.
var proved = result{Outcome: mcpprobe.Proved, Step: mcpprobe.StepDone, Tools: "alpha"}

func failed(outcome mcpprobe.Outcome, step mcpprobe.Step) result {
	return result{Outcome: outcome, Step: step, Tools: "?"}
}

func (r result) because(flaw mcpprobe.Flaw) result {
	r.Flaw = flaw
	return r
}

func wantResult(t *testing.T, r mcpprobe.Report, want result) {
	t.Helper()
	if diff := cmp.Diff(want, resultOf(r)); diff != "" {
		t.Errorf("result (-want +got):\n%s\nreport: %+v", diff, r)
	}
}

func wantMessage(t *testing.T, r mcpprobe.Report, parts ...string) {
	t.Helper()
	message := mcpprobe.Message(&r, mcpprobe.Where{})
	for _, part := range parts {
		if !strings.Contains(message, part) {
			t.Errorf("message %q lacks %q", message, part)
		}
	}
}

func warned(r mcpprobe.Report, code mcpprobe.WarningCode) (names []string) {
	for _, w := range r.Warnings {
		if w.Code == code {
			names = append(names, w.Name)
		}
	}
	return names
}
