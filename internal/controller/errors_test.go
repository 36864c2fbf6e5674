// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
)

func TestBounded(t *testing.T) {
	for in, want := range map[string]string{
		"":                 "",
		"short":            "short",
		"exactly ten":      "exactly te...",
		"0123456789\xff":   "0123456789...",
		"bad \xff":         "bad ?",
		"12345678\u00e4":   "12345678\u00e4",
		"123456789\u00e4a": "123456789...", // never half a rune
	} {
		if got := bounded(in, 10); got != want || !utf8.ValidString(got) {
			t.Errorf("bounded(%q) is %q, want %q", in, got, want)
		}
	}
}

func TestRefusal(t *testing.T) {
	deployments := schema.GroupResource{Group: "apps", Resource: "deployments"}
	kind := schema.GroupKind{Group: "apps", Kind: "Deployment"}
	tests := map[string]struct {
		err     error
		reason  string // empty: transient
		stalled bool
		message string
	}{
		"forbidden": {
			apierrors.NewForbidden(deployments, "x", errors.New(`User "u" cannot create resource "deployments" in API group "apps" in the namespace "ns"`)),
			mcpv1.ReasonForbidden, false, "may not create deployments.apps (x)",
		},
		"forbidden by admission": {
			apierrors.NewForbidden(deployments, "x", errors.New("exceeded quota")), mcpv1.ReasonForbidden, false, "may not patch deployments.apps (x)",
		},
		"forbidden to own": {
			apierrors.NewForbidden(deployments, "x", errors.New("cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: , <nil>")),
			mcpv1.ReasonForbidden, false, "may not update mcpservers.mcp.espalier.dev/finalizers (to own x of deployments.apps)",
		},
		"invalid": {
			apierrors.NewInvalid(kind, "x", field.ErrorList{field.Required(field.NewPath("spec", "volumes"), "")}),
			mcpv1.ReasonApplyFailed, true, "spec.volumes: Required value",
		},
		"bad request": {apierrors.NewBadRequest("no such field"), mcpv1.ReasonApplyFailed, true, "no such field"},
		"conflict":    {apierrors.NewConflict(deployments, "x", errors.New("changed")), "", false, ""},
		"timeout":     {apierrors.NewServerTimeout(deployments, "patch", 1), "", false, ""},
		"unavailable": {apierrors.NewServiceUnavailable("down"), "", false, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := refusal(test.err, "patch", "deployments.apps", "x")
			p := asProblem(err)
			if test.reason == "" {
				if p != nil || !errors.Is(err, test.err) {
					t.Errorf("%v is a problem: %+v", err, p)
				}
				return
			}
			if p == nil || p.reason != test.reason || p.stalled != test.stalled || p.again == 0 {
				t.Fatalf("problem %+v, want %s", p, test.reason)
			}
			if !strings.Contains(p.message, test.message) {
				t.Errorf("message %q lacks %q", p.message, test.message)
			}
		})
	}
	if refusal(nil, "patch", "x", "y") != nil {
		t.Error("no error became one")
	}
}
