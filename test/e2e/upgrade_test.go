// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/test/e2e/harness"
)

const (
	// serversAtOnce is --max-server-rollouts, and badServers how many a bad
	// image reaches.
	serversAtOnce = 5
	badServers    = 2
	badImage      = "example.test/none:bad"
	// settledFor is for how long no further server is given a bad image.
	settledFor = 20 * time.Second
)

var _ = Describe("Upgrades with 20 servers under load", Label(soak, disruptive), Serial, func() {
	It("of the operator, from the chart of the commit before, restart no server and fail no call", func(ctx SpecContext) {
		next := cluster.Release("next")
		found := cluster.Installed(ctx)
		found.Replace(ctx)
		createRestricted(ctx, harness.OperatorNamespace)
		DeferCleanup(func(ctx context.Context) { uninstallChart(ctx) })
		installBefore(ctx, found)
		ns := cluster.Namespace(ctx, "upgrade")
		load := fleetUnderLoad(ctx, ns, fleetSize)

		By("from the commit before: its CRDs, its RBAC, its operator")
		upgradeFromBefore(ctx, found, ns, load)

		By("to another version of the same code, and back")
		before := podsOfFleet(ctx, ns)
		for _, to := range []*harness.Installation{found.WithManager(next.Manager), found} {
			cluster.Helm(ctx, append([]string{"upgrade", "espalier", harness.Chart, "--reset-then-reuse-values", "--wait", helmWait}, to.ChartValues()...)...)
			cluster.AwaitOperator(ctx)
			retitle(ctx, ns, "by "+to.Manager)
			awaitFleet(ctx, ns, "")
		}
		Expect(podsOfFleet(ctx, ns)).To(Equal(before), "pods of servers")
		calls := load.Stop()
		Expect(load.Failures()).To(BeEmpty())
		harness.Say("%d calls during three upgrades of the operator, none failed; no pod restarted", calls)
	}, SpecTimeout(12*time.Minute))

	It("of the server image go on from server to server, and a bad one stops after two", func(ctx SpecContext) {
		current, next := cluster.Release("current"), cluster.Release("next")
		DeferCleanup(func(ctx SpecContext) { cluster.ApplyRelease(ctx, current) })
		ns := cluster.Namespace(ctx, "image")
		load := fleetUnderLoad(ctx, ns, fleetSize)
		watch := watchRollouts(ctx, ns)

		By("a good image")
		start := time.Now()
		cluster.ApplyRelease(ctx, current.WithServer(next))
		awaitFleet(ctx, ns, next.Server)
		most := watch.stop()
		Expect(most).To(And(BeNumerically(">", 1), BeNumerically("<=", serversAtOnce)), "servers that were given the image at once")
		expectNoFailure(load, "while the servers were given another image")
		harness.Say("%d servers were given another image in %s, at most %d at once", fleetSize, time.Since(start).Round(time.Second), most)
		expectRounds(ctx, ns, 2)

		By("a bad image")
		cluster.ApplyRelease(ctx, current.WithServerImage(badImage))
		failing := func() []string { return serversWith(ctx, ns, badImage) }
		Eventually(ctx, func(g Gomega) {
			g.Expect(failing()).To(HaveLen(badServers))
			for _, name := range failing() {
				server := &v1alpha1.MCPServer{}
				ns.Get(ctx, name, server)
				g.Expect(harness.Has(server, harness.Ready, harness.Is(v1alpha1.ConditionReconciling, "True", v1alpha1.ReasonImagePullFailed))).To(Succeed())
			}
		}).WithTimeout(harness.ReadyTimeout).WithPolling(2 * harness.Poll).Should(Succeed())
		stopped := failing()
		cluster.KillOperator(ctx)
		cluster.AwaitOperator(ctx)
		Consistently(ctx, failing).WithTimeout(settledFor).WithPolling(4*harness.Poll).Should(Equal(stopped), "servers with the bad image, whoever restarts")
		expectNoFailure(load, "while a bad image was rolled out")

		By("back to the good one")
		cluster.ApplyRelease(ctx, current.WithServer(next))
		awaitFleet(ctx, ns, next.Server)
		calls := load.Stop()
		Expect(load.Failures()).To(BeEmpty())
		harness.Say("%d calls meanwhile, none failed; the bad image reached %v", calls, stopped)
	}, SpecTimeout(15*time.Minute))
})

