// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package probing

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/mcpprobe/fakemcp"
	"github.com/espalier-dev/espalier/internal/plugin/env"
)

func run(t *testing.T, args ...string) (out string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	streams, _, o, _ := genericiooptions.NewTestIOStreams()
	command := New(env.New(streams))
	command.SetArgs(append([]string{"--timeout", "30s"}, args...))
	command.SilenceErrors, command.SilenceUsage = true, true
	err = command.ExecuteContext(ctx)
	return o.String(), err
}

func serve(t *testing.T, change func(*fakemcp.Server)) string {
	t.Helper()
	s := fakemcp.New()
	change(s)
	web := httptest.NewServer(s)
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
	})
	return web.URL
}

var number = regexp.MustCompile(` *[0-9]+\.[0-9] ms|127\.0\.0\.1:[0-9]+`)

// TestProved says all that was seen, without the query of the URL.
func TestProved(t *testing.T) {
	url := serve(t, func(s *fakemcp.Server) {
		s.Settings.Tools = append(s.Settings.Tools, json.RawMessage(
			`{"name":"bad name","description":"x","inputSchema":{"type":"object","anyOf":[{}],"properties":{"a b":{}}},"outputSchema":{"type":"array"}}`))
	})
	out, err := run(t, url+"/mcp?key=hunter2")
	want := `Proved: Answered as an MCP server (2025-06-18) with 2 tools.

URL           http://N/mcp
Server        fake 1
Protocol      2025-06-18 (Legacy) over StreamableHTTP
Declares      tools
Lists         2 tools, 0 resources, 0 templates, 0 prompts
Session       s-1

Steps
  server/discoverN
  initializeN
  notifications/initializedN
  tools/listN
  in allN

Odd
  bad name: the name is not 1 to 128 of letters, digits, '_', '-' and '.': clients refuse or rename the tool
  alpha: there is no description for a model to choose the tool by
  bad name: inputSchema has anyOf, oneOf or allOf at its root, which the APIs of some models refuse
  bad name: the argument "a b" is not 1 to 64 of letters, digits, '_', '-' and '.', which the APIs of some models want
  bad name: outputSchema is not of type object, which clients of this revision refuse
`
	if diff := cmp.Diff(want, number.ReplaceAllString(out, "N")); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// TestNotProved: the outcome, what to do, the peer's own words, and no secret.
func TestNotProved(t *testing.T) {
	url := serve(t, func(s *fakemcp.Server) {
		s.On(fakemcp.Any, func(c *fakemcp.Call) {
			c.Text(http.StatusUnauthorized, "text/plain", "go away \x1b[2J "+c.R.Header.Get("Authorization"))
		})
	})
	tests := map[string]struct {
		args []string
		want []string
	}{
		"words":    {[]string{url, "--header", "Authorization: Bearer hunter2"}, []string{"AuthRejected: ", "HTTP 401 text/plain", `go away \x1b[2J`}},
		"no one":   {[]string{"http://127.0.0.1:1/mcp?key=hunter2"}, []string{"ConnectionRefused: ", "Cause", "URL           http://127.0.0.1:1/mcp\n"}},
		"json":     {[]string{url, "--header", "X-Api-Key: hunter2", "-o", "json"}, []string{`"outcome": "AuthRejected"`, `"httpStatus": 401`}},
		"pinned":   {[]string{url, "--transport", "SSE"}, []string{"the event stream"}},
		"no token": {[]string{url}, []string{"AuthUnverified: ", "Here: Give a credential with --header"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			out, err := run(t, test.args...)
			if env.Finish(new(bytes.Buffer), err) != env.ExitNo || strings.Contains(out, "hunter2") || strings.Contains(out, "\x1b") {
				t.Errorf("%v\n%s", err, out)
			}
			for _, want := range test.want {
				if !strings.Contains(out, want) {
					t.Errorf("no %q in\n%s", want, out)
				}
			}
		})
	}
}

// TestRefused: what makes no sense is refused before anything is dialled.
func TestRefused(t *testing.T) {
	for _, args := range [][]string{{"http://x", "--transport", "Pigeon"}, {"http://x", "-o", "xml"}, {"gopher://x"}, {"http://u:p@x"}, {"http://x", "--pod", "a"}} {
		if out, err := run(t, args...); env.Finish(new(bytes.Buffer), err) != env.ExitError || out != "" {
			t.Errorf("%q: %q, %v", args, out, err)
		}
	}
}

// TestEveryWarningIsExplained: each has words.
func TestEveryWarningIsExplained(t *testing.T) {
	for _, code := range []mcpprobe.WarningCode{
		mcpprobe.WarnNameOutsideAdvice, mcpprobe.WarnNameTooLongForClients, mcpprobe.WarnDuplicateName, mcpprobe.WarnMalformedEntry,
		mcpprobe.WarnSchemaNotObject, mcpprobe.WarnNoDigest, mcpprobe.WarnCursorLoop, mcpprobe.WarnListCut, mcpprobe.WarnListFailed, mcpprobe.WarnNullList,
	} {
		if explained[code] == "" {
			t.Errorf("%s has no words", code)
		}
	}
}
