// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"time"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/catalog"
	"github.com/espalier-dev/espalier/internal/clusterkeys"
	"github.com/espalier-dev/espalier/internal/resources"
)

// ClusterKeys is what the controller needs of internal/clusterkeys.
type ClusterKeys interface {
	Current(ctx context.Context) (clusterkeys.Keys, error)
}

// lookAtKeys is how often a catalog with the cluster's keys is made anew, to
// take in a rotation.
const lookAtKeys = clusterkeys.Refresh + 5*time.Second

// surround adds to the catalog what the cluster knows and no spec has.
func (r *MCPServerReconciler) surround(ctx context.Context, s *serverScope) error {
	around := catalog.Surroundings{URL: resources.URL(s.server)}
	if a := s.server.Spec.Auth; a != nil && a.ServiceAccounts != nil {
		keys, err := r.ClusterKeys.Current(ctx)
		if err != nil {
			return err
		}
		if keys.Why != "" {
			s.problems = append(s.problems, keysProblem(keys.Why))
		}
		around.Issuer, around.JWKS = keys.Issuer, keys.JWKS
		s.again(lookAtKeys)
	}
	s.catalog.Surround(around)
	return nil
}

func keysProblem(why string) *problem {
	return &problem{
		condition: mcpv1.ConditionResolvedRefs, reason: mcpv1.ReasonClusterKeysUnavailable,
		message: fmt.Sprintf("The keys of service account tokens are not to be had: %s. No service account can call the server. "+
			"Let the operator get %s and %s of the API server, or leave spec.auth.serviceAccounts out.", why, clusterkeys.PathDiscovery, clusterkeys.PathKeys),
	}
}