// fleetUnderLoad makes servers, and calls each of them all the time.
func fleetUnderLoad(ctx context.Context, ns *harness.Namespace, size int) *harness.Load {
	GinkgoHelper()
	var names []string
	for i := range size {
		name := fleetName(i)
		names = append(names, name)
		ns.Create(ctx, harness.Server(name, 1), harness.Tool(name, name, harness.Says(`"x"`)))
	}
	awaitFleet(ctx, ns, "")
	load := ns.StartLoad(ctx, names)
	DeferCleanup(func() { load.Stop() })
	return load
}

// awaitFleet waits until all of its servers are Ready and at rest, with an image
// where one is named.
func awaitFleet(ctx context.Context, ns *harness.Namespace, image string) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		servers := fleetOf(ctx, ns)
		g.Expect(servers).NotTo(BeEmpty())
		for i := range servers {
			s := &servers[i]
			g.Expect(harness.Has(s, harness.Ready)).To(Succeed())
			g.Expect(harness.Condition(s, v1alpha1.ConditionReconciling)).To(BeNil(), s.Name)
			if image != "" {
				g.Expect(s.Status.ServerImage).To(Equal(image), s.Name)
			}
		}
		g.Expect(marked(ctx, ns)).To(BeZero(), "servers that are being given an image")
	}).WithTimeout(harness.FleetTimeout).WithPolling(2 * harness.Poll).Should(Succeed())
}

func expectNoFailure(load *harness.Load, when string) {
	GinkgoHelper()
	Expect(load.Failures()).To(BeEmpty(), when)
}

// podsOfFleet are the pods of all servers, with their restarts.
func podsOfFleet(ctx context.Context, ns *harness.Namespace) []string {
	GinkgoHelper()
	var pods corev1.PodList
	Expect(ns.Client.List(ctx, &pods, client.InNamespace(ns.Name), client.HasLabels{v1alpha1.LabelServer})).To(Succeed())
	var out []string
	for _, pod := range pods.Items {
		for _, c := range pod.Status.ContainerStatuses {
			out = append(out, fmt.Sprintf("%s %s %d", pod.UID, c.Name, c.RestartCount))
		}
	}
	slices.Sort(out)
	return out
}

// serversWith lists the servers whose Deployment has an image.
func serversWith(ctx context.Context, ns *harness.Namespace, image string) []string {
	GinkgoHelper()
	var deployments appsv1.DeploymentList
	Expect(ns.Client.List(ctx, &deployments, client.InNamespace(ns.Name))).To(Succeed())
	var out []string
	for _, d := range deployments.Items {
		if d.Spec.Template.Spec.Containers[0].Image == image {
			out = append(out, d.Labels[v1alpha1.LabelServer])
		}
	}
	slices.Sort(out)
	return out
}

// expectRounds expects each Deployment to have rolled out so often.
func expectRounds(ctx context.Context, ns *harness.Namespace, rounds int) {
	GinkgoHelper()
	var deployments appsv1.DeploymentList
	Expect(ns.Client.List(ctx, &deployments, client.InNamespace(ns.Name))).To(Succeed())
	for _, d := range deployments.Items {
		Expect(d.Annotations).To(HaveKeyWithValue("deployment.kubernetes.io/revision", fmt.Sprint(rounds)), "rollouts of %s", d.Name)
	}
}

// marked counts the servers that are being given an image.
func marked(ctx context.Context, ns *harness.Namespace) int {
	GinkgoHelper()
	var services corev1.ServiceList
	Expect(ns.Client.List(ctx, &services, client.InNamespace(ns.Name), client.HasLabels{v1alpha1.LabelRollout})).To(Succeed())
	return len(services.Items)
}
