// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Command scale measures what the operator costs for a number of MCPServers:
// the real operator with its real prober, on a real API server with the
// controllers that make pods of Deployments. The pods are simulated: each gets
// an address of a range that is local to this machine, and one MCP server in
// this process answers for all of them.
//
//	hack/scale -fleets=100x2 -rest=30s
//
// It needs root and Linux, for the route, and KUBEBUILDER_ASSETS, which
// hack/scale sets. It prints a table and lines "BENCH scale/... value unit",
// and fails when the operator writes at rest or after a restart.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

// fleet is one set-up.
type fleet struct{ servers, replicas int }

func (f fleet) String() string { return fmt.Sprintf("%dx%d", f.servers, f.replicas) }

func (f fleet) pods() int { return f.servers * f.replicas }

type options struct {
	fleets []fleet
	// rest is how long the fleet is watched at rest, and after a restart.
	rest time.Duration
	// profiles is a folder for CPU and heap profiles of the operator.
	profiles string
}

// Children are killed when the thread that started them ends. This keeps the
// main goroutine, which starts them all, on the main thread.
func init() { runtime.LockOSThread() }

func main() {
	o := options{fleets: []fleet{{100, 2}}}
	flag.Func("fleets", "comma-separated SERVERSxREPLICAS (default 100x2)", func(s string) error {
		var err error
		o.fleets, err = parseFleets(s)
		return err
	})
	flag.DurationVar(&o.rest, "rest", 2*time.Minute, "how long to watch the fleet at rest")
	flag.StringVar(&o.profiles, "profiles", "", "folder for profiles of the operator; empty for none")
	flag.Parse()
	ctrl.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1) //nolint:gocritic // Nothing is left to be stopped.
	}
}

func parseFleets(s string) ([]fleet, error) {
	var out []fleet
	for _, part := range strings.Split(s, ",") {
		servers, replicas, _ := strings.Cut(part, "x")
		n, err := strconv.Atoi(servers)
		m, err2 := strconv.Atoi(replicas)
		f := fleet{n, m}
		if err := errors.Join(err, err2); err != nil {
			return nil, err
		}
		if n < 1 || m < 1 || f.pods() > maxPods {
			return nil, fmt.Errorf("%s: at least one pod and at most %d", part, maxPods)
		}
		out = append(out, f)
	}
	return out, nil
}

func run(ctx context.Context, o options) (err error) {
	dir, err := os.MkdirTemp("", "espalier-scale-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	binary, err := buildOperator(ctx, dir)
	if err != nil {
		return err
	}
	release, err := takeNetwork(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	var all []*figures
	for _, f := range o.fleets {
		figures, err := measure(ctx, o, f, dir, binary)
		if figures != nil {
			all = append(all, figures)
		}
		if err != nil {
			// What was measured until then is worth reading.
			return errors.Join(fmt.Errorf("%s: %w", f, err), report(os.Stdout, all))
		}
	}
	return report(os.Stdout, all)
}
