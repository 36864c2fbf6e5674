// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/test/e2e/harness"
)

// knocker is a server whose tools try to connect somewhere.
type knocker struct {
	ns   *harness.Namespace
	peer *harness.Peer
}

// newKnocker starts one of name with a tool for each target. Any answer to
// the target's URL will do.
func newKnocker(ctx context.Context, ns *harness.Namespace, name string, targets map[string]string, change ...func(*v1alpha1.MCPServer)) knocker {
	GinkgoHelper()
	ns.Create(ctx, harness.Server(name, 1, change...))
	for tool, url := range targets {
		ns.Create(ctx, harness.Tool(tool, name, harness.Gets(url), func(t *v1alpha1.MCPTool) {
			t.Spec.HTTP.TimeoutSeconds = harness.To(int32(3))
		}))
	}
	ns.AwaitServer(ctx, name, harness.ReadyTimeout, harness.Ready)
	for tool := range targets {
		ns.AwaitTool(ctx, tool, harness.ServedTimeout, harness.Served)
	}
	return knocker{ns, ns.Peers(ctx, name)[0]}
}

const (
	opened  = "opened"
	refused = "refused"
)

// knock says whether the tool could connect.
func (k knocker) knock(ctx context.Context, tool string) (string, error) {
	answer, err := k.peer.Call(ctx, tool, nil)
	switch {
	case err != nil:
		return "", err
	case answer.IsError && (strings.Contains(answer.Text(), "cannot be reached") || strings.Contains(answer.Text(), "did not answer")):
		return refused + ": " + answer.Text(), nil
	default:
		return opened, nil
	}
}

// knocks is knock, where an error is the test's end.
func (k knocker) knocks(ctx context.Context, tool string) string {
	GinkgoHelper()
	found, err := k.knock(ctx, tool)
	Expect(err).NotTo(HaveOccurred())
	return found
}

// finds waits until the tool's attempts end as wanted, and then sees that they
// stay so.
func (k knocker) finds(ctx context.Context, tool, wanted string) {
	GinkgoHelper()
	found := func() (string, error) { return k.knock(ctx, tool) }
	Eventually(ctx, found).WithTimeout(harness.StatusTimeout).WithPolling(harness.Poll).Should(HavePrefix(wanted), "%s of %s", tool, k.ns.Name)
	for range 3 {
		Expect(found()).To(HavePrefix(wanted), "%s of %s", tool, k.ns.Name)
	}
	harness.Say("%-22s from %-26s %s", tool, k.ns.Name, k.knocks(ctx, tool))
}

