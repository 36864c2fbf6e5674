// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"path/filepath"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/espalier-dev/espalier/hack/docs/page"
)

var update = flag.Bool("update", false, "write docs/operate.md anew")

// TestFlagsAreDocumented holds the table of docs/operate.md to the flags.
func TestFlagsAreDocumented(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "")
	fs := flag.NewFlagSet("manager", flag.ContinueOnError)
	newFlags(fs)
	config.RegisterFlags(fs)
	(&zap.Options{}).BindFlags(fs)
	current, err := page.CheckFlags(filepath.Join("..", "..", "docs", "operate.md"), "manager", fs, *update)
	if err != nil || !current {
		t.Errorf("docs/operate.md has not the flags of the manager (%v). Run: go test ./cmd/manager -run TestFlagsAreDocumented -update", err)
	}
}
