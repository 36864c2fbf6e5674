// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
)

// Bounds of the diagnostics, in lines of each command's output.
const (
	logLines      = "80"
	maxLines      = 250
	diagnoseLimit = time.Minute
)

// Diagnose prints what a person would look at first: the operator's log, our
// objects and the pods of the spec's namespaces, all of it bounded.
func (c *Cluster) Diagnose(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, diagnoseLimit)
	defer cancel()
	c.tell(ctx, "--namespace", OperatorNamespace, "get", "pods,leases")
	for _, n := range open.all() {
		c.tell(ctx, "--namespace", n.Name, "get", "mcpservers,mcptools,deployments,replicasets,pods,services,configmaps", "--output", "wide")
		c.tell(ctx, "--namespace", n.Name, "describe", "mcpservers,mcptools")
		c.tell(ctx, "--namespace", n.Name, "get", "events", "--sort-by=.lastTimestamp")
		c.tell(ctx, "--namespace", n.Name, "logs", "--selector=mcp.espalier.dev/server", "--all-containers", "--prefix", "--tail="+logLines, "--max-log-requests=20")
	}
	c.tell(ctx, "--namespace", OperatorNamespace, "logs", "--selector=control-plane=controller-manager", "--tail=200", "--prefix")
}

func (c *Cluster) tell(ctx context.Context, args ...string) {
	out, err := c.kubectl(ctx, "", args...)
	if err != nil && out == "" {
		out = err.Error()
	}
	lines := strings.Split(out, "\n")
	if len(lines) > maxLines {
		omitted := len(lines) - maxLines
		lines = append(lines[:maxLines/2], append([]string{fmt.Sprintf("... %d lines omitted ...", omitted)}, lines[len(lines)-maxLines/2:]...)...)
	}
	fmt.Fprintf(GinkgoWriter, "\n$ kubectl %s\n%s\n", strings.Join(args, " "), strings.Join(lines, "\n"))
}
