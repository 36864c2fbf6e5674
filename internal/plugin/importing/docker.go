// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package importing

import (
	"cmp"
	"context"
	"path"
	"slices"
	"strings"
)

// switches of "docker run" take no value; all its other options do.
var switches = []string{
	"-d", "--detach", "-i", "--interactive", "-t", "--tty", "--rm", "--init", "--privileged", "-P", "--publish-all", "--read-only",
	"--no-healthcheck", "--oom-kill-disable", "--disable-content-trust", "--sig-proxy", "-q", "--quiet", "--use-api-socket", "--help", "--replace",
}

// harmless options say nothing that a pod lacks.
var harmless = []string{
	"-i", "--interactive", "-t", "--tty", "--rm", "--init", "--name", "--pull", "--platform", "-q", "--quiet", "--sig-proxy", "--restart",
	"-l", "--label", "--log-driver", "--log-opt", "--read-only", "--cap-drop", "--security-opt", "--no-healthcheck", "--hostname", "-h",
	"--disable-content-trust", "--replace", "-a", "--attach", "--cidfile", "--stop-timeout", "--stop-signal",
}

// ran is a "docker run", read.
type ran struct {
	image      string
	args       []string
	env        []pair
	entrypoint *string
	workdir    string
	// others are options with their values, in their order.
	others []pair
}

// docker makes a server of the image that docker, or what calls itself so,
// runs.
func (c *conversion) docker(ctx context.Context, program string, words []string) {
	at := slices.Index(words, "run")
	if at < 0 || at > 0 && !slices.Contains([]string{"container"}, words[at-1]) && !strings.HasPrefix(words[0], "-") {
		c.leave("%s is not used to run an image, and works on your own machine", program)
		c.process("IMAGE", slices.Concat([]string{program}, words), nil, false)
		return
	}
	r := readRun(words[at+1:])
	c.inside = true
	if given := c.Images[c.from]; given != "" {
		r.image = given
	}
	if r.image == "" {
		c.leave("%s run names no image", program)
		return
	}
	c.options(r)
	if name, _, _ := strings.Cut(r.image, "@"); !strings.Contains(name, "/") && c.Images[c.from] == "" {
		c.note("if the image %s is on your machine only, push it to a registry and name it with --image %s", r.image, c.flag("IMAGE"))
	}
	c.process(r.image, c.started(ctx, r), c.dockerEnv(r), false)
	if c.spec.Stdio != nil && path.IsAbs(r.workdir) {
		c.spec.Stdio.WorkingDir = r.workdir
	}
}

// dockerEnv are the variables that the container gets: NAME=VALUE, and those
// of the entry that are named.
func (c *conversion) dockerEnv(r *ran) []pair {
	var out, unused []pair
	for _, p := range r.env {
		name, own := strings.CutPrefix(p.name, "=")
		if !own { // NAME=VALUE
			p.value = c.fill(p.value, c.inputs, c.entry.env).text
			out = append(out, p)
			continue
		}
		value := "${env:" + name + "}"
		for _, given := range c.entry.env {
			if given.name == name {
				value = given.value
			}
		}
		out = append(out, pair{name, value})
	}
	for _, given := range c.entry.env {
		if !slices.ContainsFunc(r.env, func(p pair) bool { return strings.TrimPrefix(p.name, "=") == given.name }) {
			unused = append(unused, given)
		}
	}
	for _, p := range unused {
		c.note("the variable %s was left out: it is for docker, and the container does not get it without -e %s", p.name, p.name)
	}
	return out
}

// told says, of options of docker that are left out, what there is instead.
var told = map[string]string{
	"--env-file": "is a file of your machine: put its variables into spec.stdio.env, and its credentials into a Secret",
	"--publish":  "was left out: nothing but MCP is exposed",
	"--user":     "was left out: pods run as user 65532; spec.workload.podTemplate can change that",
	"--memory":   "was left out: set spec.workload.resources",
	"--cpus":     "was left out: set spec.workload.resources",
	"--add-host": "was left out: name a host that the cluster resolves",
}

