// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/test/e2e/harness"
)

const (
	// keptFor is how long the tools of an upstream that is away are kept.
	keptFor = 60 * time.Second
	// longOutage is how long it is away in a soak; elsewhere until its tools
	// are withdrawn.
	longOutage = 2 * time.Minute
	// connectedWithin: the pause between two attempts, and the new pod's start.
	connectedWithin = 60 * time.Second
	awayTools       = 3
)

var _ = Describe("An upstream that is away", func() {
	It("for a moment changes no list; for long it alone is withdrawn, and comes back by itself", Label(slow, longer), func(ctx SpecContext) {
		ns := cluster.Namespace(ctx, "away")
		deployment, service := harness.Workload("web", harness.FakeMCPImage, 8080, fmt.Sprintf("--tools=%d", awayTools))
		ns.Create(ctx, deployment, service,
			harness.Server("steady", 1), harness.Tool("lasting", "steady", harness.Says(`"here"`)),
			harness.Tool("own", "front", harness.Says(`"mine"`)),
		)
		ns.AwaitRollout(ctx, "web", harness.ReadyTimeout)
		front := harness.Server("front", 2)
		harness.Probed(probeInterval, probeTimeout, probeThreshold)(front)
		front.Spec.Upstreams = []v1alpha1.Upstream{
			{Name: "web", URL: "http://web." + ns.Name + ".svc/mcp", Prefix: "web_"},
			{Name: "steady", ServerRef: &v1alpha1.UpstreamServerRef{Name: "steady"}},
		}
		ns.Create(ctx, front)
		ns.AwaitServer(ctx, "front", harness.ReadyTimeout, harness.Ready, harness.Is(v1alpha1.ConditionUpstreamsReady, metav1.ConditionTrue))
		expectReplicas(ctx, ns, "front", 2)
		peers := ns.Peers(ctx, "front")
		all := namesOf(ctx, peers[0])
		Expect(all).To(And(HaveLen(awayTools+2), ContainElements("own", "lasting")))
		ready := watchCondition(ctx, ns, "front", v1alpha1.ConditionReady)

		By("a moment: its pod is replaced")
		watchers := watchLists(ctx, peers)
		start := time.Now()
		ns.Delete(ctx, &ns.PodsOfApp(ctx, "web")[0])
		away := awaitCall(ctx, peers[0], start)
		lists := watchers()
		harness.Say("an upstream was away for %s: %d lists were read meanwhile, %d of them differed", away.Round(10*time.Millisecond), len(lists), differing(lists, all))
		Expect(differing(lists, all)).To(BeZero(), "lists while the upstream was away for a moment")
		Expect(len(lists)).To(BeNumerically(">", 10))

		By("for long")
		start = time.Now()
		ns.Kubectl(ctx, "scale", "deployment/web", "--replicas=0")
		for _, peer := range peers {
			// A call is not needed for it to be noticed, but makes it sooner.
			Eventually(ctx, func(g Gomega) {
				answer, err := peer.Call(ctx, "web_"+webTool(all), nil)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(answer.IsError).To(BeTrue())
				g.Expect(answer.Text()).To(ContainSubstring("does not answer"))
			}).WithTimeout(harness.StatusTimeout).WithPolling(harness.Poll).Should(Succeed())
			expectOthers(ctx, peer)
		}
		server, took := ns.AwaitServerFor(ctx, "front", harness.StatusTimeout,
			harness.Is(v1alpha1.ConditionUpstreamsReady, metav1.ConditionFalse, v1alpha1.ReasonUpstreamsUnavailable).Saying("1 of 2 upstreams", "web"))
		harness.Say("named after %s: %s", took.Round(100*time.Millisecond), harness.Condition(server, v1alpha1.ConditionUpstreamsReady).Message)
		for _, peer := range peers {
			Eventually(ctx, func() []string { return namesOf(ctx, peer) }).
				WithTimeout(keptFor + harness.StatusTimeout).WithPolling(harness.Poll).Should(ConsistOf("own", "lasting"))
			expectOthers(ctx, peer)
		}
		withdrawn := time.Since(start)
		harness.Say("its tools were withdrawn after %s", withdrawn.Round(100*time.Millisecond))
		Expect(withdrawn).To(BeNumerically(">", keptFor-5*time.Second))
		Eventually(ctx, func(g Gomega) {
			ns.Get(ctx, "front", server)
			g.Expect(server.Status.ToolCount).To(HaveValue(BeEquivalentTo(2)))
			g.Expect(server.Status.Upstreams).To(HaveLen(2))
			g.Expect(server.Status.Upstreams[0]).To(And(HaveField("Name", "web"), HaveField("State", "Unavailable"), HaveField("Reason", Not(BeEmpty()))))
			g.Expect(server.Status.Upstreams[1]).To(And(HaveField("Name", "steady"), HaveField("State", "Ready")))
		}).WithTimeout(harness.StatusTimeout).WithPolling(harness.Poll).Should(Succeed())
		ns.Show(ctx, "One of two upstreams away")
		if os.Getenv("E2E_SOAK") != "" {
			pause(ctx, longOutage-time.Since(start))
		}

		By("back")
		start = time.Now()
		ns.Kubectl(ctx, "scale", "deployment/web", "--replicas=1")
		for _, peer := range peers {
			Eventually(ctx, func() []string { return namesOf(ctx, peer) }).
				WithTimeout(connectedWithin).WithPolling(harness.Poll).Should(ConsistOf(all))
		}
		harness.Say("all is back %s after it was started again", time.Since(start).Round(100*time.Millisecond))
		ns.AwaitServer(ctx, "front", harness.StatusTimeout, harness.Ready, harness.Is(v1alpha1.ConditionUpstreamsReady, metav1.ConditionTrue))
		Expect(ready.seen()).To(HaveEach(HavePrefix("True")), "Ready of a server of which one upstream was away")
	}, SpecTimeout(8*time.Minute))
})

