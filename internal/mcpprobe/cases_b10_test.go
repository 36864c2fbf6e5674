// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpprobe_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/mcpprobe/fakemcp"
)

func contextWithCancel(t *testing.T) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	return ctx, cancel
}

func gzipped(t *testing.T, write func(w io.Writer)) string {
	t.Helper()
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	write(w)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.String()
}

// encoded answers tools/list with a content encoding.
func encoded(encoding, contentType string, body func(c *fakemcp.Call) string) *fakemcp.Server {
	return fakemcp.New().On(mcp.MethodToolsList, func(c *fakemcp.Call) {
		c.W.Header()["Content-Encoding"] = []string{encoding}
		c.Text(200, contentType, body(c))
	})
}

// Case B10 a to f: encodings, media types, byte-order mark.
func TestCaseB10Encodings(t *testing.T) {
	zipped := func(c *fakemcp.Call) string {
		return gzipped(t, func(w io.Writer) { fmt.Fprint(w, c.Response(alpha)) })
	}
	plain := func(c *fakemcp.Call) string { return c.Response(alpha) }
	refused := failed(mcpprobe.UnsupportedEncoding, mcpprobe.StepTools)
	for name, tc := range map[string]struct {
		fake     *fakemcp.Server
		want     result
		encoding string
	}{
		"a gzip":   {encoded("gzip", "application/json", zipped), proved, ""},
		"a X-GZIP": {encoded("X-GZIP", "application/json", zipped), proved, ""},
		"a gzip stream": {encoded("gzip", "text/event-stream", func(c *fakemcp.Call) string {
			return gzipped(t, func(w io.Writer) { fmt.Fprint(w, fakemcp.Data(c.Response(alpha))) })
		}), proved, ""},
		"a identity":     {encoded("identity", "application/json", plain), proved, ""},
		"a broken gzip":  {encoded("gzip", "application/json", plain), failed(mcpprobe.ListFailed, mcpprobe.StepTools).because(mcpprobe.FlawNotJSON), ""},
		"a half gzip":    {encoded("gzip", "application/json", func(c *fakemcp.Call) string { return zipped(c)[:20] }), failed(mcpprobe.ConnectionLost, mcpprobe.StepTools), ""},
		"a empty gzip":   {encoded("gzip", "application/json", func(*fakemcp.Call) string { return "" }), failed(mcpprobe.ListFailed, mcpprobe.StepTools).because(mcpprobe.FlawEmpty), ""},
		"b br":           {encoded("br", "application/json", plain), refused, "br"},
		"c zstd":         {encoded("zstd", "application/json", plain), refused, "zstd"},
		"several":        {encoded("gzip, gzip", "application/json", zipped), refused, "other"},
		"foreign":        {encoded(foreign, "application/json", plain), refused, "other"},
		"d case":         {encoded("", "Application/JSON; Charset=UTF-8", plain), proved, ""},
		"d bad param":    {encoded("", "application/json; charset", plain), proved, ""},
		"e stream":       {encoded("", "text/event-stream;charset=utf-8", func(c *fakemcp.Call) string { return fakemcp.Data(c.Response(alpha)) }), proved, ""},
		"f BOM":          {encoded("", "application/json", func(c *fakemcp.Call) string { return "\xef\xbb\xbf" + c.Response(alpha) }), proved, ""},
		"UTF-16 is none": {encoded("", "application/json; charset=utf-16", func(*fakemcp.Call) string { return "\xff\xfe{\x00}\x00" }), failed(mcpprobe.ListFailed, mcpprobe.StepTools).because(mcpprobe.FlawNotJSON), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newBench(t, tc.fake).probe()
			wantResult(t, r, tc.want)
			if r.Encoding != tc.encoding {
				t.Errorf("encoding %q, want %q", r.Encoding, tc.encoding)
			}
			if tc.encoding != "" {
				wantMessage(t, r, "compressed with "+tc.encoding)
			}
			if got := tc.fake.Requests()[0].Header.Get("Accept-Encoding"); got != "identity" {
				t.Errorf("Accept-Encoding %q", got)
			}
		})
	}
}

