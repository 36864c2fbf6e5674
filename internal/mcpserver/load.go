// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/internal/mcpserver/registry"
	"github.com/espalier-dev/espalier/internal/mcpserver/upstream"
	"github.com/espalier-dev/espalier/internal/podreport"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// loader is what is loaded: the declared catalog, and that its upstreams said
// something new since.
type loader struct {
	// changed holds a value when what upstreams bring may have changed.
	changed chan struct{}

	mu     sync.Mutex // one load at a time
	config *serverconfig.Config
	digest string
	// told are the entries of upstreams of which the log says already that
	// they are not served.
	told map[podreport.NotServed]bool
}

// wake asks for one more pass. It never blocks.
func (l *loader) wake() {
	select {
	case l.changed <- struct{}{}:
	default: // One is due already.
	}
}

// load puts a new catalog in place.
func (s *Server) load(ctx context.Context, config *serverconfig.Config, digest string) {
	s.loader.mu.Lock()
	defer s.loader.mu.Unlock()
	s.loader.config, s.loader.digest = config, digest
	s.upstreams.Configure(config)
	s.credentials.Keep(files(config))
	s.put(ctx, "Catalog loaded")
}

// recompose puts what upstreams bring in place whenever they change. Changes
// during a pass give exactly one more.
func (s *Server) recompose(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.loader.changed:
		}
		s.loader.mu.Lock()
		if s.loader.config != nil {
			s.put(ctx, "Entries of upstreams changed")
		}
		s.loader.mu.Unlock()
	}
}

// tell logs what upstreams bring and is not served, once for as long as it is
// so.
func (l *loader) tell(log *slog.Logger, notServed []podreport.NotServed) {
	told := map[podreport.NotServed]bool{}
	for _, n := range notServed {
		if !l.told[n] && !told[n] {
			log.Warn("Entry of an upstream is not served", "kind", n.Kind, "entry", n.Name, "reason", n.Reason)
		}
		told[n] = true
	}
	l.told = told
}

// put makes a snapshot of the catalog and what upstreams bring and swaps it in.
func (s *Server) put(ctx context.Context, what string) {
	started := time.Now()
	previous := s.registry.Snapshot()
	settled := s.upstreams.Settled()
	composed := upstream.Compose(s.loader.config, s.upstreams.Listings())
	factories := registry.Factories{Tool: s.factory.Make, Resource: s.factory.MakeResource, Prompt: s.factory.MakePrompt}
	config := composed.Config
	if len(s.options.Extensions) > 0 {
		own := *config
		own.Extensions = slices.Concat(config.Extensions, s.options.Extensions)
		config = &own
	}
	next := registry.Build(config, s.loader.digest, factories, previous)
	next.Access.OnFailure = s.engine.OnAccessFailure
	next.OnWhenFailure = s.engine.OnWhenFailure
	next.Auth = s.auth.Build(config)
	s.noteHidden(next.Hidden)
	next.NotServed = append(next.NotServed, composed.NotServed...)
	next.Drift = composed.Drift
	next.Flagged = append(next.Flagged, composed.Flagged...)
	for _, name := range slices.Sorted(maps.Keys(next.Rejected)) {
		s.log.Warn("Entry is not served", "entry", name, "why", next.Rejected[name])
	}
	s.loader.tell(s.log, composed.NotServed)
	changes, stuck := s.registry.Swap(ctx, next)
	if settled {
		s.composed.Store(true)
	}
	if changes.Lists() {
		s.metrics.ListChanged.Inc()
	}
	s.metrics.Catalog(s.loader.digest, len(next.Tools()), len(next.NotServed), time.Now())
	s.log.Info(what, "digest", s.loader.digest, "tools", len(next.Tools()), "resources", len(next.Resources()),
		"templates", len(next.Templates()), "prompts", len(next.Prompts()), "notServed", len(next.NotServed),
		"listChanged", changes.Lists(), "stuckCalls", stuck, "took", time.Since(started).String())
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
