// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package importing

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// placeholder is ${input:x} and ${env:X} of VS Code, ${X} and ${X:-default} of
// Claude Code, and ${workspaceFolder} and the like.
var placeholder = regexp.MustCompile(`\$\{([^{}\n]*)\}`)

// folders are placeholders that stand for a place on the user's machine.
var folders = []string{"workspaceFolder", "workspaceFolderBasename", "userHome", "cwd", "file", "fileDirname", "pathSeparator", "/", "CLAUDE_PLUGIN_ROOT"}

// filled is a text whose placeholders were answered as far as that is known.
type filled struct {
	text string
	// open are the placeholders without an answer, such as "input:token".
	open []string
}

// fill puts in the answers of --input, the variables of the server itself, and
// defaults. What stands for a folder stays as it is.
func (o *Options) fill(text string, inputs map[string]input, own []pair) filled {
	var out filled
	out.text = placeholder.ReplaceAllStringFunc(text, func(whole string) string {
		name := whole[2 : len(whole)-1]
		if folder, _, _ := strings.Cut(name, ":"); slices.Contains(folders, folder) {
			return whole
		}
		bare, standIn, hasDefault := strings.Cut(name, ":-")
		id := strings.TrimPrefix(strings.TrimPrefix(bare, "input:"), "env:")
		if answer, ok := o.Inputs[id]; ok {
			return answer
		}
		if strings.HasPrefix(bare, "input:") {
			if in := inputs[id]; in.Default != "" && !in.Password {
				return in.Default
			}
		} else if i := slices.IndexFunc(own, func(p pair) bool { return p.name == id && !placeholder.MatchString(p.value) }); i >= 0 {
			return own[i].value
		}
		if hasDefault {
			return standIn
		}
		if !slices.Contains(out.open, name) {
			out.open = append(out.open, name)
		}
		return whole
	})
	return out
}

// asked is a placeholder in words.
func asked(name string, inputs map[string]input) string {
	if id, ok := strings.CutPrefix(name, "input:"); ok {
		if in := inputs[id]; in.Description != "" {
			return fmt.Sprintf("what the client asks for as %q: %s", printable(id), printable(in.Description))
		}
		return fmt.Sprintf("what the client asks for as %q", printable(id))
	}
	return fmt.Sprintf("the variable %s of your environment", printable(strings.TrimPrefix(name, "env:")))
}

// oneLine is text fit for one line of a comment or a terminal.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !strconv.IsGraphic(r) {
			return '?'
		}
		return r
	}, text)
}

// printable is oneLine of foreign text, cut where it is long.
func printable(text string) string {
	text = oneLine(text)
	if runes := []rune(text); len(runes) > 120 {
		text = string(runes[:120]) + "..."
	}
	return text
}

var (
	windowsPath = regexp.MustCompile(`^[A-Za-z]:[\\/]`)
	hosts       = regexp.MustCompile(`(?i)(^|[^a-z0-9.-])(localhost|127(\.[0-9]+){3}|\[::1\]|host\.docker\.internal|gateway\.docker\.internal|host\.containers\.internal)($|[^a-z0-9.-])`)
)

// localPath reports whether value looks like a path of the user's machine.
func localPath(value string) bool {
	if slices.Contains([]string{"/", "/dev/null", "/tmp"}, value) || strings.HasPrefix(value, "//") {
		return false
	}
	for _, prefix := range []string{"/", "./", "../", "~/", `.\`, `..\`, `\\`, "file://", "$HOME/", "%USERPROFILE%", "%APPDATA%"} {
		if strings.HasPrefix(value, prefix) {
			return true
		}
	}
	if windowsPath.MatchString(value) || value == "." || value == "~" {
		return true
	}
	match := placeholder.FindStringSubmatch(value)
	if match == nil {
		return false
	}
	folder, _, _ := strings.Cut(match[1], ":")
	return slices.Contains(folders, folder)
}

// localHost gives the name in value that means the user's own machine.
func localHost(value string) string {
	if match := hosts.FindStringSubmatch(value); match != nil {
		return match[2]
	}
	return ""
}

// literal is a value of a variable as Kubernetes takes it: there $(X) is a
// reference, and $$ a dollar.
func literal(value string) string {
	if strings.Contains(value, "$(") || strings.Contains(value, "$$") {
		return strings.ReplaceAll(value, "$", "$$")
	}
	return value
}

var bareWord = regexp.MustCompile(`^[A-Za-z0-9_@%+:,./-]+$`)

// quote is a word as a shell takes it.
func quote(word string) string {
	if bareWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// names gives each server of a file a name that Kubernetes takes.
type names map[string]bool

const maxName = 50

// take makes a DNS label of name, different from all before.
func (n names) take(name string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(name) {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			b.WriteRune(r)
		} else if b.Len() > 0 && !strings.HasSuffix(b.String(), "-") {
			b.WriteByte('-')
		}
	}
	label := strings.Trim(b.String(), "-")
	switch {
	case label == "":
		label = "server"
	case label[0] >= '0' && label[0] <= '9':
		label = "mcp-" + label
	}
	cut := func(suffix string) string {
		return strings.TrimRight(label[:min(len(label), maxName-len(suffix))], "-") + suffix
	}
	out := cut("")
	for i := 2; n[out]; i++ {
		out = cut("-" + strconv.Itoa(i))
	}
	n[out] = true
	return out
}
