// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Command dataplane measures what a call costs: the processor time of the
// server per call and how many calls it answers in a second, with one
// connection and with several, of the shared server beside others in one run.
// Each subject is a process of its own; the client, which sends prepared bytes
// and is the same for all, is this one.
//
//	floor               net/http that decodes JSON and encodes it again
//	sdk-*               a minimal server of the Go SDK
//	expression-*        the shared server, a tool that is an expression
//	http, reverse-proxy a tool that calls a backend, and httputil.ReverseProxy
//	                    before the same one
//	stdio-*, mcp-proxy-*, supergateway
//	                    the shared server and two bridges of npm with the same
//	                    child
//	catalog             10,000 tools: loading, reloading, memory
//
// hack/bench runs it. It prints lines "BENCH dataplane/... value unit".
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// Children are killed when the thread that started them ends. This keeps the
// main goroutine, which starts them all, on the main thread.
func init() { runtime.LockOSThread() }

type options struct {
	// server is the binary of the shared server.
	server string
	// node and modules are those of the bridges; without them they are left out.
	node, modules string
	// window is how long one measurement takes, rounds how many are taken of
	// each subject, in turns.
	window      time.Duration
	rounds      int
	connections []int
	only        string
}

func main() {
	if len(os.Args) > 2 && os.Args[1] == roleArgument {
		play(os.Args[2], os.Args[3:])
		return
	}
	o := options{connections: []int{1, 16}}
	flag.StringVar(&o.server, "server", "bin/server", "binary of the shared server")
	flag.StringVar(&o.node, "node", "", "Node.js, for the bridges")
	flag.StringVar(&o.modules, "modules", "", "node_modules with the bridges")
	flag.DurationVar(&o.window, "window", 2*time.Second, "how long one measurement takes")
	flag.IntVar(&o.rounds, "rounds", 3, "how many measurements of each subject; their median counts")
	flag.StringVar(&o.only, "only", "", "only subjects whose name begins so")
	flag.Func("connections", "comma-separated numbers of connections (default 1,16)", func(s string) (err error) {
		o.connections, err = numbers(s)
		return err
	})
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "dataplane:", err)
		os.Exit(1)
	}
}

func numbers(s string) ([]int, error) {
	var out []int
	for word := range strings.SplitSeq(s, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%q is no number of connections", word)
		}
		out = append(out, n)
	}
	return out, nil
}

func run(o options) error {
	dir, err := os.MkdirTemp("", "dataplane-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if o.server, err = filepath.Abs(o.server); err != nil {
		return err
	}
	s := &stage{options: o, dir: dir}
	defer s.close()
	all, err := s.subjects()
	if err != nil {
		return err
	}
	var failures []error
	figures := map[key]figure{}
	for _, group := range groups(all, o.only) {
		if err := s.measure(group, figures); err != nil {
			failures = append(failures, err)
		}
	}
	tell(all, o.connections, figures)
	if strings.HasPrefix("catalog", o.only) {
		failures = append(failures, s.largeCatalog())
	}
	return errors.Join(failures...)
}
