// SPDX-License-Identifier: Apache-2.0

// Command cluster runs a real Kubernetes cluster on this machine without Docker: it
// builds the programs from pinned Go modules, once, and runs them as plain processes.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/espalier-dev/espalier/hack/cluster/internal/cluster"
)

const usage = `usage: cluster COMMAND

  up [--network-policies] [--metrics]
                           start the cluster; of one that runs, only add what it lacks:
                           kube-router, which enforces network policies, metrics-server
  down                     stop it and leave nothing of it
  status                   say what runs
  load TARBALL...          make images available to pods
  kubeconfig               print the path of the administrator's kubeconfig
  assets                   print the folder with etcd, kube-apiserver, kubectl
  build                    build all programs, start nothing
  logs COMPONENT           print a component's log
  COMPONENT stop           kill a component as a crash would
  COMPONENT start          start it again as it was
  COMPONENT restart        both

components: etcd apiserver controller-manager scheduler containerd kubelet kube-proxy kube-router
`

var errUsage = errors.New("no such command; see: cluster help")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := dispatch(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

func dispatch(ctx context.Context, args []string) error {
	if len(args) == 0 || args[0] == "help" || args[0] == "-h" || args[0] == "--help" {
		fmt.Print(usage)
		return nil
	}
	root, err := findRoot()
	if err != nil {
		return err
	}
	c, err := cluster.New(root)
	if err != nil {
		return err
	}
	return command(ctx, c, args[0], args[1:])
}

func command(ctx context.Context, c *cluster.Cluster, name string, args []string) error {
	switch {
	case name == "up":
		return up(ctx, c, args)
	case name == "load" && len(args) > 0:
		return c.Load(ctx, args...)
	case name == "logs" && len(args) == 1:
		return c.Logs(os.Stdout, args[0])
	case len(args) == 1:
		return component(ctx, c, name, args[0])
	case len(args) > 0:
		return errUsage
	}
	return simple(ctx, c, name)
}

func up(ctx context.Context, c *cluster.Cluster, args []string) error {
	for _, arg := range args {
		switch arg {
		case "--network-policies":
			c.NetworkPolicies = true
		case "--metrics":
			c.Metrics = true
		default:
			return errUsage
		}
	}
	return c.Up(ctx)
}

// simple runs a command that has no arguments.
func simple(ctx context.Context, c *cluster.Cluster, name string) error {
	switch name {
	case "down":
		return c.Down(ctx)
	case "build":
		return c.Build(ctx)
	case "status":
		return c.Status(ctx, os.Stdout)
	case "kubeconfig":
		fmt.Println(c.Kubeconfig())
		return nil
	case "assets":
		dir, err := c.Assets(ctx)
		if err == nil {
			fmt.Println(dir)
		}
		return err
	}
	return errUsage
}

func component(ctx context.Context, c *cluster.Cluster, name, action string) error {
	switch action {
	case "stop":
		return c.StopComponent(name)
	case "start":
		return c.StartComponent(ctx, name)
	case "restart":
		if err := c.StopComponent(name); err != nil {
			return err
		}
		return c.StartComponent(ctx, name)
	}
	return errUsage
}
