// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Command plugin builds kubectl-mcp for each platform, packs it into archives
// with their checksums, and writes the manifest by which krew, the package
// manager of kubectl plugins, installs it. The same sources and version give the
// same bytes. "make plugin" runs it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

const (
	program = "kubectl-mcp"
	module  = "github.com/espalier-dev/espalier"
)

// release is what is built.
type release struct {
	version   string
	platforms []string // OS/ARCH
	out       string
	// url that archives are downloaded from; VERSION in it is the version.
	url string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	var r release
	var platforms string
	flag.StringVar(&r.version, "version", "dev", "version that the plugin tells")
	flag.StringVar(&platforms, "platforms", "", "OS/ARCH, with blanks between")
	flag.StringVar(&r.out, "out", filepath.Join("bin", "plugin"), "folder to write to")
	flag.StringVar(&r.url, "url", "https://"+module+"/releases/download/VERSION", "where the archives will lie")
	flag.Parse()
	r.platforms = strings.Fields(platforms)
	if err := r.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "plugin:", err)
		os.Exit(1)
	}
}

func (r *release) run(ctx context.Context) error {
	if len(r.platforms) == 0 {
		return fmt.Errorf("-platforms names none")
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	licence, err := os.ReadFile("LICENSE")
	if err != nil {
		return err
	}
	var archives []archive
	for _, platform := range slices.Sorted(slices.Values(r.platforms)) {
		binary, err := r.build(ctx, platform)
		if err != nil {
			return err
		}
		a, err := pack(platform, binary, licence)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(r.out, a.name), a.content, 0o644); err != nil {
			return err
		}
		fmt.Println(filepath.Join(r.out, a.name))
		archives = append(archives, a)
	}
	if err := os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(sums(archives)), 0o644); err != nil {
		return err
	}
	manifest, err := krew(r.version, r.url, archives)
	if err != nil {
		return err
	}
	fmt.Println(filepath.Join(r.out, "mcp.yaml"))
	return os.WriteFile(filepath.Join(r.out, "mcp.yaml"), manifest, 0o644)
}

// build gives the bytes of the program for a platform.
func (r *release) build(ctx context.Context, platform string) ([]byte, error) {
	system, arch, ok := strings.Cut(platform, "/")
	if !ok {
		return nil, fmt.Errorf("%q is not OS/ARCH", platform)
	}
	folder, err := os.MkdirTemp("", "plugin-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	file := filepath.Join(folder, program)
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false",
		"-ldflags", "-s -w -X "+module+"/internal/version.Version="+r.version, "-o", file, "./cmd/"+program)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+arch)
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("go build for %s: %w", platform, err)
	}
	return os.ReadFile(file)
}
