// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"

	"github.com/espalier-dev/espalier/hack/docs/page"
	"github.com/espalier-dev/espalier/internal/mcpprobe"
)

// facts are what a report has beside its outcome, where a message tells it.
var facts = map[mcpprobe.Outcome]mcpprobe.Report{
	mcpprobe.Timeout:             {Step: mcpprobe.StepTools},
	mcpprobe.Redirected:          {HTTPStatus: http.StatusFound},
	mcpprobe.UnexpectedStatus:    {HTTPStatus: http.StatusNotFound},
	mcpprobe.NotMCP:              {HTTPStatus: http.StatusOK, Flaw: mcpprobe.FlawMediaType, MediaType: "text/html"},
	mcpprobe.UnsupportedEncoding: {Encoding: "br"},
	mcpprobe.ResponseTooLarge:    {Step: mcpprobe.StepTools, Limit: 10 << 20},
	mcpprobe.AuthRequired:        {HTTPStatus: http.StatusUnauthorized},
	mcpprobe.AuthUnverified:      {HTTPStatus: http.StatusUnauthorized},
	mcpprobe.AuthRejected:        {HTTPStatus: http.StatusForbidden},
	mcpprobe.TokenFailed:         {HTTPStatus: http.StatusBadRequest},
	mcpprobe.HostRejected:        {HTTPStatus: http.StatusMisdirectedRequest},
	mcpprobe.UnsupportedProtocol: {Offered: []string{"2030-01-01"}},
	mcpprobe.HandshakeRejected:   {RPCCode: -32603},
	mcpprobe.SessionLost:         {Step: mcpprobe.StepTools, HTTPStatus: http.StatusNotFound},
	mcpprobe.ListFailed:          {Step: mcpprobe.StepTools, RPCCode: -32603},
	mcpprobe.ReportInvalid:       {Step: mcpprobe.StepReport},
}

// outcomes is a table of the messages of all outcomes but success, as status
// has them.
func outcomes() string {
	var rows [][]string
	for _, outcome := range mcpprobe.Outcomes {
		if outcome == mcpprobe.Proved || outcome == mcpprobe.Canceled {
			continue // The one is no failure, the other is in no status.
		}
		report := facts[outcome]
		report.Outcome = outcome
		if report.Step == "" {
			report.Step = mcpprobe.StepInitialize
		}
		rows = append(rows, []string{page.Code(string(outcome)), page.Cell(mcpprobe.Message(&report, mcpprobe.Where{Pod: "POD", Namespace: "NAMESPACE"}))})
	}
	return page.Table([]string{"reason", "an example of its message"}, rows)
}
