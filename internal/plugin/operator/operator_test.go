// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/espalier-dev/espalier/internal/rivals"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func lease(namespace, holder string, ago time.Duration, scope ...string) coordinationv1.Lease {
	return coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: rivals.LeaseName, Labels: rivals.Labels(scope)},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &holder, LeaseDurationSeconds: ptr.To(int32(15)), RenewTime: ptr.To(metav1.NewMicroTime(noon.Add(-ago))),
		},
	}
}

func TestLife(t *testing.T) {
	tests := map[string]struct {
		leases      []coordinationv1.Lease
		unknown     string
		alive, down bool
		namespace   string
		says        string
	}{
		"renewed":               {leases: []coordinationv1.Lease{lease("sys", "a", 3*time.Second)}, alive: true, namespace: "sys", says: "fresh"},
		"not for a moment":      {leases: []coordinationv1.Lease{lease("sys", "a", 20*time.Second)}, alive: true, namespace: "sys", says: "fresh"},
		"not for long":          {leases: []coordinationv1.Lease{lease("sys", "a", 5*time.Minute)}, down: true, namespace: "sys", says: "5m ago"},
		"given up":              {leases: []coordinationv1.Lease{lease("sys", "", time.Second)}, down: true, namespace: "sys", says: "No operator lives"},
		"none":                  {down: true, says: "No operator works on this namespace"},
		"of other namespaces":   {leases: []coordinationv1.Lease{lease("sys", "a", time.Second, "team-b")}, down: true, says: "No operator works on this namespace"},
		"of this namespace too": {leases: []coordinationv1.Lease{lease("old", "a", time.Hour), lease("sys", "a", time.Second, "team-a")}, alive: true, namespace: "sys", says: "fresh"},
		"the last of two":       {leases: []coordinationv1.Lease{lease("old", "a", time.Hour), lease("sys", "a", time.Minute)}, down: true, namespace: "sys", says: "60s ago"},
		"forbidden":             {unknown: "you may not list Leases", says: "is not known: you may not list Leases"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			life := State{Leases: test.leases, Unknown: test.unknown, Now: noon}.Of("team-a")
			if life.Alive != test.alive || life.Down() != test.down || life.Namespace != test.namespace || !strings.Contains(life.String(), test.says) {
				t.Errorf("%+v: %s", life, life)
			}
		})
	}
}

func TestSkew(t *testing.T) {
	tests := []struct{ plugin, operator, says string }{
		{"v0.3.0", "v0.3.7", ""},
		{"v0.3.0", "v0.4.0", "newer"},
		{"v0.3.0", "0.2.9", "older"},
		{"v1.0.0", "v0.9.0", "older"},
		{"dev", "v0.3.0", ""},
		{"v0.3.0", "dev", ""},
		{"v0.3.0", "", ""},
	}
	for _, test := range tests {
		got := Skew(test.plugin, test.operator)
		if (got == "") != (test.says == "") || !strings.Contains(got, test.says) {
			t.Errorf("%s and %s: %q", test.plugin, test.operator, got)
		}
	}
}

func TestVersionOf(t *testing.T) {
	image := func(image string) *appsv1.Deployment {
		d := &appsv1.Deployment{}
		d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "proxy", Image: "x:9"}, {Name: "manager", Image: image}}
		return d
	}
	labelled := image("r/manager:v1.0.0")
	labelled.Labels = map[string]string{labelVersion: "1.2.3"}
	tests := map[string]*appsv1.Deployment{
		"1.2.3": labelled, "v0.3.1": image("localhost:5000/manager:v0.3.1@sha256:00"), "": image("localhost:5000/manager"),
	}
	for want, d := range tests {
		if got := versionOf(d); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestClock: the cluster's clock counts where it differs from this machine's.
func TestClock(t *testing.T) {
	const format = "Mon, 02 Jan 2006 15:04:05 GMT"
	tests := map[string]struct {
		date string
		want time.Duration
	}{
		"nonsense":   {"nonsense", 0},
		"right":      {noon.Format(format), 0},
		"a bit late": {noon.Add(-time.Second).Format(format), 0},
		"ahead":      {noon.Add(time.Hour).Format(format), time.Hour},
		"behind":     {noon.Add(-time.Minute).Format(format), -time.Minute},
	}
	for name, test := range tests {
		c := &clusterClock{}
		if c.note(test.date, noon); c.offset != test.want {
			t.Errorf("%s: offset %s, want %s", name, c.offset, test.want)
		}
	}
}
