// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpprobe_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/espalier-dev/espalier/internal/contract"
	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/mcpprobe/fakemcp"
	"github.com/espalier-dev/espalier/internal/podreport"
)

var digest = "sha256:" + strings.Repeat("0a", 32)

// reporting adds a report port to a bench.
func reporting(t *testing.T, b *bench, h http.HandlerFunc) {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	_, port, _ := strings.Cut(strings.TrimPrefix(server.URL, "http://"), ":")
	b.target.DialAddress = b.http.Listener.Addr().String()
	b.target.ReportURL = "http://" + serviceName + ":" + port + podreport.Path
	b.target.ReportToken = func() (string, error) { return "token-EXAMPLE", nil }
}

func report(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer token-EXAMPLE" || r.URL.Path != podreport.Path || r.Method != http.MethodGet {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, body)
	}
}

// The pod's report comes with the probe, and its failure does not spoil it.
func TestReport(t *testing.T) {
	good := `{"version":2,"serverVersion":"1.0","catalogDigest":"` + digest + `","catalogState":"Loaded","new":1,
		"notServed":[{"kind":"tool","name":"x\u202ey","reason":"NoHandler"},{"kind":"FOREIGN words","name":"","reason":"FOREIGN!"}]}`
	entries := strings.Repeat(`{"kind":"tool","name":"n","reason":"R"},`, 2000)
	for name, tc := range map[string]struct {
		handler http.HandlerFunc
		want    mcpprobe.Outcome
		pod     *podreport.Report
	}{
		"good": {report(good), mcpprobe.Proved, &podreport.Report{
			Version: 2, ServerVersion: "1.0", CatalogDigest: digest, CatalogState: podreport.CatalogLoaded,
			NotServed: []podreport.NotServed{{Kind: "tool", Name: `x\u202ey`, Reason: "NoHandler"}, {Kind: "unknown", Reason: "Unknown"}},
		}},
		"drift": {report(`{"version":1,"catalogState":"Loaded","drift":[
			{"name":"a\u202eb","digest":"v1:` + digest + `","parts":["description","FOREIGN words"],"upstreamDigest":"FOREIGN","hidden":true}]}`), mcpprobe.Proved, &podreport.Report{
			Version: 1, CatalogState: podreport.CatalogLoaded, Drift: []podreport.Drift{
				{Name: `a\u202eb`, Digest: "v1:" + digest, Parts: []string{"description", "unknown"}, UpstreamDigest: "unknown", Hidden: true},
			},
		}},
		"no catalog yet": {report(`{"version":1,"catalogState":"Missing"}`), mcpprobe.Proved, &podreport.Report{Version: 1, CatalogState: podreport.CatalogMissing}},
		"bad digest":     {report(`{"version":1,"catalogState":"Loaded","catalogDigest":"FOREIGN"}`), mcpprobe.ReportInvalid, nil},
		"bad state":      {report(`{"version":1,"catalogState":"FOREIGN words"}`), mcpprobe.ReportInvalid, nil},
		"no report":      {report(`{"status":"ok"}`), mcpprobe.ReportInvalid, nil},
		"no JSON":        {report(foreign), mcpprobe.ReportInvalid, nil},
		"array":          {report(`[]`), mcpprobe.ReportInvalid, nil},
		"too large":      {report(`{"version":1,"x":"` + strings.Repeat("x", podreport.MaxBytes) + `"}`), mcpprobe.ResponseTooLarge, nil},
		"html":           {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }, mcpprobe.ReportInvalid, nil},
		"401":            {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }, mcpprobe.AuthRejected, nil},
		"500":            {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }, mcpprobe.UnexpectedStatus, nil},
		"redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/other", http.StatusTemporaryRedirect)
		}, mcpprobe.UnexpectedStatus, nil},
		"hang": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, mcpprobe.Timeout, nil},
		"drop": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, mcpprobe.ConnectionLost, nil},
		"many": {report(`{"version":1,"catalogState":"Loaded","notServed":[` + strings.TrimSuffix(entries, ",") + `]}`), mcpprobe.Proved, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, fakemcp.New())
			b.bounds.ReportTime = ample
			if tc.want == mcpprobe.Timeout {
				b.bounds.ReportTime = 300 * time.Millisecond
			}
			reporting(t, b, tc.handler)
			r := b.probe()
			wantResult(t, r, proved)
			if r.PodOutcome != tc.want {
				t.Errorf("outcome of the report %s, want %s", r.PodOutcome, tc.want)
			}
			if name == "many" {
				if len(r.Pod.NotServed) != 1024 || !r.Pod.Truncated {
					t.Errorf("%d entries, truncated %v", len(r.Pod.NotServed), r.Pod.Truncated)
				}
				return
			}
			if diff := cmp.Diff(tc.pod, r.Pod); diff != "" {
				t.Errorf("report (-want +got):\n%s", diff)
			}
		})
	}
}