// longNames of short options.
var longNames = map[string]string{
	"-v": "--volume", "--net": "--network", "-p": "--publish", "-P": "--publish", "--publish-all": "--publish", "-u": "--user", "-m": "--memory",
}

// options says which of docker's cannot be carried.
func (c *conversion) options(r *ran) {
	for _, o := range r.others {
		name := cmp.Or(longNames[o.name], o.name)
		switch {
		case slices.Contains(harmless, name):
		case name == "--volume" || name == "--mount":
			c.note("%s %s was left out: mount a volume of the cluster there with spec.workload.volumes and volumeMounts", o.name, mounted(o.value))
		case name == "--network":
			c.network(o)
		case told[name] != "":
			c.note("%s %s", o.name, told[name])
		default:
			c.note("the option %s of docker was left out: see spec.workload.podTemplate", o.name)
		}
	}
}

func (c *conversion) network(o pair) {
	switch o.value {
	case "bridge", "none":
	case "host":
		c.note("%s host was left out: the pod has a network of its own, and localhost is the pod", o.name)
	default:
		c.note("%s was left out: what is reached there must be reachable in the cluster, as a Service", o.name)
	}
}

// mounted is what a mount says, for a note: paths only.
func mounted(value string) string {
	if credentialValue(value) {
		return "(a volume)"
	}
	return value
}

// started is the command line in the container: how the image starts is asked
// of its registry.
func (c *conversion) started(ctx context.Context, r *ran) []string {
	if given := strings.Fields(c.Entrypoints[c.from]); len(given) > 0 {
		return slices.Concat(given, r.args)
	}
	if r.entrypoint != nil && *r.entrypoint != "" {
		return slices.Concat([]string{*r.entrypoint}, r.args)
	}
	unknown := func(why string) []string {
		c.leave("%s, and spec.stdio needs the command. Name it with --entrypoint %s; \"docker inspect\" shows it", why, c.flag("COMMAND"))
		return slices.Concat([]string{"COMMAND"}, r.args)
	}
	if c.Inspect == nil {
		return unknown("how the image starts is not known")
	}
	s, err := c.Inspect(ctx, r.image)
	if err != nil {
		return unknown("the registry did not tell how the image starts")
	}
	if user, _, _ := strings.Cut(s.User, ":"); slices.Contains([]string{"", "0", "root"}, user) {
		c.note("the image runs as root by itself, and pods run as user 65532 with a read-only root: it may need files of its own elsewhere")
	}
	args := r.args
	if len(args) == 0 {
		args = s.Cmd
	}
	words := slices.Concat(s.Entrypoint, args)
	if len(words) == 0 || words[0] == "" {
		return unknown("the image does not say how it starts")
	}
	return words
}

// readRun reads what follows "docker run". A variable without a value has "="
// before its name.
func readRun(words []string) *ran {
	r := &ran{}
	for i := 0; i < len(words); i++ {
		word := words[i]
		if word == "" || word[0] != '-' || word == "-" {
			r.image, r.args = word, words[i+1:]
			return r
		}
		name, value, given := option(word)
		if !given && !slices.Contains(switches, name) && i+1 < len(words) {
			i++
			value = words[i]
		}
		switch name {
		case "-e", "--env":
			key, text, ok := strings.Cut(value, "=")
			if !ok {
				key = "=" + key
			}
			r.env = append(r.env, pair{key, text})
		case "--entrypoint":
			r.entrypoint = &value
		case "-w", "--workdir":
			r.workdir = value
		default:
			r.others = append(r.others, pair{name, value})
		}
	}
	return r
}

// option splits --name=value, -nvalue, and -it into the last of its letters.
func option(word string) (name, value string, given bool) {
	if strings.HasPrefix(word, "--") {
		name, value, given = strings.Cut(word, "=")
		return name, value, given
	}
	for i := 1; i < len(word); i++ {
		if name = "-" + word[i:i+1]; !slices.Contains(switches, name) {
			value = strings.TrimPrefix(word[i+1:], "=")
			return name, value, i+1 < len(word)
		}
	}
	return cmp.Or(name, word), "", false
}
