// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/test/e2e/harness"
)

// childBackIn is how soon a deleted child must be back.
const childBackIn = time.Second

var _ = Describe("Children of a server", func() {
	It("come back within a second when they are deleted", func(ctx SpecContext) {
		ns := cluster.Namespace(ctx, "children")
		ns.Create(ctx, harness.Server("front", 2), harness.Tool("ping", "front", harness.Says(`"pong"`)))
		ns.AwaitServer(ctx, "front", harness.ReadyTimeout, harness.Ready)
		for _, child := range []struct {
			kind string
			obj  client.Object
			list client.ObjectList
		}{
			{"Service", &corev1.Service{ObjectMeta: harness.Meta("front-mcp")}, &corev1.ServiceList{}},
			{"ConfigMap", &corev1.ConfigMap{ObjectMeta: harness.Meta("front-mcp-catalog")}, &corev1.ConfigMapList{}},
			{"PodDisruptionBudget", &policyv1.PodDisruptionBudget{ObjectMeta: harness.Meta("front-mcp")}, &policyv1.PodDisruptionBudgetList{}},
			{"Deployment", &appsv1.Deployment{ObjectMeta: harness.Meta("front-mcp")}, &appsv1.DeploymentList{}},
		} {
			back := backAfter(ctx, ns, child.obj, child.list)
			harness.Say("a deleted %s was back after %s", child.kind, back.Round(time.Millisecond))
			Expect(back).To(BeNumerically("<", childBackIn), child.kind)
		}
		ns.AwaitRollout(ctx, "front-mcp", harness.ReadyTimeout)
		ns.AwaitServer(ctx, "front", harness.ReadyTimeout, harness.Ready)
		ns.AwaitTool(ctx, "ping", harness.ServedTimeout, harness.Served)
		expectAnswer(ctx, ns, "front", "ping", "pong")
	})

	It("keep what others set on them: a rollout restart, an annotation", Label(slow), func(ctx SpecContext) {
		ns := cluster.Namespace(ctx, "foreign-fields")
		ns.Create(ctx, harness.Server("front", 1), harness.Tool("ping", "front", harness.Says(`"pong"`)))
		ns.AwaitServer(ctx, "front", harness.ReadyTimeout, harness.Ready)
		before := harness.Identity(ns.Pods(ctx, "front"))

		ns.Kubectl(ctx, "annotate", "deployment/front-mcp", "example.com/owner=team-a")
		ns.Kubectl(ctx, "rollout", "restart", "deployment/front-mcp")
		ns.AwaitRollout(ctx, "front-mcp", harness.RolloutTimeout)
		Expect(harness.Identity(ns.Pods(ctx, "front"))).NotTo(Equal(before), "the restart replaced the pod")
		ns.AwaitServer(ctx, "front", harness.ReadyTimeout, harness.Ready)
		expectKept := func() {
			GinkgoHelper()
			var d appsv1.Deployment
			ns.Get(ctx, "front-mcp", &d)
			Expect(d.Annotations).To(HaveKeyWithValue("example.com/owner", "team-a"))
			Expect(d.Spec.Template.Annotations).To(HaveKey("kubectl.kubernetes.io/restartedAt"))
		}
		expectKept()

		By("a change of the spec, which the operator applies to the same Deployment")
		server := &v1alpha1.MCPServer{}
		ns.Update(ctx, "front", server, func() { server.Spec.Workload.Labels = map[string]string{"example.com/tier": "front"} })
		Eventually(ctx, func() string { return ns.Pods(ctx, "front")[0].Labels["example.com/tier"] }).
			WithTimeout(harness.RolloutTimeout).Should(Equal("front"))
		ns.AwaitRollout(ctx, "front-mcp", harness.RolloutTimeout)
		ns.AwaitServer(ctx, "front", harness.ReadyTimeout, harness.Ready)
		expectKept()
	}, SpecTimeout(5*time.Minute))

	It("never replace a foreign object of their name, which is named", func(ctx SpecContext) {
		ns := cluster.Namespace(ctx, "foreign")
		foreign := &corev1.Service{ObjectMeta: harness.Meta("front-mcp"), Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": "somebody-else"}, Ports: []corev1.ServicePort{{Port: 80}},
		}}
		ns.Create(ctx, foreign)
		ns.Create(ctx, harness.Server("front", 1), harness.Tool("ping", "front", harness.Says(`"pong"`)))
		ns.AwaitServer(ctx, "front", harness.StatusTimeout,
			harness.Is(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonForeignObject).Saying("Service", "front-mcp"),
			harness.Is(v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonForeignObject))
		ns.Show(ctx, "A foreign Service in the way")
		now := &corev1.Service{}
		ns.Get(ctx, "front-mcp", now)
		Expect(now.ResourceVersion).To(Equal(foreign.ResourceVersion), "the foreign Service was left as it is")

		By("deleting the foreign object, which is all that it takes")
		ns.Delete(ctx, foreign)
		ns.AwaitServer(ctx, "front", harness.ReadyTimeout, harness.Ready)
		ns.AwaitTool(ctx, "ping", harness.ServedTimeout, harness.Served)
	})

	It("are given back to what the operator wants when somebody changes that", func(ctx SpecContext) {
		ns := cluster.Namespace(ctx, "drift")
		ns.Create(ctx, harness.Server("front", 1), harness.Tool("ping", "front", harness.Says(`"pong"`)))
		ns.AwaitServer(ctx, "front", harness.ReadyTimeout, harness.Ready)
		service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns.Name, Name: "front-mcp"}}
		Expect(ns.Client.Patch(ctx, service, client.RawPatch(types.MergePatchType,
			[]byte(`{"spec":{"selector":{"mcp.espalier.dev/server":"other"}}}`)))).To(Succeed())
		Eventually(ctx, func() string {
			ns.Get(ctx, "front-mcp", service)
			return service.Spec.Selector[v1alpha1.LabelServer]
		}).WithTimeout(harness.StatusTimeout).Should(Equal("front"))
	})
})

// backAfter deletes obj and measures until an object of its name exists again.
func backAfter(ctx SpecContext, ns *harness.Namespace, obj client.Object, list client.ObjectList) time.Duration {
	GinkgoHelper()
	var once sync.Once
	back := make(chan time.Time, 1)
	stop := ns.Watch(ctx, list, func(event watch.Event) {
		if o, ok := event.Object.(client.Object); ok && event.Type == watch.Added && o.GetName() == obj.GetName() {
			once.Do(func() { back <- time.Now() })
		}
	})
	defer stop()
	start := time.Now()
	ns.Delete(ctx, obj)
	var at time.Time
	Eventually(ctx, back).WithTimeout(harness.StatusTimeout).Should(Receive(&at), "%T %s is not back", obj, obj.GetName())
	return at.Sub(start)
}
