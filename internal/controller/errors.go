// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controller reconciles MCPServers and what they serve: phases over a
// scope, one status write at the end. It dials no MCP server; what is known of pods
// comes from the prober.
package controller

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
)

// problem is why a phase could not do its work, in words for a condition.
// Other errors are transient: they are retried with backoff and tell nothing
// about the object.
type problem struct {
	// Condition that shows it.
	condition string
	reason    string
	message   string
	// stalled: only a change of the object, or of the cluster, can help.
	stalled bool
	// again is when to look whether it is still so; 0 for never.
	again time.Duration
}

func (p *problem) Error() string { return p.reason + ": " + p.message }

// asProblem gives err as a problem, or nil when it is transient.
func asProblem(err error) *problem {
	var p *problem
	if errors.As(err, &p) {
		return p
	}
	return nil
}

// retryProblem is how often a problem that has no event of its own is looked
// at again.
const retryProblem = 30 * time.Second

// retryConflict is how long the cache is given to catch up with a write.
const retryConflict = 50 * time.Millisecond

// refusal turns what the API server answers to a write into a problem where
// it is one. The server's words are its own, not a peer's, and name the field.
func refusal(err error, verb, resource, name string) error {
	switch {
	case err == nil:
		return nil
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return &problem{condition: mcpv1.ConditionAvailable, reason: mcpv1.ReasonApplyFailed, message: "The namespace is being deleted."}
	case apierrors.IsForbidden(err):
		return &problem{
			condition: mcpv1.ConditionAvailable, reason: mcpv1.ReasonForbidden, again: retryProblem,
			message: forbidden(err, verb, resource, name),
		}
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return &problem{
			condition: mcpv1.ConditionAvailable, reason: mcpv1.ReasonApplyFailed, stalled: true, again: retryProblem,
			message: fmt.Sprintf("The API server refuses %s %s: %s. Check %s.", resource, name, bounded(err.Error(), 600), origin(resource)),
		}
	default:
		return fmt.Errorf("%s %s %s: %w", verb, resource, name, err)
	}
}

// origin is the part of a spec that a child of this resource comes from.
func origin(resource string) string {
	if resource == resourceOf("NetworkPolicy") {
		return "spec.networkPolicy"
	}
	return "spec.workload"
}

// forbidden says who forbids: RBAC, which names the verb (an apply needs patch,
// and create as well where there is no such object), or admission.
func forbidden(err error, verb, resource, name string) string {
	if m := cannot.FindStringSubmatch(err.Error()); m != nil {
		return mayNot(m[1], resource, name)
	}
	if strings.Contains(err.Error(), cannotOwn) {
		return mayNot("update", "mcpservers.mcp.espalier.dev/finalizers", "to own "+name+" of "+resource)
	}
	return fmt.Sprintf("The operator may not %s %s (%s): a quota or an admission policy refuses it: %s.", verb, resource, name, bounded(err.Error(), 600))
}

// mayNot names the right that lacks and where to give it.
func mayNot(verb, resource, name string) string {
	return fmt.Sprintf("The operator may not %s %s (%s). Give its ClusterRole the verb %s on %s (docs/rbac.md).", verb, resource, name, verb, resource)
}

// cannotOwn is what the admission plugin OwnerReferencesPermissionEnforcement
// says when who sets blockOwnerDeletion may not update the owner's finalizers.
const cannotOwn = "cannot set blockOwnerDeletion"

var cannot = regexp.MustCompile(`" cannot ([a-z]+) resource "`)

// bounded cuts s to at most n bytes and the dots that say so. It gives UTF-8
// whatever s is: the API server would store other bytes than these, and each
// pass would see a difference.
func bounded(s string, n int) string {
	if len(s) <= n {
		return strings.ToValidUTF8(s, "?")
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return strings.ToValidUTF8(s[:n], "?") + "..."
}

// ignoreMissing drops errors that a condition of references tells already.
func ignoreMissing(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil
	}
	return err
}