// ReportOnly leaves the MCP URL alone.
func TestReportOnly(t *testing.T) {
	b := newBench(t, fakemcp.New())
	b.target.ReportOnly = true
	if r := b.probe(); r.Outcome != mcpprobe.InvalidTarget {
		t.Errorf("without a report URL: %s", r.Outcome)
	}
	reporting(t, b, report(`{"version":1,"catalogState":"Loaded","catalogDigest":"`+digest+`"}`))
	r := b.probe()
	if r.Outcome != mcpprobe.Proved || r.Step != mcpprobe.StepDone || r.Pod == nil || r.Pod.CatalogDigest != digest {
		t.Errorf("report %+v", r)
	}
	b.target.ReportToken = nil
	r = b.probe()
	if r.Outcome != mcpprobe.AuthRequired || r.Step != mcpprobe.StepReport || r.HTTPStatus != 401 {
		t.Errorf("without a token: %s at %s, HTTP %d", r.Outcome, r.Step, r.HTTPStatus)
	}
	if n := len(b.fake.Requests()); n != 0 {
		t.Errorf("%d requests on the MCP URL", n)
	}
}

// The catalog digest in _meta is taken when it is one.
func TestCatalogDigest(t *testing.T) {
	for value, want := range map[string]string{digest: digest, foreign: "", digest + "0": "", strings.ToUpper(digest): ""} {
		for _, era := range []string{mcp.MethodDiscover, mcp.MethodInitialize} {
			fake := eras(era == mcp.MethodDiscover, true)
			fake.On(era, func(c *fakemcp.Call) {
				c.Result(map[string]any{
					"protocolVersion": "2025-06-18", "supportedVersions": []string{"2026-07-28"}, "ttlMs": 7000,
					"_meta": map[string]any{mcp.MetaCatalogDigest: value}, "capabilities": map[string]any{},
				})
			})
			r := newBench(t, fake).probe()
			if r.CatalogDigest != want || r.TTL == nil || *r.TTL != 7*time.Second {
				t.Errorf("%s %s: digest %q, ttl %v", era, value, r.CatalogDigest, r.TTL)
			}
		}
	}
}

// Instructions are told by their digest alone, in both eras.
func TestInstructions(t *testing.T) {
	for text, want := range map[string]string{"Be kind.": contract.OfText("Be kind."), "": ""} {
		for _, era := range []string{mcp.MethodDiscover, mcp.MethodInitialize} {
			fake := eras(era == mcp.MethodDiscover, true)
			fake.On(era, func(c *fakemcp.Call) {
				c.Result(map[string]any{
					"protocolVersion": "2025-06-18", "supportedVersions": []string{"2026-07-28"},
					"instructions": text, "capabilities": map[string]any{},
				})
			})
			if r := newBench(t, fake).probe(); r.Instructions != want {
				t.Errorf("%s %q: %q, want %q", era, text, r.Instructions, want)
			}
		}
	}
}

