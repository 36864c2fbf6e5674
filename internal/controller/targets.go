// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/catalog"
	"github.com/espalier-dev/espalier/internal/dialing"
	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/podreport"
	"github.com/espalier-dev/espalier/internal/podstate"
	"github.com/espalier-dev/espalier/internal/prober"
	"github.com/espalier-dev/espalier/internal/resources"
)

// Prober is what the controller needs of internal/prober.
type Prober interface {
	Ensure(key prober.Key, spec prober.Spec)
	Result(key prober.Key) prober.Observation
	Forget(key prober.Key)
}

// Targets that stand for no pod.
const (
	targetService  = "service"
	targetExternal = "external"
)

// Defaults of spec.probe.
const (
	defaultProbeInterval    = 30
	defaultProbeTimeout     = 10
	defaultFailureThreshold = 3
)

// ensureTargets tells the prober whom to probe, and reads what it knows.
func (r *MCPServerReconciler) ensureTargets(ctx context.Context, s *serverScope) error {
	if err := r.readDialMaterial(ctx, s); err != nil {
		return err
	}
	spec := prober.Spec{
		Interval:         time.Duration(probeInterval(s.server)) * time.Second,
		Timeout:          time.Duration(probeTimeout(s.server)) * time.Second,
		FailureThreshold: failureThreshold(s.server),
		Targets:          r.targets(s),
	}
	r.Prober.Ensure(s.key, spec)
	s.observation = r.Prober.Result(s.key)
	return nil
}

func (r *MCPServerReconciler) targets(s *serverScope) []prober.Target {
	switch {
	case !resources.HasPods(s.server):
		return []prober.Target{r.externalTarget(s)}
	case resources.Replicas(s.server) == 0:
		return nil
	case probeVia(s.server) == mcpv1.ProbeViaService:
		return r.serviceTarget(s)
	}
	var out []prober.Target
	for _, pod := range s.pods {
		if podstate.Dialable(pod) {
			out = append(out, r.podTarget(s, pod))
		}
	}
	return out
}

func (r *MCPServerReconciler) podTarget(s *serverScope, pod *corev1.Pod) prober.Target {
	port := strconv.Itoa(int(resources.ContainerPort(s.server)))
	t := prober.Target{
		ID: string(pod.UID), Name: pod.Name,
		Identity: s.identity(string(pod.UID), pod.Labels["pod-template-hash"], strconv.Itoa(restarts(pod)), pod.Status.PodIP),
		Probe:    r.probe(s),
	}
	t.Probe.DialAddress = net.JoinHostPort(pod.Status.PodIP, port)
	t.Probe.EraHint = s.eraHint(pod.CreationTimestamp.Time)
	if s.set != nil {
		t.WantCatalogDigest = s.set.Digest
		t.Probe.ReportURL = fmt.Sprintf("http://%s%s", net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(resources.PortInternal)), podreport.Path)
		t.Probe.ReportToken = r.Tokens(audience(s.key))
	}
	return t
}

// serviceTarget stands for all pods; there is none while none takes traffic.
func (r *MCPServerReconciler) serviceTarget(s *serverScope) []prober.Target {
	var serving []string
	for _, pod := range s.pods {
		if podstate.TakesTraffic(pod) {
			serving = append(serving, string(pod.UID)+"/"+strconv.Itoa(restarts(pod)))
		}
	}
	if len(serving) == 0 {
		return nil
	}
	slices.Sort(serving)
	return []prober.Target{{
		ID: targetService, Name: resources.Name(s.server), Shared: true,
		Identity: s.identity(serving...), Probe: r.probe(s),
	}}
}

func (r *MCPServerReconciler) externalTarget(s *serverScope) prober.Target {
	t := prober.Target{ID: targetExternal, Name: s.server.Name, Probe: s.memory.dial.Target(s.server)}
	t.Probe.EraHint = s.eraHint(s.server.CreationTimestamp.Time)
	t.Identity = s.identity(s.server.Spec.External.URL)
	if s.memory.endpoint != t.Identity {
		s.memory.endpoint, s.memory.endpointSince = t.Identity, s.now
	}
	return t
}

