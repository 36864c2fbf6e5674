// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"context"
	"slices"
	"time"

	"github.com/espalier-dev/espalier/internal/mcpserver/credentials"
	"github.com/espalier-dev/espalier/internal/mcpserver/registry"
)

// watchSources looks at what resources are read from and tells subscribers
// when it is something else. Changes between two looks are told as one.
func (s *Server) watchSources(ctx context.Context) {
	ticker := time.NewTicker(credentials.Recheck)
	defer ticker.Stop()
	known := map[string]string{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now := liveVersions(s.registry.Snapshot())
		changed := false
		for name, version := range now {
			// One that is new may have changed since somebody subscribed to it.
			before, ok := known[name]
			changed = changed || !ok || before != version
		}
		if known = now; changed {
			s.registry.ContentChanged()
		}
	}
}

// liveVersions are those of the resources that may change by themselves.
func liveVersions(snapshot *registry.Snapshot) map[string]string {
	out := map[string]string{}
	if snapshot == nil {
		return out
	}
	for _, r := range slices.Concat(snapshot.Resources(), snapshot.Templates()) {
		if r.Live() {
			out[r.Name] = r.Version()
		}
	}
	return out
}
