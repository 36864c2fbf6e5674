// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientfeatures "k8s.io/client-go/features"
	clientfeaturestesting "k8s.io/client-go/features/testing"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/clusterkeys"
	"github.com/espalier-dev/espalier/test/apiserver"
)

// refusedOf waits until the operator has counted a refusal.
func (w *world) refusedOf(lacking apiserver.Right) {
	w.Helper()
	w.eventually(soon, "the metric", func() string {
		if w.metric("espalier_api_refusals_total", lacking.Verb, lacking.Resource) > 0 {
			return ""
		}
		return "no refusal is counted of the right to " + lacking.String()
	})
}

// metric is the value of a series with these labels, or -1.
func (o *operator) metric(name, verb, resource string) float64 {
	families, err := o.metrics.Gather()
	if err != nil {
		return -1
	}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, series := range family.GetMetric() {
			labels := map[string]string{}
			for _, l := range series.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if labels["verb"] == verb && labels["resource"] == resource {
				return series.GetCounter().GetValue() + series.GetGauge().GetValue()
			}
		}
	}
	return -1
}

// withoutOwning: the admission plugin that OpenShift has on refuses children
// whose owner's finalizers the operator may not update.
func withoutOwning(t *testing.T, lacking apiserver.Right) { withoutChild(t, lacking) }

// withoutWatches: the operator starts, says what it may not watch, is not
// ready, and works once it may.
func withoutWatches(t *testing.T, lacking apiserver.Right) {
	r, access := newRole(t)
	r.take(t, lacking)
	t.Parallel()
	w := newIdleWorld(t, access)
	w.withoutRead(r, lacking)
}

// withoutLists: a list is only asked for where the API server does not stream
// its answer to a watch.
func withoutLists(t *testing.T, lacking apiserver.Right) {
	// Not beside others: the switch is the whole process's.
	clientfeaturestesting.SetFeatureDuringTest(t, clientfeatures.WatchListClient, false)
	r, access := newRole(t)
	r.take(t, lacking)
	w := newIdleWorld(t, access)
	w.withoutRead(r, lacking)
}

// newIdleWorld is a world whose operator may not be able to fill its caches.
func newIdleWorld(t *testing.T, access *rest.Config) *world {
	t.Helper()
	w := &world{T: t, ctx: t.Context(), access: access}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	must(t, api.Client.Create(w.ctx, namespace))
	w.namespace = namespace.Name
	fake := newFakeProber()
	w.operator, _ = launchOperator(t, access, w.namespace, fake, fake.wake)
	w.operator.prober = fake
	return w
}

func (w *world) withoutRead(r *role, lacking apiserver.Right) {
	w.Helper()
	what := fmt.Sprintf("may not %s %s in namespace %s", lacking.Verb, lacking.Resource, w.namespace)
	w.server(`{}`)
	w.tool("alpha", `expression: {text: "'a'"}`)
	w.eventually(soon, "readiness", func() string {
		if err := w.rights.Check(nil); err == nil || !strings.Contains(err.Error(), what) {
			return fmt.Sprintf("it says %v, not: %s", err, what)
		}
		return ""
	})
	if n := strings.Count(w.log.String(), what); n != 1 {
		w.Errorf("the log says %d times that it %s", n, what)
	}
	if v := w.metric("espalier_api_read_refused", lacking.Verb, lacking.Resource); v != 1 {
		w.Errorf("espalier_api_read_refused is %v", v)
	}
	r.give(w.T)
	w.eventually(healed, "readiness", func() string {
		if err := w.rights.Check(nil); err != nil {
			return err.Error()
		}
		return ""
	})
	if v := w.metric("espalier_api_read_refused", lacking.Verb, lacking.Resource); v != 0 {
		w.Errorf("with the right again, espalier_api_read_refused is %v", v)
	}
	w.becomesWithin(healed, map[string]string{"Ready": "False Starting"})
	w.rollOut()
	w.targeted(1)
	w.prove(w.report())
	w.becomesWithin(healed, map[string]string{"Ready": "True Proved"})
	w.toolBecomes("alpha", isServed)
}

// withoutEvents: events are lost, and the log says so once.
func withoutEvents(t *testing.T, lacking apiserver.Right) {
	r, access := newRole(t)
	r.take(t, lacking)
	w := newWorldAs(t, access)
	w.server(`{workload: {podTemplate: {spec: {hostNetwork: true}}}}`)
	w.becomes(map[string]string{"Accepted": "False PodSecurityViolation"})
	w.refusedOf(lacking)
	w.toldOnce("The operator may not create events.events.k8s.io")
	r.give(t)
	w.server(`{}`)
	w.serve()
	w.told("Normal Starting MCPServer/web")
	w.toldOnce("The operator may create events.events.k8s.io again")
}

// toldOnce waits for a line of the log, of which there is only one.
func (w *world) toldOnce(line string) {
	w.Helper()
	w.eventually(soon, "the log", func() string {
		if n := strings.Count(w.log.String(), line); n != 1 {
			return fmt.Sprintf("%d times: %s", n, line)
		}
		return ""
	})
	if strings.Contains(w.log.String(), "Server rejected event") {
		w.Error("the log holds a rejected event")
	}
}

// withoutClusterKeys: no service account can call the server, which says so.
func withoutClusterKeys(t *testing.T, lacking apiserver.Right) {
	r, access := newRole(t)
	r.take(t, lacking)
	w := newWorldAs(t, access)
	w.server(`{auth: {serviceAccounts: {audiences: [me]}}}`)
	w.becomes(map[string]string{"ResolvedRefs": "False ClusterKeysUnavailable"})
	w.refusedOf(lacking)
	r.give(t)
	w.clock.forward(2 * clusterkeys.Refresh)
	w.pass()
	w.becomes(map[string]string{"ResolvedRefs": "True ResolvedRefs"})
}

// TestTerminatingNamespace: what is told of objects whose namespace goes is
// lost with it, and the log stays quiet.
func TestTerminatingNamespace(t *testing.T) {
	w := newWorld(t)
	twoTools(w)
	w.serve()
	w.rest()
	must(t, api.Client.Delete(w.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}))
	w.eventually(soon, "the end of the namespace", func() string {
		var namespace corev1.Namespace
		must(t, api.Client.Get(w.ctx, client.ObjectKey{Name: w.namespace}, &namespace))
		if namespace.Status.Phase != corev1.NamespaceTerminating {
			return "it is " + string(namespace.Status.Phase)
		}
		return ""
	})
	// A transition, of which an event would tell, in a namespace that takes none.
	w.server(`{replicas: 3, workload: {podTemplate: {spec: {hostNetwork: true}}}}`)
	w.becomes(map[string]string{"Accepted": "False PodSecurityViolation"})
	w.eventually(soon, "the refused event", func() string {
		if w.lostEvents.Load() == 0 {
			return "none was tried"
		}
		return ""
	})
	w.stop()
	for line := range strings.Lines(w.log.String()) {
		if strings.Contains(line, "event") && strings.Contains(line, "ERROR") {
			t.Error(line)
		}
	}
}
