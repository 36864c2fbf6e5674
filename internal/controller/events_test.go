// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
)

// recorder notes events, one line each.
type recorder struct{ lines []string }

func (r *recorder) Eventf(_, _ runtime.Object, kind, reason, action, _ string, args ...any) {
	r.lines = append(r.lines, fmt.Sprintf("%s %s %s: %v", kind, reason, action, args[0]))
}

// TestEvents: one for each transition, a warning for what is wrong or lost,
// none for a change of words or a start that goes well.
func TestEvents(t *testing.T) {
	tests := map[string]struct {
		before, after map[string]verdict
		want          []string
	}{
		"a start":              {nil, map[string]verdict{"Ready": no("Starting", "m")}, nil},
		"a start goes on":      {map[string]verdict{"Ready": no("Starting", "m")}, map[string]verdict{"Ready": no("Pending", "m")}, nil},
		"a start that fails":   {map[string]verdict{"Ready": no("Starting", "m")}, map[string]verdict{"Ready": no("ImagePullFailed", "m")}, []string{"Warning ImagePullFailed Ready: Ready is False: m"}},
		"proved":               {map[string]verdict{"Ready": no("Pending", "m")}, map[string]verdict{"Ready": yes("Proved", "m")}, nil},
		"a start mended":       {map[string]verdict{"Ready": no("ImagePullFailed", "m")}, map[string]verdict{"Ready": yes("Proved", "m")}, []string{"Normal Proved Ready: Ready is True: m"}},
		"the same":             {map[string]verdict{"Ready": yes("Proved", "m")}, map[string]verdict{"Ready": yes("Proved", "m")}, nil},
		"other words":          {map[string]verdict{"Ready": yes("Proved", "m")}, map[string]verdict{"Ready": yes("Proved", "n")}, nil},
		"lost":                 {map[string]verdict{"Ready": yes("Proved", "m")}, map[string]verdict{"Ready": no("Pending", "m")}, []string{"Warning Pending Ready: Ready is False: m"}},
		"stale":                {map[string]verdict{"Ready": yes("Proved", "m")}, map[string]verdict{"Ready": unknown("Stale", "m")}, []string{"Warning Stale Ready: Ready is Unknown: m"}},
		"a missing Secret":     {map[string]verdict{"Ready": yes("Proved", "m")}, map[string]verdict{"Ready": yes("Proved", "m"), "ResolvedRefs": no("SecretNotFound", "s")}, []string{"Warning SecretNotFound ResolvedRefs: ResolvedRefs is False: s"}},
		"told by Ready":        {nil, map[string]verdict{"Ready": no("SecretNotFound", "s"), "ResolvedRefs": no("SecretNotFound", "s")}, []string{"Warning SecretNotFound Ready: Ready is False: s"}},
		"forbidden beside":     {nil, map[string]verdict{"Ready": yes("Proved", "m"), "Available": no("Forbidden", "f")}, []string{"Warning Forbidden Available: Available is False: f"}},
		"a rollout is no news": {map[string]verdict{"Ready": yes("Proved", "m")}, map[string]verdict{"Ready": yes("Proved", "m"), "Available": no("RollingOut", "f")}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var before, after []metav1.Condition
			for c, v := range test.before {
				setCondition(&before, c, v, 1, metav1.Now())
			}
			for c, v := range test.after {
				setCondition(&after, c, v, 1, metav1.Now())
			}
			r := &recorder{}
			tellTransitions(r, &mcpv1.MCPServer{}, before, after, toldConditions(&mcpv1.MCPServerStatus{Conditions: before}, &mcpv1.MCPServerStatus{Conditions: after})...)
			if diff := cmp.Diff(test.want, r.lines); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
