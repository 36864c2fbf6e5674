// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plugintest runs commands of the plugin in tests.
package plugintest

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/espalier-dev/espalier/internal/plugin/env"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Run runs the command that create gives, and returns what it printed and its
// exit code.
func Run(t *testing.T, create func(*env.Env) *cobra.Command, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	streams, _, out, errOut := genericiooptions.NewTestIOStreams()
	cmd := create(env.New(streams))
	cmd.SetArgs(args)
	cmd.SetErr(errOut)
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	code = env.Finish(errOut, cmd.ExecuteContext(t.Context()))
	return out.String(), errOut.String(), code
}

// Golden compares got with a file in testdata.
func Golden(t *testing.T, file, got string) {
	t.Helper()
	path := filepath.Join("testdata", file)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got), written anew with -update:\n%s", path, diff)
	}
}
