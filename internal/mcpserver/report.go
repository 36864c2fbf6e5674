// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"path"
	"slices"

	"github.com/espalier-dev/espalier/internal/mcpserver/admin"
	"github.com/espalier-dev/espalier/internal/mcpserver/auth"
	"github.com/espalier-dev/espalier/internal/mcpserver/handlers"
	"github.com/espalier-dev/espalier/internal/mcpserver/session"
	"github.com/espalier-dev/espalier/internal/podreport"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

var _ admin.Source = (*Server)(nil)

// files gives the credential files that a catalog names, sorted.
func files(config *serverconfig.Config) []string {
	var all []string
	if a := config.Auth; a != nil && a.JWT != nil {
		all = append(all, a.JWT.TLS.Files()...)
	}
	all = append(all, config.TLS.Files()...)
	for i := range config.Tools {
		all = append(all, handlers.Files(&config.Tools[i])...)
	}
	for _, list := range [][]serverconfig.Resource{config.Resources, config.Templates} {
		for i := range list {
			all = append(all, handlers.ResourceFiles(&list[i])...)
		}
	}
	for i := range config.Upstreams {
		all = append(all, config.Upstreams[i].Files()...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Report implements admin.Source.
func (s *Server) Report() podreport.Report {
	state := s.watcher.State()
	report := podreport.Report{
		Version: podreport.Version, ServerVersion: s.options.Version,
		CatalogState: state.State, Missing: state.Missing,
	}
	snapshot := s.registry.Snapshot()
	if snapshot == nil {
		return report
	}
	report.CatalogDigest = snapshot.Digest
	report.NotServed = slices.Clone(snapshot.NotServed)
	report.Flagged = slices.Clone(snapshot.Flagged)
	report.Drift = slices.Clone(snapshot.Drift)
	report.Upstreams = s.upstreams.Report(snapshot.Sources)
	for _, path := range files(snapshot.Config) {
		report.Credentials = append(report.Credentials, s.credentials.Status(path))
	}
	if a := snapshot.Config.Auth; a != nil && a.APIKeys != nil {
		report.Credentials = append(report.Credentials, keysStatus(a.APIKeys.Secret, snapshot.Auth))
	}
	return report
}

// keysStatus tells of the Secret of API keys as of any other credential.
func keysStatus(secret string, a *auth.Authenticator) podreport.Credential {
	c := podreport.Credential{Path: path.Join(serverconfig.CredentialsSecrets, secret)}
	present, at := a.KeysStatus()
	if c.Present = present; present {
		c.LoadedAt = &at
	}
	return c
}

// Sessions implements admin.Source.
func (s *Server) Sessions() []session.Info { return s.engine.Sessions().List() }

// Trust implements admin.Source: who the served catalog trusts, and who the
// newest one does, served or not.
func (s *Server) Trust() []serverconfig.ProbeTrust {
	trust := []serverconfig.ProbeTrust{s.watcher.State().Trust}
	if snapshot := s.registry.Snapshot(); snapshot != nil {
		trust = append(trust, snapshot.Config.Probe)
	}
	return trust
}

// Components implements admin.Source.
func (s *Server) Components() []admin.Component {
	var out []admin.Component
	for _, u := range s.upstreams.Report(nil) {
		out = append(out, admin.Component{Name: "upstream/" + u.Name, State: string(u.State), Reason: u.Reason})
	}
	return out
}

// Ready implements admin.Source.
func (s *Server) Ready() (bool, string) {
	switch {
	case s.draining.Load():
		return false, "Draining"
	case s.registry.Snapshot() == nil:
		return false, "NoCatalog"
	case !s.serving.Ready():
		return false, "NoCertificate"
	case !s.peers.Settled():
		return false, "PeersPending"
	case !s.composed.Load():
		if s.upstreams.Settled() {
			s.loader.wake() // Those that did not answer wake nobody.
		}
		return false, "UpstreamsPending"
	}
	return true, ""
}
