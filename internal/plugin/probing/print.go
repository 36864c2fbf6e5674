// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package probing

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/plugin/env"
	"github.com/espalier-dev/espalier/internal/plugin/reach"
)

// proxy as the environment names it.
func proxy(r *http.Request) (*url.URL, error) { return http.ProxyFromEnvironment(r) }

// sight is what was seen of one endpoint.
type sight struct {
	endpoint *reach.Endpoint
	byURL    bool
	// namespace of the pod.
	namespace string
	report    mcpprobe.Report
	odd       oddities
}

// seen is a sight in JSON. Durations are in milliseconds.
type seen struct {
	URL             string   `json:"url"`
	Pod             string   `json:"pod,omitempty"`
	Outcome         string   `json:"outcome"`
	Step            string   `json:"step"`
	Message         string   `json:"message"`
	Try             string   `json:"try,omitempty"`
	Flaw            string   `json:"flaw,omitempty"`
	HTTPStatus      int      `json:"httpStatus,omitempty"`
	RPCCode         int      `json:"rpcCode,omitempty"`
	MediaType       string   `json:"mediaType,omitempty"`
	Transport       string   `json:"transport,omitempty"`
	Era             string   `json:"era,omitempty"`
	ProtocolVersion string   `json:"protocolVersion,omitempty"`
	Offered         []string `json:"offered,omitempty"`
	Server          *named   `json:"server,omitempty"`
	Capabilities    []string `json:"capabilities,omitempty"`
	Instructions    string   `json:"instructions,omitempty"`
	SessionID       string   `json:"sessionID,omitempty"`
	// Counts are left out where they are not known.
	Tools        *int     `json:"tools,omitempty"`
	Resources    *int     `json:"resources,omitempty"`
	Templates    *int     `json:"templates,omitempty"`
	Prompts      *int     `json:"prompts,omitempty"`
	Milliseconds float64  `json:"milliseconds"`
	Handshake    float64  `json:"handshakeMilliseconds"`
	Steps        []timing `json:"steps,omitempty"`
	Odd          []oddity `json:"odd,omitempty"`
	PeerWords    string   `json:"peerWords,omitempty"`
	Cause        string   `json:"cause,omitempty"`
}

type named struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
}

