// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpprobe

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/espalier-dev/espalier/internal/contract"
	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/podreport"
)

// readReport asks a pod of our image for its report. Its failure is told
// beside the outcome of the exchange, and never stands for it.
func (c *Client) readReport(ctx context.Context, t Target, r *Report) {
	ctx, cancel := context.WithTimeout(ctx, min(c.opts.Bounds.ReportTime, t.Timeout/2))
	defer cancel()
	var f *failure
	r.Pod, r.PodStatus, f = c.report(ctx, t)
	r.PodOutcome = Proved
	if f != nil {
		r.PodOutcome = f.outcome
	}
}

func (c *Client) report(ctx context.Context, t Target) (*podreport.Report, int, *failure) {
	u, problem := checkURL(t.ReportURL, TransportStreamableHTTP)
	if problem != "" {
		return nil, 0, &failure{outcome: InvalidTarget}
	}
	tr, err := c.newTransport(t, dialHostInstead(t.DialAddress))
	if err != nil {
		return nil, 0, &failure{outcome: InvalidTarget}
	}
	defer tr.close()
	var at atomic.Int32
	req, err := http.NewRequestWithContext(tracked(ctx, &at, new(atomic.Bool)), http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, 0, &failure{outcome: InvalidTarget}
	}
	req.Header.Set("Accept", typeJSON)
	req.Header.Set("Accept-Encoding", "identity")
	req.Header.Set("User-Agent", userAgent(c))
	if t.ReportToken != nil {
		token, err := t.ReportToken()
		if err != nil || !validHeader("Authorization", token) {
			return nil, 0, &failure{outcome: InvalidTarget}
		}
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := tr.RoundTrip(req)
	if err != nil {
		return nil, 0, networkFailure(ctx, err, StepReport, phase(at.Load()), u.Scheme == "http" && tr.sawTLS.Load(), c.opts.Bounds.HeaderBytes)
	}
	defer resp.Body.Close()
	report, f := judgeReport(ctx, resp, t.ReportToken != nil)
	return report, resp.StatusCode, f
}

func judgeReport(ctx context.Context, resp *http.Response, credential bool) (*podreport.Report, *failure) {
	switch status := resp.StatusCode; {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return nil, &failure{outcome: authOutcome(credential, true)}
	case status != http.StatusOK:
		return nil, &failure{outcome: UnexpectedStatus}
	case mediaTypeOf(resp.Header) != typeJSON:
		return nil, &failure{outcome: ReportInvalid}
	}
	body, err := openBody(ctx, resp, podreport.MaxBytes, nil)
	if err != nil {
		return nil, bodyFailure(ctx, err, StepReport)
	}
	data, err := io.ReadAll(body)
	if err != nil {
		return nil, bodyFailure(ctx, err, StepReport)
	}
	report, err := decodeReport(data)
	if err != nil {
		return nil, &failure{outcome: ReportInvalid}
	}
	return report, nil
}

// Bounds of what is kept of a report.
const (
	maxReportEntries = 1024
	maxReportWord    = 64
	maxReportCount   = 1000000
	maxReportText    = 200
	maxReportPath    = 600 // secrets/NAME/KEY, 253 bytes each at most
)

var errReport = errors.New("not a report")

// decodeReport decodes a report and makes what it says fit for a status.
func decodeReport(data []byte) (*podreport.Report, error) {
	var report podreport.Report
	if err := json.Unmarshal(data, &report); err != nil {
		return nil, errReport
	}
	if report.Version < 1 || (report.CatalogDigest != "" && !wellFormedDigest(report.CatalogDigest)) || !isWord(string(report.CatalogState)) {
		return nil, errReport
	}
	report.ServerVersion = escape(report.ServerVersion, maxReportWord)
	report.Missing = bounded(report.Missing, &report.Truncated)
	for i := range report.Missing {
		report.Missing[i] = escape(report.Missing[i], maxReportWord)
	}
	report.Credentials = bounded(report.Credentials, &report.Truncated)
	for i := range report.Credentials {
		report.Credentials[i].Path = escape(report.Credentials[i].Path, maxReportPath)
	}
	report.NotServed = cleanEntries(report.NotServed, &report.Truncated)
	report.Flagged = cleanEntries(report.Flagged, &report.Truncated)
	report.Drift = cleanDrift(report.Drift, &report.Truncated)
	report.Upstreams = bounded(report.Upstreams, &report.Truncated)
	for i := range report.Upstreams {
		cleanUpstream(&report.Upstreams[i])
	}
	return &report, nil
}

func cleanUpstream(u *podreport.Upstream) {
	u.Name = EscapeName(u.Name)
	u.State = podreport.UpstreamState(wordOr(string(u.State), "Unknown"))
	u.Message, u.Hint = escape(u.Message, maxReportText), escape(u.Hint, maxReportText)
	if !mcp.WellFormedVersion(u.Protocol) {
		u.Protocol = ""
	}
	words := []*string{&u.Reason, &u.Phase}
	if c := u.Child; c != nil {
		c.State, c.ExitCode = wordOr(c.State, "Unknown"), min(max(c.ExitCode, -1), 255)
		words = append(words, &c.Signal, &c.Restarted)
	}
	for _, word := range words {
		if *word != "" {
			*word = wordOr(*word, "Unknown")
		}
	}
	u.SkippedNames = u.SkippedNames[:min(len(u.SkippedNames), podreport.MaxSkippedNames)]
	for i := range u.SkippedNames {
		n := &u.SkippedNames[i]
		n.Name, n.Reason = EscapeName(n.Name), wordOr(n.Reason, "Unknown")
	}
	for _, n := range []*int{&u.Tools, &u.Resources, &u.Prompts, &u.Clients, &u.Skipped} {
		*n = min(max(*n, 0), maxReportCount)
	}
}

func cleanEntries(entries []podreport.NotServed, truncated *bool) []podreport.NotServed {
	entries = bounded(entries, truncated)
	for i := range entries {
		n := &entries[i]
		n.Name = EscapeName(n.Name)
		n.Kind = wordOr(n.Kind, "unknown")
		n.Reason = wordOr(n.Reason, "Unknown")
	}
	return entries
}

// cleanDrift keeps digests that are well formed and parts that are words.
func cleanDrift(entries []podreport.Drift, truncated *bool) []podreport.Drift {
	entries = bounded(entries, truncated)
	for i := range entries {
		d := &entries[i]
		d.Name = EscapeName(d.Name)
		d.Parts = bounded(d.Parts, truncated)
		for j := range d.Parts {
			d.Parts[j] = wordOr(d.Parts[j], "unknown")
		}
		for _, digest := range []*string{&d.Digest, &d.UpstreamDigest} {
			if rest, ok := strings.CutPrefix(*digest, contract.Version+":"); *digest != "" && (!ok || !wellFormedDigest(rest)) {
				*digest = unknownDigest
			}
		}
	}
	return entries
}

// unknownDigest stands for one that is not well formed.
const unknownDigest = "unknown"

func bounded[T any](entries []T, truncated *bool) []T {
	if len(entries) > maxReportEntries {
		*truncated = true
		return entries[:maxReportEntries]
	}
	return entries
}

// isWord: letters and digits, beginning with a letter; what a reason may be.
func isWord(s string) bool {
	for i, c := range []byte(s) {
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != "" && len(s) <= maxReportWord
}

func wordOr(s, otherwise string) string {
	if isWord(s) {
		return s
	}
	return otherwise
}

// wellFormedDigest: "sha256:" and 64 lower-case hexadecimal digits.
func wellFormedDigest(s string) bool {
	digits, ok := strings.CutPrefix(s, "sha256:")
	if !ok || len(digits) != 64 {
		return false
	}
	for _, c := range []byte(digits) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
