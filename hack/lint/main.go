// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Lint is golangci-lint with kube-api-linter linked in. "golangci-lint custom"
// would clone repositories to build the same.
package main

import (
	"os"
	"runtime/debug"

	"github.com/golangci/golangci-lint/v2/pkg/commands"
	_ "sigs.k8s.io/kube-api-linter" // Registers the linter "kubeapilinter".
)

func main() {
	if err := commands.Execute(buildInfo()); err != nil {
		os.Exit(3) // The error is already printed.
	}
}

// buildInfo names the version of golangci-lint that is linked in.
func buildInfo() commands.BuildInfo {
	info := commands.BuildInfo{Version: "unknown", Commit: "unknown", Date: "unknown"}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return info
	}
	info.GoVersion = build.GoVersion
	for _, module := range build.Deps {
		if module.Path == "github.com/golangci/golangci-lint/v2" {
			info.Version = module.Version
		}
	}
	return info
}
