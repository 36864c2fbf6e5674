// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpserver_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/serverconfig"
)

const (
	largeCatalog = 10000
	// steady is how many of its tools each version has; of the rest, which
	// stand among them, each version has two thirds.
	steady = 8000
	// reloads of each replica while lists are read.
	reloads = 3
)

// steadyTool and fleetingTool are names that take turns in the order of lists.
func steadyTool(i int) string   { return fmt.Sprintf("tool_%05d", i) }
func fleetingTool(i int) string { return fmt.Sprintf("tool_%05d_fleeting", 2*i) }

// bare is a version of a catalog of largeCatalog tools that are there to be
// listed; those of large can be called, too.
func bare(version int) *serverconfig.Config {
	c := large(version)
	for i := range c.Tools {
		t := &c.Tools[i]
		t.Expression = nil
		t.Definition = json.RawMessage(fmt.Sprintf(`{"name":%q,"description":"It is in version %d of its catalog.","inputSchema":{"type":"object"}}`, t.Name, version))
	}
	return c
}

// large is a version of a catalog of largeCatalog tools.
func large(version int) *serverconfig.Config {
	c := config()
	c.Limits.MaxMessageBytes = 10 << 20
	add := func(name string) {
		c.Tools = append(c.Tools, serverconfig.Tool{
			Name: name, Source: "mcptool/" + name, Metadata: map[string]string{"category": "large"},
			Definition: json.RawMessage(fmt.Sprintf(`{"name":%q,"title":"The tool %s","description":"Looks up what is known of %s, of all that is in version %d of its catalog, and says so in a sentence.",`+
				`"inputSchema":{"type":"object","required":["id"],"properties":{"id":{"type":"string","minLength":1,"description":"Which one"},"limit":{"type":"integer","minimum":1,"maximum":%d}}},`+
				`"annotations":{"readOnlyHint":true}}`, name, name, name, version, 100+len(c.Tools))),
			Expression: &serverconfig.Result{Text: fmt.Sprintf("'%s knows ' + args.id + (has(args.limit) ? ' up to ' + string(args.limit) : '')", name)},
		})
	}
	for i := range steady {
		add(steadyTool(i))
	}
	for i := range (largeCatalog - steady) * 3 / 2 {
		if (i+version)%3 != 0 {
			add(fleetingTool(i))
		}
	}
	return c
}

// TestLargeCatalog: a list of 10,000 tools whose pages come from different
// replicas, while each of them reloads at its own time, has each tool that
// stays once, and none twice.
func TestLargeCatalog(t *testing.T) {
	first := bare(0)
	if len(first.Tools) != largeCatalog {
		t.Fatalf("%d tools", len(first.Tools))
	}
	replicas := []*fixture{startLarge(t, first), startLarge(t, first), startLarge(t, first)}
	done := make(chan struct{})
	var reloading sync.WaitGroup
	for i, replica := range replicas {
		reloading.Go(func() {
			for version := range reloads {
				// Each is at another version than its neighbours, most of the time.
				files, digest := cut(t, bare(version+i+1))
				replica.mount(files)
				replica.awaitLarge(digest)
			}
		})
	}
	go func() {
		reloading.Wait()
		close(done)
	}()
	sweeps, mixed := 0, 0
	for over := false; !over; sweeps++ {
		select {
		case <-done:
			over = true // The last one sees all at rest.
		default:
		}
		if sweep(t, replicas, sweeps) > 1 {
			mixed++
		}
	}
	t.Logf("%d sweeps over 3 replicas, %d of them saw several versions", sweeps, mixed)
	if mixed == 0 {
		t.Error("no sweep saw a reload")
	}
}

// sweep lists all, each page from another replica, and says how many versions
// it met.
func sweep(t *testing.T, replicas []*fixture, at int) int {
	t.Helper()
	cursor, last, stayed, versions := "", "", 0, map[string]bool{}
	for page := 0; ; page++ {
		params := ""
		if cursor != "" {
			params = fmt.Sprintf(`"cursor":%q`, cursor)
		}
		replica := replicas[(at+page)%len(replicas)]
		var answer struct {
			Result struct {
				Tools []struct {
					Name        string `json:"name"`
					Description string `json:"description"`
				} `json:"tools"`
				NextCursor string `json:"nextCursor"`
			} `json:"result"`
		}
		got := replica.do(replica.modern("tools/list", params))
		must(t, json.Unmarshal([]byte(got.body), &answer))
		for _, tool := range answer.Result.Tools {
			if tool.Name <= last {
				t.Fatalf("sweep %d, page %d: %s after %s", at, page, tool.Name, last)
			}
			last = tool.Name
			if tool.Name == steadyTool(stayed) {
				stayed++
			}
			_, version, _ := strings.Cut(tool.Description, "in version ")
			version, _, _ = strings.Cut(version, " ")
			versions[version] = true
		}
		if cursor = answer.Result.NextCursor; cursor == "" {
			break
		}
	}
	if stayed != steady {
		t.Fatalf("sweep %d: %s was skipped", at, steadyTool(stayed))
	}
	return len(versions)
}

// BenchmarkReloadOfALargeCatalog measures the processor time of one reload
// when one tool was edited, and when all are described anew, and the heap then,
// the next catalog of the benchmark included.
func BenchmarkReloadOfALargeCatalog(b *testing.B) {
	edited := large(0)
	edited.Tools[steady/2].Expression = &serverconfig.Result{Text: "'edited'"}
	for _, c := range []struct {
		name  string
		turns []*serverconfig.Config
	}{{"OneEdited", []*serverconfig.Config{edited, large(0)}}, {"AllAnew", []*serverconfig.Config{large(3), large(1)}}} {
		b.Run(c.name, func(b *testing.B) {
			f := startLarge(b, large(0))
			b.StopTimer()
			var used time.Duration
			for i := range b.N {
				files, digest := cut(b, c.turns[i%2])
				before := processorTime(b)
				b.StartTimer()
				f.mount(files)
				f.awaitLarge(digest)
				b.StopTimer()
				used += processorTime(b) - before
			}
			if got := f.do(f.callModern(steadyTool(7), `{"id":"x"}`)); got.text() != steadyTool(7)+" knows x" {
				b.Errorf("answers %s", got.body)
			}
			var memory runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&memory)
			b.ReportMetric(used.Seconds()/float64(b.N), "cpu-s/op")
			b.ReportMetric(float64(memory.HeapAlloc>>20), "heap-MiB")
		})
	}
}

func processorTime(t testing.TB) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	must(t, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// largePatience is how long a replica may take to load a large catalog for the
// first time, on a busy machine.
const largePatience = 2 * time.Minute

// startLarge is start, with more patience.
func startLarge(t testing.TB, c *serverconfig.Config) *fixture {
	t.Helper()
	f := start(t, nil)
	files, digest := cut(t, c)
	f.mount(files)
	f.awaitLarge(digest)
	return f
}

func (f *fixture) awaitLarge(digest string) {
	f.t.Helper()
	for began := time.Now(); f.server.Report().CatalogDigest != digest; time.Sleep(time.Millisecond) {
		if time.Since(began) > largePatience {
			f.t.Fatal("a large catalog was not loaded")
		}
	}
}

// cut gives the files of a catalog, and its digest.
func cut(t testing.TB, c *serverconfig.Config) (files map[string][]byte, digest string) {
	t.Helper()
	set, err := serverconfig.Cut(c)
	must(t, err)
	files = map[string][]byte{serverconfig.IndexKey: set.Index}
	for i, key := range set.Keys {
		files[key] = set.Parts[i]
	}
	return files, set.Digest
}