// Facts: times, hints and words are none, everything else is one.
func TestFacts(t *testing.T) {
	base := mcpprobe.Report{Outcome: mcpprobe.Proved, Step: mcpprobe.StepDone}
	one := 1
	ttl := time.Second
	for name, tc := range map[string]struct {
		change func(*mcpprobe.Report)
		same   bool
	}{
		"latency":      {func(r *mcpprobe.Report) { r.Latency = time.Second }, true},
		"handshake":    {func(r *mcpprobe.Report) { r.Handshake = time.Second }, true},
		"steps":        {func(r *mcpprobe.Report) { r.Steps = []mcpprobe.StepTiming{{}} }, true},
		"ttl":          {func(r *mcpprobe.Report) { r.TTL = &ttl }, true},
		"announces":    {func(r *mcpprobe.Report) { r.ListChanged, r.ListsMoved, r.ListsKept = true, true, true }, true},
		"diagnostics":  {func(r *mcpprobe.Report) { r.Diagnostics.PeerWords = "x" }, true},
		"outcome":      {func(r *mcpprobe.Report) { r.Outcome = mcpprobe.Timeout }, false},
		"count":        {func(r *mcpprobe.Report) { r.PromptCount = &one }, false},
		"tool":         {func(r *mcpprobe.Report) { r.Tools.Tools = []mcpprobe.Tool{{Name: "a"}} }, false},
		"digest":       {func(r *mcpprobe.Report) { r.CatalogDigest = digest }, false},
		"instructions": {func(r *mcpprobe.Report) { r.Instructions = "v1:x" }, false},
		"pod":          {func(r *mcpprobe.Report) { r.Pod = &podreport.Report{} }, false},
		"pod outcome":  {func(r *mcpprobe.Report) { r.PodOutcome = mcpprobe.Timeout }, false},
		"warning":      {func(r *mcpprobe.Report) { r.Warnings = []mcpprobe.Warning{{}} }, false},
	} {
		changed := base
		tc.change(&changed)
		if (changed.Facts() == base.Facts()) != tc.same {
			t.Errorf("%s: facts the same is %v, want %v", name, !tc.same, tc.same)
		}
	}
}

// Each outcome has a message of its own that says what to do.
func TestMessages(t *testing.T) {
	seen := map[string]mcpprobe.Outcome{}
	for _, outcome := range mcpprobe.Outcomes {
		r := mcpprobe.Report{Outcome: outcome, Step: mcpprobe.StepTools, HTTPStatus: 418, RPCCode: -32000, Flaw: mcpprobe.FlawMediaType, MediaType: "text/html"}
		checkReport(t, r)
		message := mcpprobe.Message(&r, mcpprobe.Where{Pod: "pod-1", Namespace: "team-a"})
		if other, ok := seen[message]; ok || strings.Contains(message, "The outcome is") {
			t.Errorf("%s: %q (also of %s)", outcome, message, other)
		}
		seen[message] = outcome
		if strings.Count(message, ". ") == 0 && outcome != mcpprobe.Proved && outcome != mcpprobe.Canceled && outcome != mcpprobe.InvalidTarget {
			t.Errorf("%s: %q says nothing beyond the fact", outcome, message)
		}
	}
	offered := make([]string, 0, 16)
	for i := range 16 {
		offered = append(offered, fmt.Sprintf("20%02d-01-01", 30+i))
	}
	long := mcpprobe.Report{Outcome: mcpprobe.UnsupportedProtocol, Offered: offered}
	if m := mcpprobe.Message(&long, mcpprobe.Where{Pod: strings.Repeat("p", 253), Namespace: strings.Repeat("n", 63)}); len(m) > mcpprobe.MaxMessage {
		t.Errorf("%d bytes", len(m))
	}
}

func TestEscapeName(t *testing.T) {
	for name, want := range map[string]string{
		"": "", "plain-name_1.0": "plain-name_1.0", "a b": "a b", "\u00e9": "\u00e9", "\u5de5\u5177": "\u5de5\u5177",
		"a\nb": `a\x0ab`, "\u202e": `\u202e`, "\u200b": `\u200b`, "\u00a0": `\u00a0`, "\u2028": `\u2028`, `a\b`: `a\\b`,
		"\x1b[31m": `\x1b[31m`, "\U000e0001": `\U000e0001`, "\xff": `\xff`, "\ufffd": "\ufffd", "😀": "😀",
	} {
		if got := mcpprobe.EscapeName(name); got != want {
			t.Errorf("EscapeName(%q) = %q, want %q", name, got, want)
		}
	}
	a, b := mcpprobe.EscapeName(strings.Repeat("é", 300)), mcpprobe.EscapeName(strings.Repeat("é", 301))
	if a == b || len(a) > mcpprobe.MaxNameBytes || !json.Valid([]byte(`"`+a+`"`)) {
		t.Errorf("long names: %q, %q", a, b)
	}
}
