// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Command runner runs the public MCP conformance suite and counts what passed:
//
//	runner -node NODE -suite INDEX.JS -out FOLDER [-probe COMMAND] [-plugin COMMAND]
//	  [-expected FILE] [-inspector INDEX.JS [-inspect URL]] [-local PORT,PORT...] NAME=URL...
//
// Each URL is judged by all that each revision requires of a server, -probe by
// what it requires of a client that connects and lists, -plugin by what it
// requires of one that calls as well. What is not scored is shown. The totals are written to FOLDER/totals. The exit status is 1
// when something failed that -expected does not name, or when something
// passed that it names.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

// revisions that are judged, newest first.
var revisions = []string{"2026-07-28", "2025-11-25"}

type options struct {
	suite     suite
	probe     string
	plugin    string
	inspector string
	// inspected is where the inspector looks, at the targets when empty.
	inspected string
	title     string
	// ports of this machine at which the targets are served.
	ports   []string
	targets []target
}

// target is one server.
type target struct{ name, url string }

func main() {
	var o options
	flag.StringVar(&o.suite.node, "node", "node", "Node.js, at least 22")
	flag.StringVar(&o.suite.script, "suite", "", "script of @modelcontextprotocol/conformance")
	flag.StringVar(&o.suite.out, "out", "", "folder for results")
	flag.StringVar(&o.suite.expected, "expected", "", "YAML file of scenarios that are expected to fail")
	flag.StringVar(&o.probe, "probe", "", "client to judge that only lists")
	flag.StringVar(&o.plugin, "plugin", "", "client to judge that lists and calls")
	flag.StringVar(&o.inspector, "inspector", "", "script of @modelcontextprotocol/inspector, to list and call by it too")
	flag.StringVar(&o.inspected, "inspect", "", "URL that the inspector lists and calls at; each server's by default")
	flag.StringVar(&o.title, "title", "CONFORMANCE", "first words of the totals")
	ports := flag.String("local", "", "ports of 127.0.0.1, one for each URL: the suite calls the servers there, each request over a new connection")
	flag.Parse()
	if *ports != "" {
		o.ports = strings.Split(*ports, ",")
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	err := o.parse(flag.Args())
	if err == nil {
		err = run(ctx, &o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "runner:", err)
		os.Exit(1)
	}
}

func (o *options) parse(args []string) error {
	if o.suite.script == "" || o.suite.out == "" {
		return errors.New("say -suite and -out")
	}
	for _, arg := range args {
		name, url, ok := strings.Cut(arg, "=")
		if !ok || name == "" || url == "" {
			return fmt.Errorf("%q is no NAME=URL", arg)
		}
		o.targets = append(o.targets, target{name, url})
	}
	if len(o.targets) == 0 && o.probe == "" && o.plugin == "" {
		return errors.New("name a server as NAME=URL, or a client")
	}
	if len(o.ports) > 0 && len(o.ports) != len(o.targets) {
		return errors.New("-local names as many ports as there are servers")
	}
	out, err := filepath.Abs(o.suite.out)
	if err != nil {
		return err
	}
	o.suite.out = out
	return os.MkdirAll(out, 0o755)
}

func run(ctx context.Context, o *options) error {
	for i, port := range o.ports {
		url, err := local(ctx, o.targets[i].url, port)
		if err != nil {
			return err
		}
		o.targets[i].url = url
	}
	for _, t := range o.targets {
		if err := await(ctx, t); err != nil {
			return err
		}
	}
	var totals []string
	bad := false
	add := func(name string, s score) {
		totals = append(totals, fmt.Sprintf("%s %s %d/%d", o.title, name, s.passed, s.total))
		bad = bad || !s.good()
	}
	for _, c := range []struct {
		title, command string
		scenarios      []scenario
	}{{"probe", o.probe, probeScenarios}, {"plugin", o.plugin, pluginScenarios}} {
		if c.command == "" {
			continue
		}
		s, err := o.suite.client(ctx, c.title, c.command, c.scenarios)
		if err != nil {
			return err
		}
		add(c.title, s)
	}
	for _, revision := range revisions {
		if len(o.targets) == 0 {
			break
		}
		var sum score
		for _, t := range o.targets {
			s, err := o.suite.server(ctx, t, revision)
			if err != nil {
				return err
			}
			sum.add(s)
		}
		add(revision, sum)
	}
	if o.inspector != "" {
		targets := o.targets
		if o.inspected != "" {
			targets = []target{{"service", o.inspected}}
		}
		for _, t := range targets {
			if err := inspect(ctx, o, t); err != nil {
				return err
			}
		}
	}
	text := strings.Join(totals, "\n") + "\n"
	if err := os.WriteFile(filepath.Join(o.suite.out, "totals"), []byte(text), 0o600); err != nil {
		return err
	}
	if bad {
		return errors.New("not all is as expected")
	}
	return nil
}
