// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/resources"
)

// childKey names a child within a namespace.
type childKey struct {
	kind string
	name string
}

// childKinds are the kinds of children, with their plural for messages.
var childKinds = []struct {
	kind     string
	resource string
	of       client.Object
	list     func() client.ObjectList
}{
	{"Deployment", "deployments.apps", &appsv1.Deployment{}, func() client.ObjectList { return &appsv1.DeploymentList{} }},
	{"Service", "services", &corev1.Service{}, func() client.ObjectList { return &corev1.ServiceList{} }},
	{"ConfigMap", "configmaps", &corev1.ConfigMap{}, func() client.ObjectList { return &corev1.ConfigMapList{} }},
	{"PodDisruptionBudget", "poddisruptionbudgets.policy", &policyv1.PodDisruptionBudget{}, func() client.ObjectList { return &policyv1.PodDisruptionBudgetList{} }},
	{"NetworkPolicy", "networkpolicies.networking.k8s.io", &networkingv1.NetworkPolicy{}, func() client.ObjectList { return &networkingv1.NetworkPolicyList{} }},
}

func resourceOf(kind string) string {
	for _, k := range childKinds {
		if k.kind == kind {
			return k.resource
		}
	}
	return kind
}

// apply brings one child to its desired state and writes only when that
// changes something. live is the child in the cache, or nil.
func (r *MCPServerReconciler) apply(ctx context.Context, s *serverScope, desired client.Object) error {
	kind, name := desired.GetObjectKind().GroupVersionKind().Kind, desired.GetName()
	live := s.children[childKey{kind, name}]
	pair, err := fingerprint(desired, live)
	if err != nil {
		return err
	}
	if live != nil && s.memory.covered[childKey{kind, name}] == pair {
		return nil
	}
	want, err := resources.Render(desired)
	if err != nil {
		return err
	}
	hash := resources.Hash(want.Object)
	setAnnotation(want, mcpv1.AnnotationApplied, hash)
	if live == nil {
		// Not in the cache: absent, an orphan without our label, or foreign.
		if live, err = r.inspect(ctx, s, want); err != nil {
			return err
		}
	}
	if live != nil {
		current, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
		if err != nil {
			return err
		}
		if live.GetAnnotations()[mcpv1.AnnotationApplied] == hash && resources.Covers(current, want.Object) {
			s.memory.covered[childKey{kind, name}] = pair
			return nil
		}
		// Only this very object: one that replaced it meanwhile is a conflict.
		want.SetUID(live.GetUID())
	}
	var opts []client.ApplyOption
	if live != nil {
		opts = append(opts, client.ForceOwnership)
	}
	err = r.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(want), opts...)
	if live == nil && apierrors.IsConflict(err) {
		return foreign(kind, name)
	}
	if err != nil {
		return refusal(err, "patch", resourceOf(kind), name)
	}
	r.metrics.applied(kind)
	return s.wrote(want)
}

// fingerprint of a desired child and the version of the live one. To compare
// the two field by field costs more than all the rest of a pass, and gives the
// same for the same pair.
func fingerprint(desired, live client.Object) ([sha256.Size]byte, error) {
	text, err := json.Marshal(desired)
	if live != nil {
		text = append(append(text, live.GetUID()...), live.GetResourceVersion()...)
	}
	return sha256.Sum256(text), err
}

// wrote takes in what the API server made of a child, so that the status of
// this very pass tells of it.
func (s *serverScope) wrote(child *unstructured.Unstructured) error {
	key := childKey{child.GetKind(), child.GetName()}
	s.children[key] = child
	if key.kind != "Deployment" {
		return nil
	}
	s.deployment = &appsv1.Deployment{}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(child.Object, s.deployment)
}

// inspect looks at the live object of a child's name that the cache does not
// have. It returns it when it is ours or may be adopted, nil when there is
// none, and a problem when it is somebody else's.
func (r *MCPServerReconciler) inspect(ctx context.Context, s *serverScope, want *unstructured.Unstructured) (client.Object, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(want.GroupVersionKind())
	err := r.APIReader.Get(ctx, client.ObjectKeyFromObject(want), live)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // No object and no error: it is to be made.
	}
	if err != nil {
		return nil, refusal(err, "get", resourceOf(want.GetKind()), want.GetName())
	}
	return live, mayOwn(s.server, live)
}

// mayOwn reports whether server may take live for its child: its own by UID,
// or an orphan that bears its label and has no controller.
func mayOwn(server *mcpv1.MCPServer, live client.Object) error {
	owner := metav1.GetControllerOf(live)
	switch {
	case owner != nil && owner.UID == server.UID:
		return nil
	case owner == nil && live.GetLabels()[mcpv1.LabelServer] == server.Name && live.GetLabels()[mcpv1.LabelManagedBy] == mcpv1.ManagedBy:
		return nil
	case owner != nil && owner.Kind == "MCPServer" && owner.Name == server.Name && strings.HasPrefix(owner.APIVersion, mcpv1.GroupVersion.Group+"/"):
		return predecessor(live.GetObjectKind().GroupVersionKind().Kind, live.GetName())
	default:
		return foreign(live.GetObjectKind().GroupVersionKind().Kind, live.GetName())
	}
}

// predecessor: the child of an MCPServer of the same name that was deleted a
// moment ago. Kubernetes' garbage collector takes it, and then ours is made.
func predecessor(kind, name string) error {
	return &problem{
		condition: mcpv1.ConditionAvailable, reason: mcpv1.ReasonStarting, again: retryProblem,
		message: fmt.Sprintf("%s %s belongs to an MCPServer of this name that was deleted; it is waited for until it is gone.", kind, name),
	}
}

func foreign(kind, name string) error {
	return &problem{
		condition: mcpv1.ConditionAvailable, reason: mcpv1.ReasonForeignObject, stalled: true, again: retryProblem,
		message: fmt.Sprintf("%s %s exists and is not of this MCPServer; it was left as it is. Rename the MCPServer, or delete the object: kubectl get %s %s -o yaml.", kind, name, resourceOf(kind), name),
	}
}

// prune deletes owned children that are no longer wanted, by UID.
func (r *MCPServerReconciler) prune(ctx context.Context, s *serverScope, wanted map[childKey]bool) error {
	for key, child := range s.children {
		owner := metav1.GetControllerOf(child)
		if wanted[key] || owner == nil || owner.UID != s.server.UID || child.GetDeletionTimestamp() != nil {
			continue
		}
		uid := child.GetUID()
		err := r.Client.Delete(ctx, child, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return refusal(err, "delete", resourceOf(key.kind), key.name)
		}
	}
	return nil
}

// listChildren reads the server's children from the cache.
func (r *MCPServerReconciler) listChildren(ctx context.Context, server *mcpv1.MCPServer) (map[childKey]client.Object, error) {
	out := map[childKey]client.Object{}
	for _, k := range childKinds {
		list := k.list()
		if err := r.Client.List(ctx, list, client.InNamespace(server.Namespace), client.MatchingFields{indexServer: server.Name}); err != nil {
			return nil, err
		}
		items, err := objects(list)
		if err != nil {
			return nil, err
		}
		for _, item := range items {
			// The cache's typed objects have no kind of their own.
			item.GetObjectKind().SetGroupVersionKind(kindOf(k.kind))
			if err := mayOwn(server, item); err == nil {
				out[childKey{k.kind, item.GetName()}] = item
			}
		}
	}
	return out, nil
}

func setAnnotation(u *unstructured.Unstructured, key, value string) {
	annotations := u.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	u.SetAnnotations(annotations)
}
