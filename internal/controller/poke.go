// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/podstate"
	"github.com/espalier-dev/espalier/internal/prober"
	"github.com/espalier-dev/espalier/internal/resources"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// A pod update makes the kubelet sync the pod's volumes at once instead of
// within a minute. Only metadata of the pod's status subresource is patched:
// the right to patch pods would be the right to change any image.

// poke is how often a pod was told of one catalog.
type poke struct {
	digest string
	count  int
	last   time.Time
}

// pokeDelays between pokes of one catalog. A poke that overtakes the
// kubelet's own watch of the ConfigMap is lost.
var pokeDelays = []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 30 * time.Second}

// pokeHeadStart is what the kubelet's watch of a ConfigMap gets before the
// first poke: without it one poke of three overtakes that watch and is lost,
// which costs a second.
const pokeHeadStart = 50 * time.Millisecond

func delayAfter(count int) time.Duration {
	return pokeDelays[min(count, len(pokeDelays))-1]
}

// pokePods tells pods that report another catalog than the wanted one to look
// again, and all pods when a mounted Secret or ConfigMap changed.
func (r *MCPServerReconciler) pokePods(ctx context.Context, s *serverScope) error {
	if s.set == nil || !r.catalogArrived(s) {
		return nil
	}
	if s.memory.arrived != s.set.Digest {
		s.memory.arrived, s.memory.arrivedAt = s.set.Digest, s.now
	}
	rotated := s.credentialsChanged()
	alive := map[types.UID]bool{}
	for _, pod := range s.pods {
		alive[pod.UID] = true
		if pod.DeletionTimestamp != nil || pod.Status.PodIP == "" {
			continue
		}
		reported, known := s.reportedDigest(pod)
		stale := known && reported != s.set.Digest
		if !stale && !rotated {
			delete(s.memory.pokes, pod.UID)
			continue
		}
		if err := r.pokeWhenDue(ctx, s, pod, rotated && !stale); err != nil {
			return err
		}
	}
	for uid := range s.memory.pokes {
		if !alive[uid] {
			delete(s.memory.pokes, uid)
		}
	}
	return nil
}

// catalogArrived reports whether the wanted catalog is in the operator's own
// cache: by then the kubelet's watch has most likely seen it too.
func (r *MCPServerReconciler) catalogArrived(s *serverScope) bool {
	child, ok := s.children[childKey{"ConfigMap", resources.CatalogName(s.server, 0)}]
	if !ok {
		return false
	}
	cm, ok := child.(*corev1.ConfigMap)
	return ok && cm.Data[serverconfig.IndexKey] == string(s.set.Index)
}

func (r *MCPServerReconciler) pokeWhenDue(ctx context.Context, s *serverScope, pod *corev1.Pod, once bool) error {
	p := s.memory.pokes[pod.UID]
	if p == nil || p.digest != s.set.Digest || once {
		p = &poke{digest: s.set.Digest}
		s.memory.pokes[pod.UID] = p
	}
	due := s.memory.arrivedAt.Add(pokeHeadStart)
	if p.count > 0 {
		due = p.last.Add(delayAfter(p.count))
	}
	if wait := due.Sub(s.now); wait > 0 && !once {
		s.again(wait)
		return nil
	}
	if err := r.pokePod(ctx, pod, s.set.Digest); err != nil {
		return err
	}
	p.count++
	p.last = s.now
	r.metrics.poked(p.count > 1)
	if !once {
		s.again(delayAfter(p.count))
	}
	return nil
}

// pokePod grows the number in the pod's annotation DIGEST-N.
func (r *MCPServerReconciler) pokePod(ctx context.Context, pod *corev1.Pod, digest string) error {
	value := pod.Annotations[mcpv1.AnnotationCatalog]
	n := 0
	if at := strings.LastIndexByte(value, '-'); at >= 0 {
		n, _ = strconv.Atoi(value[at+1:])
	}
	short := strings.TrimPrefix(digest, "sha256:")
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{
		mcpv1.AnnotationCatalog: fmt.Sprintf("%.16s-%d", short, n+1),
	}}})
	if err != nil {
		return err
	}
	err = r.Client.SubResource("status").Patch(ctx, pod.DeepCopy(), client.RawPatch(types.MergePatchType, patch))
	if apierrors.IsNotFound(err) {
		return nil
	}
	return refusal(err, "patch", "pods/status", pod.Name)
}

// openGates marks pods that were proved as ready for traffic, once each.
func (r *MCPServerReconciler) openGates(ctx context.Context, s *serverScope) error {
	for _, pod := range s.pods {
		if !gated(pod) || pod.DeletionTimestamp != nil {
			continue
		}
		obs := s.observed(pod)
		if obs == nil || obs.Verdict != prober.Proved || podstate.Condition(pod, resources.GateProved) == corev1.ConditionTrue {
			continue
		}
		patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []map[string]any{{
			"type": resources.GateProved, "status": corev1.ConditionTrue, "reason": mcpv1.ReasonProved,
			"message": "The pod answered as an MCP server.", "lastTransitionTime": s.now.UTC().Format(time.RFC3339),
		}}}})
		if err != nil {
			return err
		}
		err = r.Client.SubResource("status").Patch(ctx, pod.DeepCopy(), client.RawPatch(types.StrategicMergePatchType, patch))
		if err := refusal(client.IgnoreNotFound(err), "patch", "pods/status", pod.Name); err != nil {
			return err
		}
	}
	return nil
}

func gated(pod *corev1.Pod) bool {
	for _, g := range pod.Spec.ReadinessGates {
		if g.ConditionType == resources.GateProved {
			return true
		}
	}
	return false
}