// probe is what all targets that are pods have in common. Where the server
// asks who calls, or shows callers different lists, the probe shows its token:
// the server lets it see all and do nothing.
func (r *MCPServerReconciler) probe(s *serverScope) mcpprobe.Target {
	t := s.memory.dial.Target(s.server)
	if resources.Fronted(s.server) && catalog.ProvesItself(s.server) {
		t.BearerToken = r.Tokens(audience(s.key))
	}
	return t
}

// eraHint is the era that status tells of what is there since so long: it
// outlives the operator, and a server that is frozen meanwhile is spared a
// handshake of the other era.
func (s *serverScope) eraHint(since time.Time) mcpprobe.Era {
	status := &s.server.Status
	switch {
	case status.Server == nil || status.Server.ProtocolVersion == "" || status.LastProbe == nil || status.LastProbe.Time.Time.Before(since):
		return mcpprobe.EraUnknown
	case mcp.IsModern(status.Server.ProtocolVersion):
		return mcpprobe.EraModern
	}
	return mcpprobe.EraLegacy
}

// identity is a hash of all that a result holds for.
func (s *serverScope) identity(parts ...string) string {
	return resources.Hash(map[string]any{
		"parts": parts, "probe": s.server.Spec.Probe, "endpoint": resources.URL(s.server),
		"external": s.server.Spec.External, "credentials": s.memory.dial.version,
	})
}

func audience(key types.NamespacedName) string { return key.Namespace + "/" + key.Name }

// observed is what the prober knows of pod, or of the Service in its stead.
func (s *serverScope) observed(pod *corev1.Pod) *prober.TargetObservation {
	for i := range s.observation.Targets {
		t := &s.observation.Targets[i]
		if t.ID == string(pod.UID) || t.ID == targetService {
			return t
		}
	}
	return nil
}

// reportedDigest is the catalog that pod says it serves.
func (s *serverScope) reportedDigest(pod *corev1.Pod) (string, bool) {
	obs := s.observed(pod)
	switch {
	case obs == nil:
		return "", false
	case obs.Pod != nil:
		return obs.Pod.CatalogDigest, true
	case obs.ID == targetService && obs.Report != nil && obs.Report.CatalogDigest != "":
		return obs.Report.CatalogDigest, true
	default:
		return "", false
	}
}

func probeVia(server *mcpv1.MCPServer) mcpv1.ProbeVia {
	if p := server.Spec.Probe; p != nil && p.Via != "" {
		return p.Via
	}
	return mcpv1.ProbeViaPods
}

func probeInterval(server *mcpv1.MCPServer) int {
	if p := server.Spec.Probe; p != nil && p.IntervalSeconds != nil {
		return int(*p.IntervalSeconds)
	}
	return defaultProbeInterval
}

func probeTimeout(server *mcpv1.MCPServer) int {
	if p := server.Spec.Probe; p != nil && p.TimeoutSeconds != nil {
		return int(*p.TimeoutSeconds)
	}
	return min(defaultProbeTimeout, probeInterval(server))
}

func failureThreshold(server *mcpv1.MCPServer) int {
	if p := server.Spec.Probe; p != nil && p.FailureThreshold != nil {
		return int(*p.FailureThreshold)
	}
	return defaultFailureThreshold
}

// dialMaterial is what the probe sends that comes from Secrets and
// ConfigMaps, of one version of them.
type dialMaterial struct {
	version string
	dialing.Material
}

// readDialMaterial reads Secrets and ConfigMaps that the probe needs when
// they, or the spec, changed since the last time.
func (r *MCPServerReconciler) readDialMaterial(ctx context.Context, s *serverScope) error {
	refs := catalog.ProbeRefs(s.server)
	version := resources.Hash(map[string]any{
		"refs": s.versions(refs), "external": s.server.Spec.External, "probe": s.server.Spec.Probe,
		"tls": s.server.Spec.TLS,
	})
	if s.memory.dial.version == version {
		return nil
	}
	values, err := r.readValues(ctx, s.key.Namespace, refs)
	if err != nil {
		return err
	}
	s.memory.dial = dialMaterial{version: version, Material: dialing.Gather(s.server, values)}
	return nil
}
