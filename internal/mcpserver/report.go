// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"context"
	"maps"
	"path"
	"slices"
	"time"

	"github.com/espalier-dev/espalier/internal/mcpserver/admin"
	"github.com/espalier-dev/espalier/internal/mcpserver/auth"
	"github.com/espalier-dev/espalier/internal/mcpserver/handlers"
	"github.com/espalier-dev/espalier/internal/mcpserver/registry"
	"github.com/espalier-dev/espalier/internal/podreport"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

var _ admin.Source = (*Server)(nil)

// load puts a new catalog in place.
func (s *Server) load(ctx context.Context, config *serverconfig.Config, digest string) {
	started := time.Now()
	previous := s.registry.Snapshot()
	if len(s.options.Extensions) > 0 {
		own := *config
		own.Extensions = slices.Concat(config.Extensions, s.options.Extensions)
		config = &own
	}
	next := registry.Build(config, digest, s.factory.Make, previous)
	next.Access.OnFailure = s.engine.OnAccessFailure
	next.Auth = s.auth.Build(config)
	s.noteHidden(next.Hidden)
	for _, name := range slices.Sorted(maps.Keys(next.Rejected)) {
		s.log.Warn("Tool is not served", "tool", name, "why", next.Rejected[name])
	}
	s.credentials.Keep(files(config))
	listChanged, stuck := s.registry.Swap(ctx, next)
	if listChanged {
		s.metrics.ListChanged.Inc()
	}
	s.metrics.Catalog(digest, len(next.Tools()), len(next.NotServed), time.Now())
	s.log.Info("Catalog loaded", "digest", digest, "tools", len(next.Tools()), "notServed", len(next.NotServed),
		"listChanged", listChanged, "stuckCalls", stuck, "took", time.Since(started).String())
}

// noteHidden logs which extensions are hidden, once per new state.
func (s *Server) noteHidden(hidden []string) {
	if slices.Equal(s.hidden, hidden) {
		return
	}
	s.hidden = hidden
	if len(hidden) == 0 {
		s.log.Info("No extension is hidden any more")
		return
	}
	s.log.Warn("Extensions are hidden: they are declared twice and differently, or are no object", "extensions", hidden)
}

// files gives the credential files that a catalog names, sorted.
func files(config *serverconfig.Config) []string {
	var all []string
	if a := config.Auth; a != nil && a.JWT != nil && a.JWT.TLS != nil {
		for _, path := range []string{a.JWT.TLS.CAFile, a.JWT.TLS.CertFile, a.JWT.TLS.KeyFile} {
			if path != "" {
				all = append(all, path)
			}
		}
	}
	for i := range config.Tools {
		all = append(all, handlers.Files(&config.Tools[i])...)
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

// Trust implements admin.Source: who the served catalog trusts, and who the
// newest one does, served or not.
func (s *Server) Trust() []serverconfig.ProbeTrust {
	trust := []serverconfig.ProbeTrust{s.watcher.State().Trust}
	if snapshot := s.registry.Snapshot(); snapshot != nil {
		trust = append(trust, snapshot.Config.Probe)
	}
	return trust
}

// Ready implements admin.Source.
func (s *Server) Ready() (bool, string) {
	switch {
	case s.draining.Load():
		return false, "Draining"
	case s.registry.Snapshot() == nil:
		return false, "NoCatalog"
	}
	return true, ""
}
