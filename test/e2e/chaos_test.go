// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/test/e2e/harness"
)

const (
	chaosFor = 12 * time.Minute
	// A blow falls each chaosPause; one that makes a server answer nothing
	// lasts for longer than the bound, so that a status that lies is seen.
	chaosPause    = 20 * time.Second
	chaosDeadFor  = 130 * time.Second
	chaosSlowFor  = 60 * time.Second
	chaosFakes    = 15
	chaosTools    = 5
	calmWithin    = 4 * time.Minute
	operatorEvery = 3 * time.Minute
	apiEvery      = 5 * time.Minute
	// leakMargin is by what part more goroutines may run than before.
	leakMargin = 1.25
)

var _ = Describe("Chaos", Label(soak, disruptive), Serial, func() {
	It("never makes a status lie for longer than the bound, and leaves nothing behind", func(ctx SpecContext) {
		ns := cluster.Namespace(ctx, "chaos")
		scraper := ns.Scraper(ctx)
		names := createChaos(ctx, ns)
		for _, name := range names {
			ns.AwaitServer(ctx, name, harness.FleetTimeout, harness.Ready)
		}
		goroutines := scraper.Sum(ctx, "go_goroutines")
		ns.Show(ctx, "Before the chaos")

		truth := watchTruth(ctx, ns, names)
		seed := uint64(time.Now().UnixNano())
		harness.Say("chaos with seed %d", seed)
		blows := &chaos{ns: ns, names: names, random: rand.New(rand.NewPCG(seed, 0)), busy: map[string]bool{}, released: make(chan string, len(names))}
		blows.run(ctx)

		By("calm")
		Eventually(ctx, func(g Gomega) {
			for _, name := range names {
				server := &v1alpha1.MCPServer{}
				g.Expect(ns.Client.Get(ctx, client.ObjectKey{Namespace: ns.Name, Name: name}, server)).To(Succeed())
				g.Expect(harness.Has(server, harness.Ready)).To(Succeed(), name)
			}
		}).WithTimeout(calmWithin).WithPolling(time.Second).Should(Succeed(), "all servers are Ready when all is calm")
		lies, samples := truth()
		ns.Show(ctx, "After the chaos")
		harness.Say("%d blows, %d samples, %d lies", blows.count, samples, len(lies))
		Expect(lies).To(BeEmpty(), "Ready True for a server that was dead for longer than %s", lieAfter)
		Expect(samples).To(BeNumerically(">", int(chaosFor/time.Second/2)))

		By("the Secret's new value is used, and the lost ConfigMap is told")
		expectAnswer(ctx, ns, "tools-0", "keyed", "Bearer second")
		Eventually(ctx, func(g Gomega) {
			resource := &v1alpha1.MCPResource{}
			g.Expect(ns.Client.Get(ctx, client.ObjectKey{Namespace: ns.Name, Name: "page"}, resource)).To(Succeed())
			g.Expect(harness.Has(resource, harness.Is(v1alpha1.ConditionResolvedRefs, metav1.ConditionFalse, v1alpha1.ReasonConfigMapNotFound))).To(Succeed())
		}).WithTimeout(harness.StatusTimeout).Should(Succeed())

		By("nothing leaked")
		now := scraper.Sum(ctx, "go_goroutines")
		harness.Say("goroutines of the operator: %.0f before, %.0f after", goroutines, now)
		Expect(now).To(BeNumerically("<=", goroutines*leakMargin))
		for _, name := range names[:chaosFakes] {
			Eventually(ctx, func() (string, error) { return harness.OpenSessions(ctx, &ns.Pods(ctx, name)[0]) }).
				WithTimeout(harness.StatusTimeout).Should(Equal("0"), "sessions of %s", name)
		}
		for _, name := range names {
			ns.Delete(ctx, &v1alpha1.MCPServer{ObjectMeta: harness.Meta(name)})
		}
		for _, metric := range []string{"espalier_mcpserver_ready", "espalier_mcpserver_probe_targets", "espalier_mcpserver_last_proof_timestamp_seconds"} {
			Eventually(ctx, func() float64 { return scraper.Count(ctx, metric, fmt.Sprintf("namespace=%q", ns.Name)) }).
				WithTimeout(harness.DeleteTimeout).Should(BeZero(), "series of %s", metric)
		}
	}, SpecTimeout(30*time.Minute))
})

