// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package admin serves the internal port: the report to the operator, health,
// readiness, metrics. Nothing there touches a backend.
package admin

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/internal/mcpserver/auth"
	"github.com/espalier-dev/espalier/internal/mcpserver/peers"
	"github.com/espalier-dev/espalier/internal/mcpserver/session"
	"github.com/espalier-dev/espalier/internal/podreport"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// Source is what the internal port tells of.
type Source interface {
	// Report gives the report as of now; it may be too large.
	Report() podreport.Report
	// Trust gives whose tokens may read the report.
	Trust() []serverconfig.ProbeTrust
	// Ready reports whether new requests are welcome; why is a word else.
	Ready() (ok bool, why string)
	// Components are parts whose state /healthz tells. None of them makes
	// the process itself unhealthy.
	Components() []Component
	// Sessions are those of legacy clients.
	Sessions() []session.Info
}

// SessionsPath is where the sessions of a replica are listed, to who may read
// its report.
const SessionsPath = "/sessions"

// Component is a part of the server.
type Component struct{ Name, State, Reason string }

// Handler serves the internal port. Any Host is welcome: kubelets call by the
// pod's address. forwarded takes what other replicas pass on.
func Handler(source Source, metrics, forwarded http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, health(source.Components())) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if ok, why := source.Ready(); !ok {
			say(w, http.StatusServiceUnavailable, why)
			return
		}
		say(w, http.StatusOK, "ok")
	})
	mux.Handle("GET /metrics", metrics)
	mux.Handle(peers.Path+"/", forwarded)
	mux.HandleFunc("GET "+podreport.Path, trusted(source, func(w io.Writer) {
		report := source.Report()
		_, _ = w.Write(encode(&report)) // A reader that is gone is no error of ours.
	}))
	mux.HandleFunc("GET "+SessionsPath, trusted(source, func(w io.Writer) {
		_ = json.NewEncoder(w).Encode(map[string]any{"sessions": source.Sessions()}) // Likewise.
	}))
	return mux
}

// trusted writes JSON to the operator only.
func trusted(source Source, write func(io.Writer)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if auth.AuthorizeProbe(r, source.Trust(), time.Now()) != nil {
			w.Header().Set("WWW-Authenticate", "Bearer")
			say(w, http.StatusUnauthorized, "Unauthorized")
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		write(w)
	}
}

// health is "ok", and a line per component: NAME STATE REASON.
func health(components []Component) string {
	lines := []string{"ok"}
	for _, c := range components {
		lines = append(lines, strings.TrimSpace(c.Name+" "+c.State+" "+c.Reason))
	}
	return strings.Join(lines, "\n")
}

func say(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text+"\n")
}

// encode writes the report and cuts its lists until it fits.
func encode(report *podreport.Report) []byte {
	for {
		raw, err := json.Marshal(report)
		if err != nil {
			return []byte("{}") // Plain data: it cannot fail.
		}
		if len(raw) <= podreport.MaxBytes || len(report.Credentials)+len(report.NotServed)+len(report.Flagged) == 0 {
			return raw
		}
		report.Truncated = true
		report.Credentials = report.Credentials[:len(report.Credentials)/2]
		report.NotServed = report.NotServed[:len(report.NotServed)/2]
		report.Flagged = report.Flagged[:len(report.Flagged)/2]
	}
}
