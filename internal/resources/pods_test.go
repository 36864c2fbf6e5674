// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// podKinds are the specs of all types that have pods, with room for more.
var podKinds = map[string]string{
	"Tools":     `type: Tools`,
	"Stdio":     `{type: Stdio, stdio: {image: "node:22", command: [npx]}}`,
	"Container": `{type: Container, container: {image: "ghcr.io/acme/orders:1"}}`,
}

// TestEveryKindOfPod: what a platform asks of pods holds for each type.
func TestEveryKindOfPod(t *testing.T) {
	for kind, spec := range podKinds {
		t.Run(kind, func(t *testing.T) {
			s := server(t, spec)
			plain := s.DeepCopy()
			s.Spec.Workload = server(t, `workload: {imagePullSecrets: [{name: team}, {name: org}], priorityClassName: high,
			  topologySpreadConstraints: [{maxSkew: 2, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]}`).Spec.Workload
			grace := int32(90)
			s.Spec.TerminationGracePeriodSeconds = &grace
			o := options()
			o.ImagePullSecrets = []string{"org", "mirror"}
			pod := func(in TemplateInput) corev1.PodSpec {
				t.Helper()
				template, err := o.template(in)
				if err != nil {
					t.Fatal(err)
				}
				return template.Spec
			}
			got := pod(TemplateInput{Server: s})
			var secrets []string
			for _, p := range got.ImagePullSecrets {
				secrets = append(secrets, p.Name)
			}
			if diff := cmp.Diff([]string{"mirror", "org", "team"}, secrets); diff != "" {
				t.Errorf("pull secrets (-want +got):\n%s", diff)
			}
			if got.PriorityClassName != "high" || *got.TerminationGracePeriodSeconds != 90 || *got.AutomountServiceAccountToken {
				t.Errorf("priority class %q, grace %d, token %t", got.PriorityClassName, *got.TerminationGracePeriodSeconds, *got.AutomountServiceAccountToken)
			}
			if c := got.TopologySpreadConstraints; len(c) != 1 || c[0].TopologyKey != "zone" {
				t.Errorf("own constraints: %+v", c)
			}
			if c := pod(TemplateInput{Server: plain}).TopologySpreadConstraints; len(c) != 1 || c[0].TopologyKey != corev1.LabelHostname ||
				c[0].WhenUnsatisfiable != corev1.ScheduleAnyway || !cmp.Equal(c[0].LabelSelector.MatchLabels, Selector(plain)) {
				t.Errorf("constraints by default: %+v", c)
			}
			drains(t, &got.Containers[0], kind != "Container")

			two := int32(2)
			s.Spec.Replicas = &two
			if pdb := PodDisruptionBudget(s); pdb.Spec.MaxUnavailable.IntValue() != 1 || !cmp.Equal(pdb.Spec.Selector.MatchLabels, Selector(s)) {
				t.Errorf("disruption budget %+v", pdb.Spec)
			}
			if d := deployment(s, &corev1.PodTemplateSpec{}); d.Spec.Strategy.RollingUpdate.MaxUnavailable.IntValue() != 0 {
				t.Errorf("a rollout takes pods away: %+v", d.Spec.Strategy)
			}
		})
	}
}

// drains: a pod that ends keeps serving until endpoints have forgotten it, and
// then has what is left of its time for running calls.
func drains(t *testing.T, c *corev1.Container, fronted bool) {
	t.Helper()
	if !fronted {
		if c.Lifecycle.PreStop.Sleep.Seconds != drainSeconds {
			t.Errorf("preStop %+v", c.Lifecycle.PreStop)
		}
		return
	}
	line := slices.Concat(c.Command, c.Args)
	for _, flag := range []string{"--drain-delay=5s", "--shutdown-timeout=83s"} {
		if !slices.Contains(line, flag) {
			t.Errorf("no %s in %s", flag, strings.Join(line, " "))
		}
	}
}