type timing struct {
	Step         string  `json:"step"`
	Milliseconds float64 `json:"milliseconds"`
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// message is the operator's.
func (f *sight) message() string {
	return mcpprobe.Message(&f.report, mcpprobe.Where{External: f.byURL, Pod: f.endpoint.Pod, Namespace: f.namespace})
}

// tries are what can be tried at a terminal; the operator's messages are for
// who writes a spec.
var tries = map[mcpprobe.Outcome]string{
	mcpprobe.AuthRequired:     "Give a credential with --header or --token-file.",
	mcpprobe.AuthUnverified:   "Give a credential with --header or --token-file, or another URL.",
	mcpprobe.AuthRejected:     "Check what --header or --token-file gives.",
	mcpprobe.TLSUntrusted:     "Name the authority's certificate with --server-ca.",
	mcpprobe.HostRejected:     "Give a name that the server allows with --host.",
	mcpprobe.Timeout:          "Give it more time with --timeout.",
	mcpprobe.UnexpectedStatus: "Try another path, or another --transport.",
	mcpprobe.NotMCP:           "Try another path or port, or another --transport.",
}

func (f *sight) seen() seen {
	r := &f.report
	out := seen{
		URL: f.endpoint.Address(), Pod: f.endpoint.Pod, Outcome: string(r.Outcome), Step: string(r.Step), Message: f.message(),
		Try:  tries[r.Outcome],
		Flaw: string(r.Flaw), HTTPStatus: r.HTTPStatus, RPCCode: r.RPCCode, MediaType: r.MediaType,
		Transport: string(r.Transport), Era: string(r.Era), ProtocolVersion: r.ProtocolVersion, Offered: r.Offered,
		Capabilities: r.Capabilities, Instructions: r.Instructions, SessionID: r.Diagnostics.SessionID,
		Tools: r.Tools.Count(), Resources: r.Resources.Count(), Templates: r.Templates.Count(), Prompts: r.Prompts.Count(),
		Milliseconds: milliseconds(r.Latency), Handshake: milliseconds(r.Handshake), Odd: f.odd.all(r),
		PeerWords: r.Diagnostics.PeerWords, Cause: r.Diagnostics.Cause,
	}
	if r.Server != (mcpprobe.ServerInfo{}) {
		out.Server = &named{r.Server.Name, r.Server.Version}
	}
	for _, s := range r.Steps {
		out.Steps = append(out.Steps, timing{string(s.Step), milliseconds(s.Duration)})
	}
	return out
}

// print prints what was seen of all endpoints; of one it is one object in JSON,
// of --all-pods a list.
func (c *command) print(sights []*sight) error {
	if c.output == "json" {
		list := make([]seen, 0, len(sights))
		for _, f := range sights {
			list = append(list, f.seen())
		}
		var value any = list
		if !c.AllPods {
			value = list[0]
		}
		out, err := json.MarshalIndent(value, "", "    ")
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(c.Out, string(out))
		return err
	}
	for i, f := range sights {
		if i > 0 {
			fmt.Fprintln(c.Out)
		}
		c.printText(f.seen())
	}
	return nil
}

func (c *command) printText(s seen) {
	style := c.Style()
	verdict := style.Bad(s.Outcome)
	if s.Outcome == string(mcpprobe.Proved) {
		verdict = style.Good(s.Outcome)
	}
	fmt.Fprintf(c.Out, "%s: %s\n", verdict, s.Message)
	if s.Try != "" {
		fmt.Fprintf(c.Out, "Here: %s\n", s.Try)
	}
	fmt.Fprintln(c.Out)
	line := func(title, value string) {
		if value != "" {
			fmt.Fprintf(c.Out, "%-14s%s\n", title, value)
		}
	}
	line("URL", s.URL)
	line("Pod", s.Pod)
	if s.Server != nil {
		line("Server", strings.TrimSpace(s.Server.Name+" "+s.Server.Version))
	}
	if s.ProtocolVersion != "" {
		line("Protocol", fmt.Sprintf("%s (%s) over %s", s.ProtocolVersion, s.Era, s.Transport))
	}
	line("Offered", strings.Join(s.Offered, ", "))
	line("Declares", strings.Join(s.Capabilities, ", "))
	line("Lists", counts(s))
	line("Session", s.SessionID)
	if s.HTTPStatus != 0 {
		line("Answer", strings.TrimSpace(fmt.Sprintf("HTTP %d %s", s.HTTPStatus, s.MediaType)))
	}
	if s.RPCCode != 0 {
		line("Error", strconv.Itoa(s.RPCCode))
	}
	line("Peer's words", quoted(s.PeerWords))
	line("Cause", s.Cause)
	if len(s.Steps) > 0 {
		fmt.Fprintf(c.Out, "\n%s\n", style.Strong("Steps"))
		for _, t := range s.Steps {
			fmt.Fprintf(c.Out, "  %-28s%9.1f ms\n", t.Step, t.Milliseconds)
		}
		fmt.Fprintf(c.Out, "  %-28s%9.1f ms\n", "in all", s.Milliseconds)
	}
	if len(s.Odd) > 0 {
		fmt.Fprintf(c.Out, "\n%s\n", style.Unsure("Odd"))
		for _, o := range s.Odd {
			fmt.Fprintf(c.Out, "  %s\n", strings.TrimSpace(strings.TrimPrefix(o.Name+": "+o.Detail, ": ")))
		}
	}
}

func counts(s seen) string {
	var out []string
	for _, l := range []struct {
		n    *int
		name string
	}{{s.Tools, "tools"}, {s.Resources, "resources"}, {s.Templates, "templates"}, {s.Prompts, "prompts"}} {
		if l.n != nil {
			out = append(out, fmt.Sprintf("%d %s", *l.n, l.name))
		}
	}
	return strings.Join(out, ", ")
}

// quoted marks foreign words, which the probe has escaped.
func quoted(words string) string {
	if words == "" {
		return ""
	}
	return `"` + env.Line(words) + `"`
}
