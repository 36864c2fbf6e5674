// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package importing

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
)

// Options of an import.
type Options struct {
	// NPXImage and UVXImage are what npx and uvx run in.
	NPXImage, UVXImage string
	// Images of servers, by their names in the file.
	Images map[string]string
	// Entrypoints of images, by the names of servers.
	Entrypoints map[string]string
	// Inputs are answers to placeholders, by their names.
	Inputs map[string]string
	// KeepURLCredentials leaves credentials in URLs of servers elsewhere.
	KeepURLCredentials bool
	// Inspect, if set, asks a registry how an image starts.
	Inspect func(ctx context.Context, image string) (*start, error)
}

// start is how an image starts.
type start struct {
	Entrypoint, Cmd []string
	User            string
}

// result is one server, imported.
type result struct {
	// from is its name in the file, name that of the MCPServer.
	from, name string
	spec       mcpv1.MCPServerSpec
	secret     vault
	// asked says, of each key of the Secret that is not known, what it is.
	asked map[string]string
	// notes say what is to be done, or was not carried.
	notes []string
	// leftOut says why it cannot run as it is.
	leftOut string
}

// conversion of one entry.
type conversion struct {
	*Options
	*result
	entry  entry
	inputs map[string]input
	// inside says that paths are those of an image, not of the user's machine.
	inside bool
}

func (c *conversion) note(format string, args ...any) {
	text := oneLine(fmt.Sprintf(format, args...))
	if !slices.Contains(c.notes, text) {
		c.notes = append(c.notes, text)
	}
}

// leave says why the server cannot run as it is. The first reason stays.
func (c *conversion) leave(format string, args ...any) {
	if c.leftOut == "" {
		c.leftOut = oneLine(fmt.Sprintf(format, args...))
	}
}

// convert imports all servers of a configuration.
func (o *Options) convert(ctx context.Context, in *config) []*result {
	taken := names{}
	var out []*result
	for _, e := range in.entries {
		c := &conversion{Options: o, result: &result{from: e.name, name: taken.take(e.name), asked: map[string]string{}}, entry: e, inputs: in.inputs}
		c.secret.name = c.name + "-credentials"
		c.run(ctx)
		out = append(out, c.result)
	}
	return out
}

func (c *conversion) run(ctx context.Context) {
	for _, fault := range c.entry.faults {
		c.leave("%s", fault)
	}
	switch {
	case c.leftOut != "":
	case c.entry.url != "" && len(c.entry.command) > 0:
		c.leave("it has a command and a url: leave one out")
	case c.entry.url != "":
		c.external(c.entry.url, c.entry.headers)
	case len(c.entry.command) > 0 && c.entry.command[0] != "":
		c.stdio(ctx)
	default:
		c.leave("it has neither command nor url")
	}
	c.aside()
	c.bounds()
}

// aside says what of the entry has no place in the API.
func (c *conversion) aside() {
	e := c.entry
	if e.cwd != "" && c.spec.Stdio != nil {
		c.note("cwd is a folder of your machine and was left out; spec.stdio.workingDir is one of the image")
	}
	if e.envFile != "" {
		c.note("envFile is a file of your machine: put its variables into spec.stdio.env, and its credentials into a Secret")
	}
	if len(e.unknown) > 0 {
		c.note("settings of the client were left out: %s", printable(strings.Join(e.unknown, ", ")))
	}
	if e.disabled {
		if c.spec.Stdio != nil {
			on := true
			c.spec.Suspend = &on
			c.note("it is disabled in the client: spec.suspend is true, so that no pods run")
		} else {
			c.note("it is disabled in the client, and imported all the same")
		}
	}
}

// Bounds of the API, which a test holds against the CRD.
const (
	maxCommand, maxArgs, maxEnv, maxHeaders = 64, 256, 128, 32
	maxWord, maxURL, maxImage               = 4096, 2048, 1024
)

// bounds sees to it that the API takes what was made.
func (c *conversion) bounds() {
	switch s, x := c.spec.Stdio, c.spec.External; {
	case s != nil:
		c.processBounds(s)
	case x == nil:
		c.leave("it cannot be read")
	case len(x.Headers) > maxHeaders:
		c.leave("it has more than %d headers", maxHeaders)
	}
}

