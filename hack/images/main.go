// SPDX-License-Identifier: Apache-2.0

// Command images makes, and pushes, container images without Docker: static binaries on
// an empty base, and servers from npm on the machine's Node.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/espalier-dev/espalier/hack/images/internal/push"
)

const usage = `usage: images COMMAND

  build --binary [OS/ARCH=]PATH... --entrypoint /PATH --tag NAME -o FILE.tar
        [--add SOURCE[:/PATH]]... [--label KEY=VALUE]...
      an image of a static binary; several --binary make an image for each platform
  node --package NAME@VERSION... --tag NAME -o FILE.tar [--command NAME]
      an image that runs a command of the first npm package
  push FILE.tar REGISTRY/NAME:TAG
      send it to a registry, with the credentials of Docker's configuration

build and push print a digest. User 65532, dates of 1970.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := dispatch(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

func dispatch(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New(usage)
	}
	switch args[0] {
	case "build":
		return runBuild(args[1:])
	case "node":
		return runNode(ctx, args[1:])
	case "push":
		return runPush(ctx, args[1:])
	case "help", "-h", "--help":
		fmt.Print(usage)
		return nil
	}
	return fmt.Errorf("no command %q; see: images help", args[0])
}

func runPush(ctx context.Context, args []string) error {
	if len(args) != 2 {
		return errors.New("push wants a tarball and where to push it")
	}
	digest, err := push.Push(ctx, args[0], args[1])
	if err == nil {
		fmt.Println(digest)
	}
	return err
}
