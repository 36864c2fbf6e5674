// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/catalog"
	"github.com/espalier-dev/espalier/internal/prober"
	"github.com/espalier-dev/espalier/internal/references"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// serverScope is one pass over one MCPServer. Phases fill it from top to
// bottom; the status is computed from it alone.
type serverScope struct {
	key    types.NamespacedName
	server *mcpv1.MCPServer // as read; never changed
	memory *serverMemory
	now    time.Time

	// registrations that name the server, and what they come to.
	registrations []mcpv1.Registration
	compiled      map[catalog.ID]*catalog.Compiled
	catalog       *catalog.Catalog
	// upstreams of the spec, resolved.
	upstreams []catalog.Upstream
	// set is the catalog cut for travel; nil when it does not fit.
	set *serverconfig.Set

	// refs are the states of all Secrets and ConfigMaps that the server and
	// its served registrations name.
	refs map[references.ID]references.State

	// children in the cluster, by kind and name, and the Deployment among them.
	children   map[childKey]client.Object
	deployment *appsv1.Deployment
	pods       []*corev1.Pod

	observation prober.Observation

	// problems of phases, in their order.
	problems []*problem
	// requeueAfter is the earliest time at which somebody wants another pass.
	requeueAfter time.Duration
}

// again asks for another pass after d.
func (s *serverScope) again(d time.Duration) {
	if d > 0 && (s.requeueAfter == 0 || d < s.requeueAfter) {
		s.requeueAfter = d
	}
}

// problemOf returns the first problem that condition shows.
func (s *serverScope) problemOf(condition string) *problem {
	for _, p := range s.problems {
		if p.condition == condition {
			return p
		}
	}
	return nil
}