// processBounds are those of a process.
func (c *conversion) processBounds(s *mcpv1.StdioSource) {
	long := func(word string) bool { return len([]rune(word)) > maxWord || strings.ContainsRune(word, 0) }
	switch {
	case len(s.Command) > maxCommand || len(s.Args) > maxArgs || len(s.Env) > maxEnv:
		c.leave("it has more than %d words, %d arguments or %d variables", maxCommand, maxArgs, maxEnv)
	case slices.ContainsFunc(s.Command, long) || slices.ContainsFunc(s.Args, long):
		c.leave("an argument has more than %d characters, or a NUL", maxWord)
	case !image.MatchString(s.Image) || len(s.Image) > maxImage:
		c.leave("its image has no proper name")
	case len(s.Command) == 0 || s.Command[0] == "":
		c.leave("it names no program")
	}
}

var (
	image    = regexp.MustCompile(`^[^\s]+$`)
	variable = regexp.MustCompile(`^[!-<>-~]{1,256}$`)
)

// vault are the values of a server's Secret.
type vault struct {
	name string
	keys []kept
}

// kept is one value; it is unknown where open says what it is made of.
type kept struct {
	key, value string
	open       []string
}

var notKey = regexp.MustCompile(`[^-._a-zA-Z0-9]+`)

// put keeps a value and gives its key. One that is there already is used
// again.
func (v *vault) put(name string, value filled) string {
	base := strings.Trim(notKey.ReplaceAllString(name, "_"), ".")
	if base == "" {
		base = "value"
	}
	base = base[:min(len(base), 200)]
	for i := 1; ; i++ {
		key := base
		if i > 1 {
			key += "_" + strconv.Itoa(i)
		}
		at := slices.IndexFunc(v.keys, func(k kept) bool { return k.key == key })
		if at < 0 {
			v.keys = append(v.keys, kept{key: key, value: value.text, open: value.open})
			return key
		}
		if v.keys[at].value == value.text {
			return key
		}
	}
}

// keep puts a value into the Secret and gives its key.
func (c *conversion) keep(name string, value filled) string {
	key := c.secret.put(name, value)
	if len(value.open) > 0 {
		c.asked[key] = c.words(value.open)
		c.note("the Secret %s needs the key %s: %s", c.secret.name, key, c.asked[key])
	}
	return key
}

// environment makes variables of pairs: literal ones, and references to the
// Secret.
func (c *conversion) environment(list []pair) []corev1.EnvVar {
	var out []corev1.EnvVar
	for _, p := range list {
		if !variable.MatchString(p.name) {
			c.note("a variable was left out: its name is not one that Kubernetes takes")
			continue
		}
		if slices.ContainsFunc(out, func(e corev1.EnvVar) bool { return e.Name == p.name }) {
			continue
		}
		value := c.fill(p.value, c.inputs, nil)
		if len(value.open) > 0 || secret(p.name, value.text) {
			out = append(out, c.hidden(p.name, value))
			continue
		}
		c.look("the variable "+printable(p.name), value.text)
		out = append(out, corev1.EnvVar{Name: p.name, Value: literal(value.text)})
	}
	return out
}

// hidden is a variable whose value is in the Secret.
func (c *conversion) hidden(name string, value filled) corev1.EnvVar {
	key := c.keep(name, value)
	c.look("the variable "+printable(name), value.text)
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: c.secret.name}, Key: key,
	}}}
}

// look tells of a value that means something on the user's machine only. A
// credential is never quoted: hosts are words of our own.
func (c *conversion) look(where, value string) {
	if host := localHost(value); host != "" {
		c.note("%s names %s: in a pod that is the pod, or nothing. Name a Service, or a host that the cluster reaches", where, host)
	}
	if !c.inside && localPath(value) && !credentialValue(value) {
		c.note("%s is a path of your machine (%s): mount a volume there with spec.workload.volumes and volumeMounts, or name another path", where, printable(value))
	}
}
