// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// RestartAPIServer restarts the API server of the local cluster. The spec is
// skipped where the tests run on another one.
func RestartAPIServer(ctx context.Context) {
	GinkgoHelper()
	if _, err := os.Stat("/var/lib/espalier-cluster"); err != nil {
		Skip("no local cluster: its API server cannot be restarted")
	}
	cmd := exec.CommandContext(ctx, "go", "run", "-C", filepath.Join("..", "..", "hack", "cluster"), ".", "apiserver", "restart")
	out, err := cmd.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
}
