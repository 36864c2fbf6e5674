// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/rivals"
	"github.com/espalier-dev/espalier/test/e2e/harness"
)

const (
	// mark is a pull secret that the second operator writes into each pod, and
	// the first into none. It need not exist.
	mark = "of-the-second"
	// rivalServers are called all the time.
	rivalServers = 2
)

var _ = Describe("A second operator, installed by mistake", Label(slow, disruptive), Serial, func() {
	It("stands back and says so while the first is there, and takes over when it is gone", func(ctx SpecContext) {
		found := cluster.Installed(ctx)
		ns := cluster.Namespace(ctx, "rivals")
		load := fleetUnderLoad(ctx, ns, rivalServers)

		By("helm install in another namespace: it is not ready, and says why")
		second := &rival{Namespace: cluster.Namespace(ctx, "second")}
		var marked atomic.Int64
		unwatch := ns.Watch(ctx, &appsv1.DeploymentList{}, func(event watch.Event) {
			if d, ok := event.Object.(*appsv1.Deployment); ok && isMarked(d) {
				marked.Add(1)
			}
		})
		second.install(ctx, found)
		pod := second.awaitTold(ctx)

		By("what is new and what changes is seen to by the first alone")
		ns.Create(ctx, harness.Server("late", 1), harness.Tool("ping", "late", harness.Says(`"pong"`)))
		ns.AwaitServer(ctx, "late", harness.ReadyTimeout, harness.Ready)
		retitle(ctx, ns, "beside a second")
		awaitFleet(ctx, ns, "")

		By("the pod of the first is lost: its next one goes on")
		cluster.KillOperator(ctx)
		cluster.AwaitOperator(ctx)
		retitle(ctx, ns, "by the first's next pod")
		awaitFleet(ctx, ns, "")
		unwatch()
		Expect(marked.Load()).To(BeZero(), "Deployments as the second writes them")
		Expect(second.lease(ctx)).To(Satisfy(apierrors.IsNotFound), "the second leads")
		// The second writes children and statuses by patches.
		Expect(get(ctx, pod, ":8443/metrics")).To(And(ContainSubstring(`rest_client_requests_total{`), Not(ContainSubstring(`method="PATCH"`))))
		Expect(harness.Identity(second.pods(ctx))).To(Equal(harness.Identity([]corev1.Pod{*pod})))

		By("the first is gone: the second takes over")
		cluster.ScaleOperator(ctx, 0)
		DeferCleanup(second.remove) // Before the first is started again.
		start := time.Now()
		Expect(cluster.Client.Delete(ctx, leaseIn(harness.OperatorNamespace))).To(Succeed())
		second.awaitLead(ctx)
		harness.Say("the second led %s after the first was gone", time.Since(start).Round(time.Second))
		expectMarked(ctx, ns, true)
		retitle(ctx, ns, "by the second")
		awaitFleet(ctx, ns, "")
		Expect(get(ctx, pod, ":8443/metrics")).To(ContainSubstring(`method="PATCH"`))

		By("and back")
		second.remove(ctx)
		cluster.ScaleOperator(ctx, 1)
		expectMarked(ctx, ns, false)
		awaitFleet(ctx, ns, "")
		calls := load.Stop()
		Expect(load.Failures()).To(BeEmpty())
		harness.Say("%d calls while two operators took turns, none failed", calls)
	}, SpecTimeout(8*time.Minute))
})

// rival is a second release of the chart.
type rival struct{ *harness.Namespace }

// install installs it as somebody would who does not know of the first, and
// waits for nothing.
func (r *rival) install(ctx context.Context, found *harness.Installation) {
	GinkgoHelper()
	cluster.Helm(ctx, append([]string{"install", "second", harness.Chart, "--namespace=" + r.Name, "--set=crds.enabled=false",
		"--set=manager.replicas=1", "--set=servers.imagePullSecrets={" + mark + "}", "--set=metrics.secure=false"}, found.ChartValues()...)...)
}

// remove uninstalls it, Lease and all.
func (r *rival) remove(ctx context.Context) {
	GinkgoHelper()
	cluster.Helm(ctx, "uninstall", "second", "--namespace="+r.Name, "--ignore-not-found", "--wait", helmWait)
	Eventually(ctx, func() []corev1.Pod { return r.pods(ctx) }).WithTimeout(harness.DeleteTimeout).Should(BeEmpty(), "pods of the second")
	Expect(client.IgnoreNotFound(r.Client.Delete(ctx, leaseIn(r.Name)))).To(Succeed())
}

