// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/espalier-dev/espalier/internal/mcpserver/admin"
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
	factories := registry.Factories{Tool: s.factory.Make, Resource: s.factory.MakeResource, Prompt: s.factory.MakePrompt}
	next := registry.Build(config, digest, factories, previous)
	for _, name := range slices.Sorted(maps.Keys(next.Rejected)) {
		s.log.Warn("Entry is not served", "entry", name, "why", next.Rejected[name])
	}
	s.credentials.Keep(files(config))
	changes, stuck := s.registry.Swap(ctx, next)
	if changes.Lists() {
		s.metrics.ListChanged.Inc()
	}
	s.metrics.Catalog(digest, len(next.Tools()), len(next.NotServed), time.Now())
	s.log.Info("Catalog loaded", "digest", digest, "tools", len(next.Tools()), "resources", len(next.Resources()),
		"templates", len(next.Templates()), "prompts", len(next.Prompts()), "notServed", len(next.NotServed),
		"listChanged", changes.Lists(), "stuckCalls", stuck, "took", time.Since(started).String())
}

// files gives the credential files that a catalog names, sorted.
func files(config *serverconfig.Config) []string {
	var all []string
	for i := range config.Tools {
		all = append(all, handlers.Files(&config.Tools[i])...)
	}
	for _, list := range [][]serverconfig.Resource{config.Resources, config.Templates} {
		for i := range list {
			all = append(all, handlers.ResourceFiles(&list[i])...)
		}
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
	return report
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
