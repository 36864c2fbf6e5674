// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"

	"github.com/espalier-dev/espalier/hack/images/internal/node"
)

func runNode(ctx context.Context, args []string) error {
	var packages list
	var spec node.Spec
	flags := flag.NewFlagSet("node", flag.ContinueOnError)
	flags.Var(&packages, "package", "npm package, as NAME@VERSION")
	flags.StringVar(&spec.Command, "command", "", "which of the first package's commands to run")
	flags.StringVar(&spec.Tag, "tag", "", "the image's name")
	out := flags.String("o", "", "the tarball to write")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if len(packages) == 0 || spec.Tag == "" || *out == "" {
		return errors.New("node wants --package, --tag and -o")
	}
	spec.Packages = packages
	return node.Build(ctx, spec, *out)
}
