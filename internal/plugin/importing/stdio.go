// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package importing

import (
	"cmp"
	"context"
	"path"
	"regexp"
	"slices"
	"strings"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
)

// stdio makes a server that is started as a process.
func (c *conversion) stdio(ctx context.Context) {
	command := unwrapped(c.entry.command)
	program, args := base(command[0]), command[1:]
	switch {
	case program == "npx":
		c.npx(args)
	case program == "npm" && len(args) > 0 && (args[0] == "exec" || args[0] == "x"):
		c.npx(slices.DeleteFunc(slices.Clone(args[1:]), func(s string) bool { return s == "--" }))
	case program == "uvx":
		c.uvx(args)
	case program == "uv" && len(args) > 1 && args[0] == "tool" && args[1] == "run":
		c.uvx(args[2:])
	case slices.Contains([]string{"docker", "podman", "nerdctl", "finch"}, program):
		c.docker(ctx, program, args)
	default:
		c.plain(command)
	}
}

// unwrapped takes the shell of Windows away, which clients there put before
// npx.
func unwrapped(command []string) []string {
	if len(command) > 2 && base(command[0]) == "cmd" && strings.EqualFold(command[1], "/c") {
		return command[2:]
	}
	return command
}

// base is a program without its folder and the endings of Windows.
func base(program string) string {
	name := path.Base(strings.ReplaceAll(program, `\`, "/"))
	for _, end := range []string{".exe", ".cmd", ".bat", ".ps1"} {
		if len(name) > len(end) && strings.EqualFold(name[len(name)-len(end):], end) {
			return strings.ToLower(name[:len(name)-len(end)])
		}
	}
	return name
}

// npx runs a package of npm.
func (c *conversion) npx(args []string) {
	pack, rest := packageOf(args, "-p", "--package", "-c", "--call", "--registry", "--cache", "-w", "--workspace")
	if name, _ := nameVersion(pack); name == "mcp-remote" {
		c.remote(rest)
		return
	}
	if !slices.Contains(args, "-y") && !slices.Contains(args, "--yes") {
		args = slices.Concat([]string{"-y"}, args)
	}
	if _, version := nameVersion(pack); version == "" || version == "latest" {
		c.note("the version of %s is not pinned: each pod starts the newest. Name one, as in %s@1.2.3", pack, strings.TrimSuffix(pack, "@latest"))
	}
	c.browser(pack)
	c.process(cmp.Or(c.Images[c.from], c.NPXImage), slices.Concat([]string{"npx"}, args), c.entry.env, true)
}

// uvx runs a package of PyPI.
func (c *conversion) uvx(args []string) {
	pack, _ := packageOf(args, "--from", "--python", "-p", "--with", "--index", "--index-url", "--extra-index-url", "--default-index",
		"--directory", "--with-requirements", "--with-editable", "--cache-dir", "--constraints", "-c", "--env-file")
	for i, arg := range args {
		from, ok := strings.CutPrefix(arg, "--from=")
		if arg == "--from" && i+1 < len(args) {
			from, ok = args[i+1], true
		}
		if ok {
			pack = from
		}
	}
	switch {
	case strings.HasPrefix(pack, "git+"):
		c.note("the package comes from git, which %s may lack: choose an image that has it with --image %s", c.UVXImage, c.flag("IMAGE"))
	case !strings.ContainsAny(pack, "=@<>~"), strings.HasSuffix(pack, "@latest"):
		c.note("the version of %s is not pinned: each pod starts the newest. Name one, as in %s==1.2.3", pack, strings.TrimSuffix(pack, "@latest"))
	}
	c.browser(pack)
	c.process(cmp.Or(c.Images[c.from], c.UVXImage), slices.Concat([]string{"uvx"}, args), c.entry.env, true)
}

// packageOf finds the first word that is neither an option nor the value of
// one that takes some, and what follows it.
func packageOf(args []string, valued ...string) (pack string, rest []string) {
	for i := 0; i < len(args); i++ {
		switch {
		case slices.Contains(valued, args[i]):
			i++
		case args[i] != "" && args[i][0] != '-':
			return args[i], args[i+1:]
		}
	}
	return "", nil
}

var versioned = regexp.MustCompile(`^(@?[^@]+)@(.+)$`)

// nameVersion splits @scope/name@1.2.3.
func nameVersion(pack string) (name, version string) {
	if match := versioned.FindStringSubmatch(pack); match != nil {
		return match[1], match[2]
	}
	return pack, ""
}

// browser says of servers that drive the user's screen that an image of Node or
// Python has none.
func (c *conversion) browser(pack string) {
	name, _ := nameVersion(pack)
	for _, word := range []string{"playwright", "puppeteer", "chrome", "browser", "selenium"} {
		if strings.Contains(strings.ToLower(name), word) && c.Images[c.from] == "" {
			c.note("%s wants a browser, which the image lacks: choose one that has it with --image %s", name, c.flag("IMAGE"))
			return
		}
	}
}

// remote is mcp-remote, by which clients that know stdio alone reach a server
// elsewhere: that server itself is imported.
func (c *conversion) remote(args []string) {
	address := ""
	var headers []pair
	for i := 0; i < len(args); i++ {
		text, ok := strings.CutPrefix(args[i], "--header=")
		if (args[i] == "--header" || args[i] == "-H") && i+1 < len(args) {
			i++
			text, ok = args[i], true
		}
		switch {
		case ok:
			name, value, found := strings.Cut(text, ":")
			if found {
				headers = append(headers, pair{strings.TrimSpace(name), strings.TrimSpace(value)})
			}
		case address == "" && scheme.MatchString(args[i]):
			address = args[i]
		}
	}
	if address == "" {
		c.leave("mcp-remote is given no url")
		return
	}
	c.note("mcp-remote is not needed: the server that it leads to was imported")
	if len(headers) == 0 {
		c.note("if the server wants its users to sign in, clients go on doing that themselves: Ready then says AuthRequired")
	}
	c.external(address, headers)
}

// plain is a command that is to be in an image which nobody named.
func (c *conversion) plain(command []string) {
	given := c.Images[c.from]
	c.inside = true // Of an image, or told below.
	if given == "" {
		program := base(command[0])
		reason := "its command " + program + " needs an image that has it"
		switch {
		case localPath(command[0]):
			reason = "its command is a file of your machine"
		case slices.Contains([]string{"osascript", "open", "wsl", "powershell", "pwsh", "xcrun", "defaults", "shortcuts", "ssh", "adb"}, program):
			reason = "its command " + program + " works on your own machine"
		case slices.ContainsFunc(command[1:], localPath):
			reason = "it starts a file of your machine"
		}
		c.leave("%s. Build or choose an image, and name it with --image %s", reason, c.flag("IMAGE"))
	}
	c.process(cmp.Or(given, "IMAGE"), command, c.entry.env, false)
}

// process fills spec.stdio. Words that are not to be read by everybody come
// from the Secret by a variable, which a shell puts in; shell says that the
// image is known to have one.
func (c *conversion) process(image string, words []string, env []pair, shell bool) {
	c.spec.Type = mcpv1.TypeStdio
	s := &mcpv1.StdioSource{Image: image, Env: c.environment(env)}
	c.spec.Stdio = s
	line, hidden := c.line(words, env)
	if !hidden {
		s.Command, s.Args = c.filledWords(words[:1]), c.filledWords(words[1:])
		if len(s.Args) == 0 {
			s.Args = nil
		}
		return
	}
	s.Command, s.Args = []string{"sh", "-c"}, []string{"exec " + line}
	c.note("arguments come from the Secret: they are put in by a shell%s", map[bool]string{false: ", sh, which the image must have"}[shell])
}

func (c *conversion) filledWords(words []string) []string {
	out := make([]string, len(words))
	for i, word := range words {
		out[i] = c.fill(word, c.inputs, c.entry.env).text
	}
	return out
}

// flag is the value of a flag that names this server, as a shell takes it.
func (c *conversion) flag(value string) string {
	if name := printable(c.from); bareWord.MatchString(name) {
		return name + "=" + value
	}
	return quote(printable(c.from) + "=" + value)
}