// createChaos makes the fleet: servers that can be made to misbehave, and
// shared ones with a credential and a ConfigMap.
func createChaos(ctx context.Context, ns *harness.Namespace) (names []string) {
	GinkgoHelper()
	backend := ns.Backend(ctx, "backend")
	ns.Create(ctx,
		&corev1.Secret{ObjectMeta: harness.Meta("key"), StringData: map[string]string{"key": "first"}},
		&corev1.ConfigMap{ObjectMeta: harness.Meta("pages"), Data: map[string]string{"page": "Hello."}},
	)
	for i := range chaosFakes {
		names = append(names, fmt.Sprintf("fake-%d", i))
		ns.Create(ctx, harness.Container(names[i], 1, harness.FakeMCPImage, "--era=both"))
	}
	for i := range chaosTools {
		name := fmt.Sprintf("tools-%d", i)
		names = append(names, name)
		ns.Create(ctx, harness.Server(name, 1), harness.Tool("ping-"+name, name, harness.Says(`"pong"`)))
	}
	keyed := harness.Gets(backend.URL+"/echo/", v1alpha1.Header{
		Name: "Authorization", Prefix: "Bearer ", SecretKeyRef: &v1alpha1.SecretKeyRef{Name: "key", Key: "key"},
	})
	ns.Create(ctx, harness.Tool("keyed", "tools-0", keyed, func(t *v1alpha1.MCPTool) {
		t.Spec.HTTP.Result = &v1alpha1.Result{Text: `response.body.headers.authorization`}
	}))
	page := &v1alpha1.MCPResource{ObjectMeta: harness.Meta("page")}
	page.Spec.ServerRefs = []v1alpha1.ServerRef{{Name: "tools-1"}}
	page.Spec.URI = "docs://page"
	page.Spec.ConfigMapKeyRef = &v1alpha1.ConfigMapKeyRef{Name: "pages", Key: "page"}
	ns.Create(ctx, page)
	return names
}

// chaos deals blows to the fleet, one at a time and one per server.
type chaos struct {
	ns       *harness.Namespace
	names    []string
	random   *rand.Rand
	busy     map[string]bool
	released chan string
	ends     []func()
	count    int
}

func (c *chaos) run(ctx SpecContext) {
	GinkgoHelper()
	began := time.Now()
	nextOperator, nextAPI := operatorEvery, apiEvery
	secret, configMap := false, false
	for time.Since(began) < chaosFor {
		for len(c.released) > 0 {
			delete(c.busy, <-c.released)
		}
		since := time.Since(began)
		switch {
		case since > nextOperator:
			nextOperator += operatorEvery
			c.say("the operator's pod is deleted")
			cluster.KillOperator(ctx)
		case since > nextAPI:
			nextAPI += apiEvery
			c.say("the API server restarts")
			harness.RestartAPIServer(ctx)
		case !secret && since > chaosFor/3:
			secret = true
			c.say("a Secret is rotated")
			c.ns.Kubectl(ctx, "patch", "secret", "key", "--type=merge", "-p", `{"stringData":{"key":"second"}}`)
		case !configMap && since > chaosFor/2:
			configMap = true
			c.say("a ConfigMap is deleted")
			c.ns.Delete(ctx, &corev1.ConfigMap{ObjectMeta: harness.Meta("pages")})
		default:
			c.blow(ctx)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(chaosPause):
		}
	}
	for _, end := range c.ends {
		end()
	}
}

func (c *chaos) say(format string, args ...any) {
	c.count++
	harness.Say("%s "+format, append([]any{time.Now().Format(time.TimeOnly)}, args...)...)
}

// blow hits a random server that nothing ails.
func (c *chaos) blow(ctx context.Context) {
	GinkgoHelper()
	name := c.names[c.random.IntN(len(c.names))]
	pods := c.ns.Pods(ctx, name)
	if c.busy[name] || len(pods) != 1 || !podReady(&pods[0]) {
		return
	}
	pod := &pods[0]
	kind := c.random.IntN(4)
	if kind == 0 || !isFake(name) {
		c.say("%s: its pod is deleted", name)
		c.ns.Delete(ctx, pod)
		return
	}
	c.busy[name] = true
	var end func()
	lasts := chaosDeadFor
	switch kind {
	case 1:
		c.say("%s: frozen", name)
		end = harness.Freeze(pod)
	case 2:
		c.say("%s: hangs", name)
		harness.SetMode(ctx, pod, "hang")
		end = func() { _ = harness.TrySetMode(ctx, pod, "ok") }
	case 3:
		c.say("%s: slow", name)
		lasts = chaosSlowFor
		harness.SetMode(ctx, pod, "slow")
		end = func() { _ = harness.TrySetMode(ctx, pod, "ok") }
	}
	c.ends = append(c.ends, end)
	time.AfterFunc(lasts, func() {
		end()
		c.released <- name
	})
}

func isFake(name string) bool { return name[:4] == "fake" }