// Case B10 g to i: bodies without bound. The limits are the product's; the
// memory is measured.
func TestCaseB10Oversized(t *testing.T) {
	if testing.Short() {
		t.Skip("moves 100 MiB")
	}
	tool := `{"name":"t","inputSchema":{"type":"object","description":"` + strings.Repeat("x", 1<<20) + `"}},`
	for name, h := range map[string]fakemcp.Handler{
		"g a valid list of 80 MiB": func(c *fakemcp.Call) {
			c.W.Header().Set("Content-Type", "application/json")
			c.Send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"tools":[`, c.ID))
			for i := 0; i < 80 && c.R.Context().Err() == nil; i++ {
				c.Send(tool)
			}
			c.Send(`{"name":"last"}]}}`)
		},
		"h an endless string": fakemcp.Modes["huge"][mcp.MethodToolsList],
		"h an endless event": func(c *fakemcp.Call) {
			for c.Stream("data: "); c.R.Context().Err() == nil; {
				c.Send(tool)
			}
		},
		"h endless small events": func(c *fakemcp.Call) {
			for c.Stream(); c.R.Context().Err() == nil; {
				c.Send(strings.Repeat(fakemcp.Data(`{"jsonrpc":"2.0","method":"x"}`), 1000))
			}
		},
		"i a gzip bomb": func(c *fakemcp.Call) {
			c.W.Header().Set("Content-Encoding", "gzip")
			c.W.Header().Set("Content-Type", "application/json")
			w := gzip.NewWriter(c.W)
			zeros := bytes.Repeat([]byte(" "), 1<<20)
			for i := 0; i < 1024 && c.R.Context().Err() == nil; i++ {
				if _, err := w.Write(zeros); err != nil {
					return
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, fakemcp.New().On(mcp.MethodToolsList, h))
			highest := watchMemory(t)
			r := b.probe()
			wantResult(t, r, failed(mcpprobe.ResponseTooLarge, mcpprobe.StepTools))
			if r.Limit != 10<<20 {
				t.Errorf("limit %d", r.Limit)
			}
			wantMessage(t, r, "larger than 10485760 bytes")
			if grown := highest(); grown > 100<<20 {
				t.Errorf("memory grew by %d MiB", grown>>20)
			}
		})
	}
}

// watchMemory gives by how much the heap grew at most since its call.
func watchMemory(t *testing.T) func() uint64 {
	t.Helper()
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	done, result := make(chan struct{}), make(chan uint64)
	go func() {
		highest := uint64(0)
		for {
			var now runtime.MemStats
			runtime.ReadMemStats(&now)
			if now.HeapInuse > before.HeapInuse {
				highest = max(highest, now.HeapInuse-before.HeapInuse)
			}
			select {
			case <-done:
				result <- highest
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	return func() uint64 { close(done); return <-result }
}

// Many answers are bounded together too, and so are headers.
func TestBounds(t *testing.T) {
	t.Run("all answers", func(t *testing.T) {
		n := 0
		b := newBench(t, fakemcp.New().On(mcp.MethodToolsList, func(c *fakemcp.Call) {
			n++
			c.Result(map[string]any{"tools": []any{fakemcp.Tool(fmt.Sprintf("t%d", n))}, "nextCursor": "c", "padding": strings.Repeat("x", 4000)})
		}))
		b.bounds.TotalBytes = 20000
		r := b.probe()
		if r.Outcome != mcpprobe.Proved || !r.Truncated || n > 6 {
			t.Errorf("%s after %d pages, truncated %v", r.Outcome, n, r.Truncated)
		}
	})
	t.Run("headers", func(t *testing.T) {
		b := newBench(t, fakemcp.New().On(mcp.MethodToolsList, func(c *fakemcp.Call) {
			c.W.Header().Set("X-Large", strings.Repeat("x", 200<<10))
			c.Result(alpha)
		}))
		wantResult(t, b.probe(), failed(mcpprobe.ResponseTooLarge, mcpprobe.StepTools))
	})
	t.Run("deep nesting", func(t *testing.T) {
		deep := strings.Repeat("[", 1<<20)
		wantResult(t, newBench(t, listing(deep)).probe(),
			failed(mcpprobe.ListFailed, mcpprobe.StepTools).because(mcpprobe.FlawNotJSON))
	})
	t.Run("very many tools", func(t *testing.T) {
		r := newBench(t, listing(strings.Repeat(`{"name":"x"},`, 200000)+`{"name":"y"}`)).probe()
		if r.Outcome != mcpprobe.Proved || !r.Truncated || r.Latency > ample/2 {
			t.Errorf("%s, truncated %v, after %s", r.Outcome, r.Truncated, r.Latency)
		}
	})
	t.Run("very long name", func(t *testing.T) {
		r := newBench(t, listing(string(fakemcp.Tool(strings.Repeat("a", 1<<19))), string(fakemcp.Tool(strings.Repeat("a", 1<<19+1))))).probe()
		if names := toolNames(r); len(names) != 2 || len(names[0]) != mcpprobe.MaxNameBytes {
			t.Errorf("names %q", names)
		}
	})
}

// Large answers take turns, so that many servers at once cannot fill the
// memory; small ones do not wait for them.
func TestHeavyProbesTakeTurns(t *testing.T) {
	fake := fakemcp.New().On(mcp.MethodToolsList, func(c *fakemcp.Call) {
		c.W.Header().Set("Content-Type", "application/json")
		c.Send(`{"jsonrpc":"2.0","id":1,"result":"` + strings.Repeat("x", 1<<20))
		c.Hang()
	})
	b := newBench(t, fake)
	bounds := b.bounds
	bounds.Heavy = 1
	client := mcpprobe.New(mcpprobe.Options{Policy: mcpprobe.Policy{AllowLoopback: true}, Bounds: bounds})
	defer client.Close()
	b.target.Timeout = 4 * quick
	reports := make(chan mcpprobe.Report)
	for range 2 {
		go func() { reports <- client.Probe(t.Context(), b.target) }()
	}
	small := newBench(t, fakemcp.New())
	wantResult(t, client.Probe(t.Context(), small.target), proved)
	for range 2 {
		wantResult(t, <-reports, failed(mcpprobe.Timeout, mcpprobe.StepTools))
	}
	// The slot is free again.
	b.fake.On(mcp.MethodToolsList, func(c *fakemcp.Call) {
		c.Result(map[string]any{"tools": alpha["tools"], "padding": strings.Repeat("x", 1<<20)})
	})
	wantResult(t, client.Probe(t.Context(), b.target), proved)
}