// pods that exist, those that end too.
func (r *rival) pods(ctx context.Context) []corev1.Pod {
	GinkgoHelper()
	var list corev1.PodList
	Expect(r.Client.List(ctx, &list, client.InNamespace(r.Name))).To(Succeed())
	return list.Items
}

// awaitTold waits until its pod stands back, and expects its event, its log and
// its readiness to say so.
func (r *rival) awaitTold(ctx context.Context) *corev1.Pod {
	GinkgoHelper()
	var event corev1.Event
	Eventually(ctx, func(g Gomega) {
		var events corev1.EventList
		g.Expect(r.Client.List(ctx, &events, client.InNamespace(r.Name))).To(Succeed())
		told := slices.IndexFunc(events.Items, func(e corev1.Event) bool { return e.Reason == rivals.ReasonAnotherOperator })
		g.Expect(told).NotTo(Equal(-1), "none of %d events is of another operator", len(events.Items))
		event = events.Items[told]
	}).WithTimeout(harness.OperatorTimeout).WithPolling(harness.Poll).Should(Succeed())
	harness.Say("%s %s/%s: %s", event.Type, event.InvolvedObject.Kind, event.InvolvedObject.Name, event.Message)
	Expect(event.Type).To(Equal(corev1.EventTypeWarning))
	Expect(event.Message).To(And(ContainSubstring("in namespace "+harness.OperatorNamespace), ContainSubstring("Remove one of the two")))

	pods := r.pods(ctx)
	Expect(pods).To(HaveLen(1))
	pod := &pods[0]
	Expect(event.InvolvedObject.Name).To(Equal(pod.Name))
	Expect(podReady(pod)).To(BeFalse(), "the second is ready")
	log, err := r.Clientset.CoreV1().Pods(r.Name).GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(ctx)
	Expect(err).NotTo(HaveOccurred())
	Expect(string(log)).To(And(ContainSubstring("The operator does not work"), ContainSubstring("another operator, in namespace "+harness.OperatorNamespace)))
	Expect(get(ctx, pod, ":8081/readyz")).To(ContainSubstring("[-]alone failed"))
	Expect(get(ctx, pod, ":8081/healthz")).To(Equal("ok"), "it is not restarted for that")
	return pod
}

// awaitLead waits until its pod leads and is ready.
func (r *rival) awaitLead(ctx context.Context) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		g.Expect(r.lease(ctx)).To(Succeed())
		pods := r.pods(ctx)
		g.Expect(pods).To(HaveLen(1))
		g.Expect(podReady(&pods[0])).To(BeTrue())
	}).WithTimeout(harness.OperatorTimeout).WithPolling(harness.Poll).Should(Succeed(), "the second takes over")
}

// lease says why the Lease of its namespace is held by nobody, or nil.
func (r *rival) lease(ctx context.Context) error {
	lease := leaseIn(r.Name)
	if err := r.Client.Get(ctx, client.ObjectKeyFromObject(lease), lease); err != nil {
		return err
	}
	if holder := lease.Spec.HolderIdentity; holder == nil || *holder == "" {
		return fmt.Errorf("Lease %s is held by nobody", lease.Name)
	}
	return nil
}

func leaseIn(namespace string) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: rivals.LeaseName}}
}

func isMarked(d *appsv1.Deployment) bool {
	for _, s := range d.Spec.Template.Spec.ImagePullSecrets {
		if s.Name == mark {
			return true
		}
	}
	return false
}

// expectMarked waits until all Deployments are as the second, or the first,
// writes them.
func expectMarked(ctx context.Context, ns *harness.Namespace, want bool) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		var deployments appsv1.DeploymentList
		g.Expect(ns.Client.List(ctx, &deployments, client.InNamespace(ns.Name), client.HasLabels{v1alpha1.LabelServer})).To(Succeed())
		g.Expect(deployments.Items).To(HaveLen(rivalServers + 1))
		for _, d := range deployments.Items {
			g.Expect(isMarked(&d)).To(Equal(want), d.Name)
		}
	}).WithTimeout(harness.RolloutTimeout).WithPolling(harness.Poll).Should(Succeed())
}

// get gives what a pod answers at :PORT/PATH, whatever the status.
func get(ctx context.Context, pod *corev1.Pod, at string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, harness.CallTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+pod.Status.PodIP+at, nil)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 16<<20))
	return string(body), err
}
