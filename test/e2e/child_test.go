// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/test/e2e/harness"
)

const (
	// childTimeout: a child that hangs is found out and another one answers.
	childTimeout = 75 * time.Second
	// hangTimeout is how long a call of these servers may take, in seconds.
	hangTimeout = 5
	// exitsFor and mumFor are how often a child fails to start, long enough
	// for some probes to see.
	exitsFor, mumFor = 5, 4
	floodBytes       = 64 << 20
)

// aboutChild is what badchild tells of itself.
type aboutChild struct {
	PID       int      `json:"pid"`
	Starts    int      `json:"starts"`
	Processes []string `json:"processes"`
}

var _ = Describe("A wrapped process", func() {
	It("that misbehaves is told of in status, and is there again by itself, in the same pod", Label(slow), func(ctx SpecContext) {
		ns := cluster.Namespace(ctx, "child")
		scraper := ns.Scraper(ctx)
		names := []string{"killed", "exits", "mum", "hangs", "forks", "floods"}
		for _, name := range names {
			ns.Create(ctx, badChild(name))
		}
		ns.Create(ctx, badChild("broken", "exit"))
		pods := map[string][]string{}
		for _, name := range names {
			ns.AwaitServer(ctx, name, harness.ReadyTimeout, harness.Ready)
			pods[name] = harness.Identity(ns.Pods(ctx, name))
		}
		probes := scraper.Sum(ctx, "espalier_probes_total")

		By("all of them at once")
		childDoes(ctx, ns, "killed", "crash", map[string]any{"how": "kill", "times": 1})
		childDoes(ctx, ns, "exits", "crash", map[string]any{"how": "exit", "times": exitsFor})
		childDoes(ctx, ns, "mum", "crash", map[string]any{"how": "silent", "times": mumFor})
		childDoes(ctx, ns, "forks", "fork", nil)
		hung, err := ns.ServicePeer(ctx, "hangs").Call(ctx, "stop", nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(hung.IsError).To(BeTrue(), "a call that the child leaves unanswered ends: %s", hung.Text())

		By("status tells what became of each")
		told := func(name, reason, says string) {
			GinkgoHelper()
			server, took := ns.AwaitServerFor(ctx, name, childTimeout, harness.Is(v1alpha1.ConditionReady, metav1.ConditionFalse, reason).Saying(says))
			harness.Say("%-6s told after %s: %s", name, took.Round(100*time.Millisecond), harness.Condition(server, v1alpha1.ConditionReady).Message)
			Expect(server.Status.HealthyReplicas).To(HaveValue(BeZero()), name)
		}
		told("exits", v1alpha1.ReasonChildExited, "badchild ends with status 3")
		told("mum", v1alpha1.ReasonChildExited, "badchild runs and does not answer (Timeout)")
		told("broken", v1alpha1.ReasonChildExited, "badchild ends with status 3")
		ns.Show(ctx, "Wrapped processes that fail")

		By("each is there again by itself")
		for name, says := range map[string]string{
			"killed": "ended by signal KILL", "exits": "ended with status 3", "mum": "did not answer", "hangs": "did not answer", "forks": "ended with status 0",
		} {
			server, took := ns.AwaitServerFor(ctx, name, childTimeout, harness.Ready,
				harness.Is(v1alpha1.ConditionUpstreamsReady, metav1.ConditionTrue).Saying("started again", says))
			harness.Say("%-6s again after %s: %s", name, took.Round(100*time.Millisecond), harness.Condition(server, v1alpha1.ConditionUpstreamsReady).Message)
			Expect(childSays(ctx, ns, name, "hello")).To(Equal("hello"))
		}

		By("floods and noise stop no answer")
		for _, stream := range []string{"stdout", "stderr", "line"} {
			start := time.Now()
			childDoes(ctx, ns, "floods", "flood", map[string]any{"stream": stream, "bytes": floodBytes})
			harness.Say("floods %s with %d MiB: answers after %s", stream, floodBytes>>20, time.Since(start).Round(10*time.Millisecond))
			Expect(childSays(ctx, ns, "floods", stream)).To(Equal(stream))
		}

		By("nothing is left of any, and no probe started one")
		starts := map[string]int{"killed": 2, "exits": 1 + exitsFor, "mum": 1 + mumFor, "hangs": 2, "forks": 2, "floods": 1}
		for name, want := range starts {
			Eventually(ctx, func(g Gomega) {
				a := aboutOf(ctx, ns, name)
				g.Expect(a.Processes).To(HaveLen(2), "the server and its child")
				g.Expect(a.Processes).To(HaveEach(Not(MatchRegexp(`\) Z`))))
			}).WithTimeout(harness.CallTimeout).WithPolling(harness.Poll).Should(Succeed(), name)
			a := aboutOf(ctx, ns, name)
			harness.Say("%-6s started %d times; processes %q", name, a.Starts, a.Processes)
			Expect(a.Starts).To(Equal(want), name)
			Expect(harness.Identity(ns.Pods(ctx, name))).To(Equal(pods[name]), "the pod of %s stays", name)
		}
		probed := scraper.Sum(ctx, "espalier_probes_total") - probes
		harness.Say("%.0f probes meanwhile", probed)
		Expect(probed).To(BeNumerically(">", 3*len(names)))

		By("a command that is put right")
		server := &v1alpha1.MCPServer{}
		ns.Update(ctx, "broken", server, func() { server.Spec.Stdio.Args = nil })
		ns.AwaitServer(ctx, "broken", harness.ReadyTimeout, harness.Ready)
		Expect(childSays(ctx, ns, "broken", "mended")).To(Equal("mended"))
	}, SpecTimeout(8*time.Minute))
})

func badChild(name string, args ...string) *v1alpha1.MCPServer {
	server := harness.Stdio(name, harness.BadChildImage, "/badchild")
	server.Spec.Stdio.Args = args
	server.Spec.Stdio.Limits = &v1alpha1.StdioLimits{HandshakeTimeoutSeconds: harness.To(int32(3))}
	server.Spec.Limits = &v1alpha1.Limits{CallTimeoutSeconds: harness.To(int32(hangTimeout))}
	harness.Probed(probeInterval, probeTimeout, probeThreshold)(server)
	return server
}

// childDoes calls a tool of badchild that may not come back.
func childDoes(ctx SpecContext, ns *harness.Namespace, server, tool string, args map[string]any) {
	GinkgoHelper()
	answer, err := ns.ServicePeer(ctx, server).Call(ctx, tool, args)
	Expect(err).NotTo(HaveOccurred())
	if tool == "flood" {
		Expect(answer.Text()).To(Equal("flooded"))
		return
	}
	Expect(answer.IsError).To(BeTrue(), "%s of %s answers %q", tool, server, answer.Text())
}

func childSays(ctx SpecContext, ns *harness.Namespace, server, text string) string {
	GinkgoHelper()
	answer, err := ns.ServicePeer(ctx, server).Call(ctx, "echo", map[string]any{"text": text})
	Expect(err).NotTo(HaveOccurred())
	return answer.Text()
}

func aboutOf(ctx SpecContext, ns *harness.Namespace, server string) (a aboutChild) {
	GinkgoHelper()
	answer, err := ns.ServicePeer(ctx, server).Call(ctx, "about", nil)
	Expect(err).NotTo(HaveOccurred())
	Expect(json.NewDecoder(strings.NewReader(answer.Text())).Decode(&a)).To(Succeed(), answer.Text())
	return a
}
