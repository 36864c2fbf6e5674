// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/espalier-dev/espalier/internal/plugin"
	"github.com/espalier-dev/espalier/internal/plugin/env"
)

func run(args ...string) (code int, out, errOut string) {
	streams, _, o, e := genericiooptions.NewTestIOStreams()
	code = plugin.Run(context.Background(), streams, args)
	return code, o.String(), e.String()
}

// TestHelp: each command says what it is, with an example, and leaves kubectl's
// own flags out.
func TestHelp(t *testing.T) {
	streams := genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &bytes.Buffer{}, ErrOut: &bytes.Buffer{}}
	for _, command := range plugin.New(streams).Commands() {
		if command.GroupID == "" || command.Short == "" || command.Long == "" || !strings.Contains(command.Example, "kubectl mcp "+command.Name()) {
			t.Errorf("%s lacks a group, a text or an example", command.Name())
		}
		code, out, _ := run(command.Name(), "--help")
		if code != env.ExitOK || !strings.Contains(out, command.Long) || strings.Contains(out, "--kubeconfig") {
			t.Errorf("%s --help: %d\n%s", command.Name(), code, out)
		}
	}
	if code, out, _ := run("--help"); code != env.ExitOK || strings.Contains(out, "--kubeconfig") || !strings.Contains(out, "kubectl options") {
		t.Errorf("--help: %d\n%s", code, out)
	}
}

// TestMistakes: a wrong command line is an error with a code of its own, and
// says what was wrong.
func TestMistakes(t *testing.T) {
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"whyy", "search"}, `unknown command "whyy"`},
		{[]string{"get", "--nope"}, "unknown flag: --nope"},
		{[]string{"why"}, "one name is needed"},
		{[]string{"get", "--kubeconfig", "/nonexistent/config"}, "/nonexistent/config"},
	} {
		code, out, errOut := run(test.args...)
		if code != env.ExitError || out != "" || !strings.Contains(errOut, test.want) {
			t.Errorf("%q: %d, %q, %q", test.args, code, out, errOut)
		}
	}
}
