// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Command probe lets the conformance suite judge internal/mcpprobe as a
// client: it probes the URL that is its last argument, once, and tells the
// outcome.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/espalier-dev/espalier/internal/mcpprobe"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: probe URL")
		os.Exit(2)
	}
	client := mcpprobe.New(mcpprobe.Options{Policy: mcpprobe.Policy{AllowLoopback: true}})
	report := client.Probe(context.Background(), mcpprobe.Target{URL: os.Args[len(os.Args)-1]})
	// Sessions end behind a finished probe.
	client.Close()
	fmt.Printf("%s at step %s: %s %s\n", report.Outcome, report.Step, report.Era, report.ProtocolVersion)
	if report.Outcome != mcpprobe.Proved {
		fmt.Fprintln(os.Stderr, report.Diagnostics.PeerWords, report.Diagnostics.Cause)
		os.Exit(1)
	}
}
