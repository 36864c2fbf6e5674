// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package e2e proves the whole line on a real cluster: YAML in, running MCP
// servers out, the truth in status. "make test-e2e" runs it.
package e2e

import (
	"os"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/espalier-dev/espalier/test/e2e/harness"
)

// Labels of specs.
const (
	// slow specs take more than a minute, mostly of waiting.
	slow = "slow"
	// disruptive specs stop or restart the operator.
	disruptive = "disruptive"
	// soak specs take longer than CI has time for: make soak runs them.
	soak = "soak"
	// longer specs last longer in a soak.
	longer = "longer"
)

var cluster *harness.Cluster

func TestE2E(t *testing.T) {
	if os.Getenv(harness.KubeconfigVariable) == "" {
		t.Skip(harness.KubeconfigVariable + " is not set: run 'make test-e2e'")
	}
	RegisterFailHandler(Fail)
	RunSpecs(t, "Espalier end to end")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	SetDefaultEventuallyPollingInterval(harness.Poll)
	var err error
	cluster, err = harness.Connect(ctx)
	Expect(err).NotTo(HaveOccurred())
	cluster.AwaitOperator(ctx)
}, NodeTimeout(3*time.Minute))

var _ = JustAfterEach(func(ctx SpecContext) {
	if CurrentSpecReport().Failed() {
		cluster.Diagnose(ctx)
	}
})
