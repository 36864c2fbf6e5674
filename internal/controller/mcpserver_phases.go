// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/catalog"
	"github.com/espalier-dev/espalier/internal/podstate"
	"github.com/espalier-dev/espalier/internal/resources"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// phase does one thing of a pass. A problem it returns is shown by a
// condition and does not keep later phases from their work; any other error
// ends the pass.
type phase struct {
	name string
	run  func(*MCPServerReconciler, context.Context, *serverScope) error
}

// serverPhases in their order: spec flows down to the children, then what is
// observed flows up.
var serverPhases = []phase{
	{"registrations", (*MCPServerReconciler).loadRegistrations},
	{"catalog", (*MCPServerReconciler).buildCatalog},
	{"references", (*MCPServerReconciler).resolveRefs},
	{"children", (*MCPServerReconciler).loadChildren},
	{"configmaps", (*MCPServerReconciler).applyCatalog},
	{"workload", (*MCPServerReconciler).applyWorkload},
	{"prune", (*MCPServerReconciler).pruneChildren},
	{"probe", (*MCPServerReconciler).ensureTargets},
	{"gates", (*MCPServerReconciler).openGates},
	{"poke", (*MCPServerReconciler).pokePods},
}

func (r *MCPServerReconciler) runPhases(ctx context.Context, s *serverScope) error {
	for _, p := range serverPhases {
		err := p.runTraced(r, ctx, s)
		if known := asProblem(err); known != nil {
			s.problems = append(s.problems, known)
			s.again(known.again)
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

// loadRegistrations reads what names the server.
func (r *MCPServerReconciler) loadRegistrations(ctx context.Context, s *serverScope) error {
	for i := range registrationKinds {
		found, err := registrationKinds[i].naming(ctx, r.Client, s.key.Namespace, s.server.Name)
		if err != nil {
			return err
		}
		for _, registration := range found {
			if registration.GetDeletionTimestamp() == nil && catalog.Selects(registration, s.server) {
				s.registrations = append(s.registrations, registration)
			}
		}
	}
	slices.SortFunc(s.registrations, func(a, b mcpv1.Registration) int { return catalog.IDOf(a).Compare(catalog.IDOf(b)) })
	return nil
}

// buildCatalog decides what the server serves.
func (r *MCPServerReconciler) buildCatalog(ctx context.Context, s *serverScope) error {
	if !resources.Fronted(s.server) {
		return nil
	}
	s.compiled = make(map[catalog.ID]*catalog.Compiled, len(s.registrations))
	compiled := make([]*catalog.Compiled, 0, len(s.registrations))
	for _, registration := range s.registrations {
		c := r.memory.compile(registration.GetUID(), registration.GetGeneration(), func() *catalog.Compiled { return catalog.Compile(registration) })
		s.compiled[c.ID] = c
		compiled = append(compiled, c)
	}
	s.catalog = catalog.Build(s.server, compiled, serverconfig.ProbeTrust{Audience: audience(s.key), Keys: r.TrustedKeys})
	if err := r.addUpstreams(ctx, s); err != nil {
		return err
	}
	if err := r.surround(ctx, s); err != nil {
		return err
	}
	set, err := serverconfig.Cut(s.catalog.Config)
	if errors.Is(err, serverconfig.ErrTooLarge) {
		return &problem{
			condition: mcpv1.ConditionSynced, reason: mcpv1.ReasonCatalogTooLarge, stalled: true,
			message: fmt.Sprintf("The catalog of %d tools, resources and prompts does not fit: %v. Spread them over several MCPServers, or shorten descriptions, schemas and contents. The pods keep the catalog they have.", len(s.catalog.Served), err),
		}
	}
	if err != nil {
		return err
	}
	s.set = set
	s.memory.rendered(set.Digest, s.catalog, s.now)
	return nil
}

// loadChildren reads children and pods from the cache.
func (r *MCPServerReconciler) loadChildren(ctx context.Context, s *serverScope) error {
	children, err := r.listChildren(ctx, s.server)
	if err != nil {
		return err
	}
	s.children = children
	s.deployment, _ = children[childKey{"Deployment", resources.Name(s.server)}].(*appsv1.Deployment)
	var pods corev1.PodList
	if err := r.Client.List(ctx, &pods, client.InNamespace(s.key.Namespace), client.MatchingFields{indexServer: s.server.Name}); err != nil {
		return err
	}
	for i := range pods.Items {
		s.pods = append(s.pods, &pods.Items[i])
	}
	podstate.Sort(s.pods)
	return nil
}

// applyCatalog writes the catalog's ConfigMaps, shards before the index that
// names them.
func (r *MCPServerReconciler) applyCatalog(ctx context.Context, s *serverScope) error {
	if s.set == nil {
		return nil
	}
	maps := resources.CatalogConfigMaps(s.server, s.set)
	slices.Reverse(maps)
	for _, cm := range maps {
		if err := r.apply(ctx, s, cm); err != nil {
			return err
		}
	}
	return nil
}

// applyWorkload writes Services, PodDisruptionBudget, NetworkPolicy and
// Deployment, the policy before the pods that it is for: without it none are
// made that were not there before. One that
// is refused does not keep the others back; the first refusal is told.
func (r *MCPServerReconciler) applyWorkload(ctx context.Context, s *serverScope) error {
	if !resources.HasPods(s.server) {
		return nil
	}
	stage, err := r.stageImage(ctx, s)
	if err != nil {
		return err
	}
	var unguarded error
	steps := []func() error{
		func() error {
			service := resources.Service(s.server)
			if stage.mark != "" {
				service.Labels[mcpv1.LabelRollout] = stage.mark
			}
			return r.apply(ctx, s, service)
		},
		func() error {
			if peers := resources.PeersService(s.server); peers != nil {
				return r.apply(ctx, s, peers)
			}
			return nil
		},
		func() error {
			if pdb := resources.PodDisruptionBudget(s.server); pdb != nil {
				return r.apply(ctx, s, pdb)
			}
			return nil
		},
		func() error {
			if policy := r.networkPolicy(s); policy != nil {
				unguarded = r.apply(ctx, s, policy)
			}
			return unguarded
		},
		func() error {
			if unguarded != nil && s.deployment == nil {
				return nil
			}
			deployment, err := r.renderDeployment(s, stage.image)
			if err != nil {
				return err
			}
			return r.apply(ctx, s, deployment)
		},
	}
	var refused error
	for _, step := range steps {
		err := step()
		if err != nil && asProblem(err) == nil {
			return err
		}
		if refused == nil {
			refused = err
		}
	}
	return refused
}

// networkPolicy that the server wants, or nil.
func (r *MCPServerReconciler) networkPolicy(s *serverScope) *networkingv1.NetworkPolicy {
	var config *serverconfig.Config
	if s.catalog != nil {
		config = s.catalog.Config
	}
	return r.Resources.NetworkPolicy(s.server, config)
}

func (r *MCPServerReconciler) renderDeployment(s *serverScope, image string) (*appsv1.Deployment, error) {
	options := r.Resources
	options.ServerImage = image
	in := resources.TemplateInput{Server: s.server, EnvDigest: s.envDigest()}
	if s.catalog != nil {
		in.Refs = s.catalog.Refs
	}
	deployment, err := options.Deployment(in, s.deployment)
	if errors.Is(err, resources.ErrInvalidPodTemplate) {
		return nil, &problem{
			condition: mcpv1.ConditionAccepted, reason: mcpv1.ReasonInvalidPodTemplate, stalled: true,
			message: fmt.Sprintf("spec.workload.podTemplate: %s. The pods stay as they are.", bounded(err.Error(), 600)),
		}
	}
	if err != nil {
		return nil, err
	}
	if err := r.PodSecurity.Check(&deployment.Spec.Template); err != nil {
		return nil, &problem{
			condition: mcpv1.ConditionAccepted, reason: mcpv1.ReasonPodSecurityViolation, stalled: true,
			message: fmt.Sprintf("spec.workload: %s. Change it, or start the operator with another --pod-security. The pods stay as they are.", bounded(err.Error(), 600)),
		}
	}
	return deployment, nil
}

// pruneChildren deletes children that the spec no longer wants. A catalog
// that does not fit leaves the old one where it is.
func (r *MCPServerReconciler) pruneChildren(ctx context.Context, s *serverScope) error {
	wanted := map[childKey]bool{}
	if resources.HasPods(s.server) {
		name := resources.Name(s.server)
		wanted[childKey{"Deployment", name}] = true
		wanted[childKey{"Service", name}] = true
		if resources.PeersService(s.server) != nil {
			wanted[childKey{"Service", resources.PeersName(s.server)}] = true
		}
		if resources.PodDisruptionBudget(s.server) != nil {
			wanted[childKey{"PodDisruptionBudget", name}] = true
		}
		if s.server.Spec.NetworkPolicy != nil {
			wanted[childKey{"NetworkPolicy", name}] = true
		}
	}
	switch {
	case s.set != nil:
		for _, cm := range resources.CatalogConfigMaps(s.server, s.set) {
			wanted[childKey{"ConfigMap", cm.Name}] = true
		}
	case resources.Fronted(s.server):
		for shard := range serverconfig.MaxShards + 1 {
			wanted[childKey{"ConfigMap", resources.CatalogName(s.server, shard)}] = true
		}
	}
	return r.prune(ctx, s, wanted)
}