var _ = Describe("A server's NetworkPolicy", func() {
	policy := func(ctx SpecContext, ns *harness.Namespace, name string, wanted *v1alpha1.NetworkPolicy) {
		GinkgoHelper()
		server := &v1alpha1.MCPServer{}
		ns.Update(ctx, name, server, func() { server.Spec.NetworkPolicy = wanted })
		Eventually(ctx, func(g Gomega) {
			err := ns.Client.Get(ctx, client.ObjectKey{Namespace: ns.Name, Name: name + "-mcp"}, &networkingv1.NetworkPolicy{})
			g.Expect(client.IgnoreNotFound(err)).NotTo(HaveOccurred())
			g.Expect(err == nil).To(Equal(wanted != nil))
		}).WithTimeout(harness.StatusTimeout).WithPolling(harness.Poll).Should(Succeed())
	}

	It("lets in whom it names, the operator, and the server's own replicas", Label(slow), func(ctx SpecContext) {
		home, agents, others := cluster.Namespace(ctx, "guarded"), cluster.Namespace(ctx, "agents"), cluster.Namespace(ctx, "others")
		label := &corev1.Namespace{}
		Expect(cluster.Client.Get(ctx, client.ObjectKey{Name: agents.Name}, label)).To(Succeed())
		label.Labels["e2e.espalier.dev/team"] = agents.Name
		Expect(cluster.Client.Update(ctx, label)).To(Succeed())

		ingress := &v1alpha1.NetworkPolicyIngress{SameNamespace: harness.To(false)}
		home.Create(ctx, harness.Server("guarded", 2, harness.Probed(probeInterval, probeTimeout, probeThreshold), func(s *v1alpha1.MCPServer) {
			s.Spec.NetworkPolicy = &v1alpha1.NetworkPolicy{Ingress: ingress}
		}), harness.Server("sessions", 2, func(s *v1alpha1.MCPServer) {
			s.Spec.NetworkPolicy = &v1alpha1.NetworkPolicy{Ingress: ingress, Egress: &v1alpha1.NetworkPolicyEgress{Upstreams: harness.To(false)}}
		}), harness.Tool("echo", "sessions", harness.Says("args.word")))
		home.AwaitServer(ctx, "guarded", harness.ReadyTimeout, harness.Ready)
		ready := watchCondition(ctx, home, "guarded", v1alpha1.ConditionReady)

		knock := map[string]string{"knock": "http://" + home.Host("guarded") + "/mcp"}
		inside := newKnocker(ctx, home, "inside", knock)
		friend := newKnocker(ctx, agents, "friend", knock)
		stranger := newKnocker(ctx, others, "stranger", knock)
		for _, k := range []knocker{inside, friend, stranger} {
			k.finds(ctx, "knock", refused)
		}

		By("the same namespace")
		ingress.SameNamespace = nil
		policy(ctx, home, "guarded", &v1alpha1.NetworkPolicy{Ingress: ingress})
		inside.finds(ctx, "knock", opened)
		friend.finds(ctx, "knock", refused)

		By("a chosen namespace")
		ingress.Namespaces = []metav1.LabelSelector{{MatchLabels: map[string]string{"e2e.espalier.dev/team": agents.Name}}}
		policy(ctx, home, "guarded", &v1alpha1.NetworkPolicy{Ingress: ingress})
		friend.finds(ctx, "knock", opened)
		stranger.finds(ctx, "knock", refused)

		By("a chosen address")
		ingress.CIDRs = []v1alpha1.CIDR{v1alpha1.CIDR(others.Pods(ctx, "stranger")[0].Status.PodIP + "/32")}
		policy(ctx, home, "guarded", &v1alpha1.NetworkPolicy{Ingress: ingress})
		stranger.finds(ctx, "knock", opened)

		By("its own replicas, which pass sessions on to each other")
		home.AwaitServer(ctx, "sessions", harness.ReadyTimeout, harness.Ready)
		home.AwaitTool(ctx, "echo", harness.ServedTimeout, harness.Served)
		peers := home.Peers(ctx, "sessions")
		for i, p := range peers {
			session, err := p.Begin(ctx)
			Expect(err).NotTo(HaveOccurred())
			answer, status, err := session.Call(ctx, peers[(i+1)%len(peers)], "echo", map[string]any{"word": "passed on"})
			Expect(err).NotTo(HaveOccurred(), "HTTP %d", status)
			Expect(status).To(Equal(http.StatusOK))
			Expect(answer.Text()).To(Equal("passed on"))
		}
		Expect(ready.seen()).To(Or(BeEmpty(), HaveEach(HavePrefix("True"))), "Ready while only those named were let in")

		By("none, and a foreign one that keeps the operator out")
		policy(ctx, home, "guarded", nil)
		home.Create(ctx, &networkingv1.NetworkPolicy{ObjectMeta: harness.Meta("closed"), Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{v1alpha1.LabelServer: "guarded"}},
		}})
		home.AwaitServer(ctx, "guarded", time.Minute, harness.Is(v1alpha1.ConditionReady, metav1.ConditionFalse))
	}, SpecTimeout(7*time.Minute))

	It("lets the pods connect to what it names", Label(slow), func(ctx SpecContext) {
		home, shops, others := cluster.Namespace(ctx, "caller"), cluster.Namespace(ctx, "shops"), cluster.Namespace(ctx, "others")
		local, shop, other := home.Backend(ctx, "local"), shops.Backend(ctx, "shop"), others.Backend(ctx, "other")
		home.Create(ctx, harness.Server("orders", 1))
		address := others.PodsOfApp(ctx, "other")[0].Status.PodIP
		egress := &v1alpha1.NetworkPolicyEgress{DNS: harness.To(false), Upstreams: harness.To(false)}
		caller := newKnocker(ctx, home, "caller", map[string]string{
			"local": local.URL + "/status/200", "shop": shop.URL + "/status/200", "other": other.URL + "/status/200",
		}, func(s *v1alpha1.MCPServer) { s.Spec.NetworkPolicy = &v1alpha1.NetworkPolicy{Egress: egress} })
		direct := newKnocker(ctx, home, "direct", map[string]string{"direct": fmt.Sprintf("http://%s:8080/status/200", address)},
			func(s *v1alpha1.MCPServer) { s.Spec.NetworkPolicy = &v1alpha1.NetworkPolicy{Egress: egress} })
		set := func(name string) {
			GinkgoHelper()
			policy(ctx, home, name, &v1alpha1.NetworkPolicy{Egress: egress})
		}

		By("name servers")
		// The name does not resolve, which may take longer than the call has.
		nameless := caller.knocks(ctx, "shop")
		Expect(nameless).To(And(HavePrefix(refused), Not(ContainSubstring("connection refused"))))
		egress.DNS = nil
		set("caller")
		caller.finds(ctx, "shop", refused+": the backend cannot be reached: connection refused")

		By("a chosen namespace")
		egress.Namespaces = []metav1.LabelSelector{{MatchLabels: map[string]string{corev1.LabelMetadataName: shops.Name}}}
		set("caller")
		caller.finds(ctx, "shop", opened)
		caller.finds(ctx, "other", refused)

		By("a chosen network, on chosen ports")
		egress.Namespaces = nil
		egress.CIDRs, egress.Ports = []v1alpha1.CIDR{v1alpha1.CIDR(address + "/32")}, []int32{9999}
		set("direct")
		direct.finds(ctx, "direct", refused)
		egress.Ports = []int32{8080}
		set("direct")
		direct.finds(ctx, "direct", opened)

		By("what its tools and upstreams name")
		caller.finds(ctx, "local", refused)
		egress.CIDRs, egress.Ports, egress.Upstreams = nil, nil, nil
		set("caller")
		for _, tool := range []string{"local", "other"} {
			caller.finds(ctx, tool, opened)
		}
		front := harness.Server("front", 1, func(s *v1alpha1.MCPServer) {
			s.Spec.NetworkPolicy = &v1alpha1.NetworkPolicy{Egress: egress}
			s.Spec.Upstreams = []v1alpha1.Upstream{
				{Name: "orders", ServerRef: &v1alpha1.UpstreamServerRef{Name: "orders"}},
			}
		})
		home.Create(ctx, front)
		home.AwaitServer(ctx, "front", harness.ReadyTimeout, harness.Ready, harness.Is(v1alpha1.ConditionUpstreamsReady, metav1.ConditionTrue))
	}, SpecTimeout(7*time.Minute))
})