func namesOf(ctx context.Context, peer *harness.Peer) []string {
	GinkgoHelper()
	tools, err := peer.Tools(ctx)
	Expect(err).NotTo(HaveOccurred())
	return slices.Sorted(maps.Keys(tools))
}

// webTool is the own name of a tool of the upstream web.
func webTool(names []string) string {
	GinkgoHelper()
	for _, name := range names {
		if own, ok := strings.CutPrefix(name, "web_"); ok {
			return own
		}
	}
	Fail(fmt.Sprintf("no tool of web among %q", names))
	return ""
}

// expectOthers expects all but the upstream web to answer.
func expectOthers(ctx SpecContext, peer *harness.Peer) {
	GinkgoHelper()
	for tool, text := range map[string]string{"own": "mine", "lasting": "here"} {
		answer, err := peer.Call(ctx, tool, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(answer.Text()).To(Equal(text), tool)
	}
}

// awaitCall waits until the upstream web answers again, and says since when it
// did not.
func awaitCall(ctx SpecContext, peer *harness.Peer, start time.Time) time.Duration {
	GinkgoHelper()
	tool := "web_" + webTool(namesOf(ctx, peer))
	failed := false
	Eventually(ctx, func(g Gomega) {
		answer, err := peer.Call(ctx, tool, nil)
		g.Expect(err).NotTo(HaveOccurred())
		failed = failed || answer.IsError
		g.Expect(failed).To(BeTrue(), "it has not gone yet")
		g.Expect(answer.IsError).To(BeFalse(), answer.Text())
	}).WithTimeout(connectedWithin).WithPolling(50 * time.Millisecond).Should(Succeed())
	return time.Since(start)
}

// watchLists reads the lists of all peers again and again until stop is
// called, which gives all of them.
func watchLists(ctx SpecContext, peers []*harness.Peer) (stop func() [][]string) {
	reading, cancel := context.WithCancel(ctx)
	var mu sync.Mutex
	var lists [][]string
	var all sync.WaitGroup
	for _, peer := range peers {
		all.Go(func() {
			for reading.Err() == nil {
				tools, err := peer.Tools(reading)
				if reading.Err() != nil {
					return
				}
				names := slices.Sorted(maps.Keys(tools))
				if err != nil {
					names = []string{err.Error()}
				}
				mu.Lock()
				lists = append(lists, names)
				mu.Unlock()
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
	return func() [][]string {
		cancel()
		all.Wait()
		return lists
	}
}

func differing(lists [][]string, want []string) (n int) {
	for _, list := range lists {
		if !slices.Equal(list, want) {
			n++
		}
	}
	return n
}
