// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package importing

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
)

// line writes words as a shell takes them. Those that hold a credential, or
// something that is not known, become variables of spec.stdio.env; hidden says
// whether there is one.
func (c *conversion) line(words []string, env []pair) (line string, hidden bool) {
	var out []string
	for i, word := range words {
		value := c.fill(word, c.inputs, c.entry.env)
		option := ""
		if i > 0 && strings.HasPrefix(words[i-1], "-") && !strings.Contains(words[i-1], "=") {
			option = words[i-1]
		}
		if i == 0 {
			out = append(out, quote(value.text))
			continue
		}
		bare, rest := private(option, value)
		if rest == nil {
			c.look("the argument "+strconv.Itoa(i), unflagged(value.text))
			out = append(out, quote(value.text))
			continue
		}
		hidden = true
		name := c.argument(option, bare, i, *rest, env)
		out = append(out, quotedPrefix(bare)+`"$`+name+`"`)
	}
	return strings.Join(out, " "), hidden
}

func quotedPrefix(bare string) string {
	if bare == "" {
		return ""
	}
	if strings.HasSuffix(bare, "=") && bareWord.MatchString(bare[:len(bare)-1]) {
		return bare
	}
	return quote(bare)
}

// unflagged is the value of --name=value.
func unflagged(word string) string {
	if _, value, ok := strings.Cut(word, "="); ok && strings.HasPrefix(word, "-") {
		return value
	}
	return word
}

var assigned = regexp.MustCompile(`^(--?[A-Za-z][A-Za-z0-9_.-]*|[A-Za-z_][A-Za-z0-9_]*)=`)

// private splits a word into what may be read and what may not; rest is nil
// where all of it may. option is the word before, where it is an option.
func private(option string, word filled) (bare string, rest *filled) {
	if match := assigned.FindString(word.text); match != "" {
		name, value := strings.Trim(match, "-="), word.text[len(match):]
		if len(word.open) > 0 || secret(name, value) {
			return match, &filled{value, word.open}
		}
		return "", nil
	}
	header, value, isHeader := strings.Cut(word.text, ":")
	switch {
	case len(word.open) > 0,
		option != "" && !strings.HasPrefix(word.text, "-") && secret(strings.Trim(option, "-"), word.text),
		isHeader && headerName.MatchString(header) && !scheme.MatchString(word.text) && secret(header, strings.TrimSpace(value)),
		credentialValue(word.text):
		return "", &word
	}
	return "", nil
}

var notVariable = regexp.MustCompile(`[^A-Z0-9]+`)

// reserved are variables that mean something to every child.
var reserved = []string{"PATH", "HOME", "LANG", "TMPDIR", "USER", "SHELL", "PWD", "IFS"}

// argument gives the variable that holds a private argument: one that the
// server has already, or a new one.
func (c *conversion) argument(option, bare string, index int, value filled, env []pair) string {
	s := c.spec.Stdio
	for _, p := range env {
		known := slices.ContainsFunc(s.Env, func(e corev1.EnvVar) bool { return e.Name == p.name })
		if known && identifier.MatchString(p.name) && c.fill(p.value, c.inputs, nil).text == value.text {
			return p.name
		}
	}
	name := option
	if bare != "" {
		name = bare
	}
	name = strings.Trim(notVariable.ReplaceAllString(strings.ToUpper(strings.Trim(name, "-=")), "_"), "_")
	if at := strings.Index(value.text, "://"); name == "" && at > 0 {
		name = strings.Trim(notVariable.ReplaceAllString(strings.ToUpper(value.text[:at]), "_"), "_") + "_URL"
	}
	if name == "" || slices.Contains(reserved, name) || name[0] >= '0' && name[0] <= '9' {
		name = "ARG_" + strconv.Itoa(index)
	}
	return c.addArgument(s, name, value)
}

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// addArgument adds the variable under a name that nothing else has.
func (c *conversion) addArgument(s *mcpv1.StdioSource, name string, value filled) string {
	taken := func(name string) bool {
		return slices.ContainsFunc(s.Env, func(e corev1.EnvVar) bool { return e.Name == name })
	}
	free := name
	for i := 2; taken(free); i++ {
		free = name + "_" + strconv.Itoa(i)
	}
	s.Env = append(s.Env, c.hidden(free, value))
	return free
}
