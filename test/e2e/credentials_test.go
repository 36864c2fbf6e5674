// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"slices"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/test/e2e/harness"
)

// noRolloutFor is how long nothing must happen after a change that needs no rollout.
const noRolloutFor = 10 * time.Second

// Values of a credential that stand nowhere else.
const (
	firstToken  = "first-3f9c1d7e5a"
	secondToken = "second-b82e4460cf"
)

var _ = Describe("Credentials of tools", func() {
	secret := func(name, value string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: harness.Meta(name), StringData: map[string]string{"token": value}}
	}
	bearer := func(secret string) v1alpha1.Header {
		return v1alpha1.Header{Name: "Authorization", Prefix: "Bearer ", SecretKeyRef: &v1alpha1.SecretKeyRef{Name: secret, Key: "token"}}
	}

	It("roll out once per Secret, announced, and rotate without a restart", Label(slow), func(ctx SpecContext) {
		ns := cluster.Namespace(ctx, "credentials")
		backend := ns.Backend(ctx, "backend")
		ns.Create(ctx, secret("api", firstToken), harness.Server("front", 2), harness.Tool("ping", "front", harness.Says(`"pong"`)))
		ns.AwaitServer(ctx, "front", harness.ReadyTimeout, harness.Ready)
		synced := watchCondition(ctx, ns, "front", v1alpha1.ConditionSynced)
		ready := watchCondition(ctx, ns, "front", v1alpha1.ConditionReady)
		Expect(ns.Revision(ctx, "front-mcp")).To(Equal("1"))

		By("the first tool that names a Secret: one rollout, announced")
		ns.Create(ctx, harness.Tool("first", "front", harness.Gets(backend.URL+"/echo/", bearer("api"))))
		ns.AwaitTool(ctx, "first", harness.RolloutTimeout, harness.Served)
		ns.AwaitRollout(ctx, "front-mcp", harness.RolloutTimeout)
		Expect(ns.Revision(ctx, "front-mcp")).To(Equal("2"))
		Expect(synced.seen()).To(ContainElement("False " + v1alpha1.ReasonRolloutForCredentials))
		expectHeader(ctx, ns, "first", "Bearer "+firstToken)
		pods := harness.Identity(ns.Pods(ctx, "front"))

		By("a second tool with that Secret and key: none")
		ns.Create(ctx, harness.Tool("second", "front", harness.Gets(backend.URL+"/echo/", bearer("api"))))
		ns.AwaitTool(ctx, "second", harness.ServedTimeout, harness.Served)
		expectHeader(ctx, ns, "second", "Bearer "+firstToken)
		Expect(ns.Revision(ctx, "front-mcp")).To(Equal("2"))

		By("rotating the Secret: live without a restart")
		held := &corev1.Secret{}
		start := time.Now()
		ns.Update(ctx, "api", held, func() { held.Data["token"] = []byte(secondToken) })
		for _, peer := range ns.Peers(ctx, "front") {
			Eventually(ctx, func() string { return authorization(ctx, peer, "first") }).
				WithTimeout(harness.RotationTimeout).WithPolling(2*harness.Poll).Should(Equal("Bearer "+secondToken), "at %s", peer.Name)
		}
		harness.Say("a rotated Secret was in use in both replicas after %s", time.Since(start).Round(100*time.Millisecond))

		By("looking for either value in status, events, ConfigMaps, pods and logs")
		ns.ExpectNoTraceOf(ctx, firstToken, secondToken)

		By("deleting both tools: none")
		ns.Delete(ctx, harness.Tool("first", "front"), harness.Tool("second", "front"))
		Consistently(ctx, func() string { return ns.Revision(ctx, "front-mcp") }).
			WithTimeout(noRolloutFor).WithPolling(2 * harness.Poll).Should(Equal("2"))
		server := ns.AwaitServer(ctx, "front", harness.ServedTimeout, harness.Ready)
		Expect(server.Status.ToolCount).To(HaveValue(BeEquivalentTo(1)))
		Expect(harness.Identity(ns.Pods(ctx, "front"))).To(Equal(pods))
		Expect(ready.seen()).NotTo(ContainElement(HavePrefix("False")), "a rollout for credentials keeps the server Ready")
	}, SpecTimeout(8*time.Minute))

	It("harm only the tools that name them when they are missing", func(ctx SpecContext) {
		ns := cluster.Namespace(ctx, "missing")
		backend := ns.Backend(ctx, "backend")
		ns.Create(ctx, harness.Server("front", 1), harness.Tool("ping", "front", harness.Says(`"pong"`)),
			harness.Tool("asking", "front", harness.Gets(backend.URL+"/echo/", bearer("late"))))
		server := ns.AwaitServer(ctx, "front", harness.ReadyTimeout, harness.Ready,
			harness.Is(v1alpha1.ConditionResolvedRefs, metav1.ConditionFalse, v1alpha1.ReasonSecretNotFound).Saying("late"))
		Expect(server.Status.HealthyReplicas).To(HaveValue(BeEquivalentTo(1)))
		ns.AwaitTool(ctx, "asking", harness.StatusTimeout,
			harness.Is(v1alpha1.ConditionResolvedRefs, metav1.ConditionFalse, v1alpha1.ReasonSecretNotFound).Saying("late"))
		expectAnswer(ctx, ns, "front", "ping", "pong")
		peer := ns.Peers(ctx, "front")[0]
		answer, err := peer.Call(ctx, "asking", nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(answer.IsError).To(BeTrue(), "a call without its credential is an answer that a model can read")
		Expect(slices.ContainsFunc(backend.Requests(ctx), func(r harness.Recorded) bool { return r.Path == "/echo/" })).
			To(BeFalse(), "no request goes out without its credential")

		revision := ns.Revision(ctx, "front-mcp")
		ns.Create(ctx, secret("late", "here"))
		ns.AwaitTool(ctx, "asking", harness.RotationTimeout,
			harness.Is(v1alpha1.ConditionResolvedRefs, metav1.ConditionTrue), harness.Served)
		Eventually(ctx, func() string { return authorization(ctx, peer, "asking") }).
			WithTimeout(harness.RotationTimeout).WithPolling(2 * harness.Poll).Should(Equal("Bearer here"))
		Expect(ns.Revision(ctx, "front-mcp")).To(Equal(revision), "a Secret that comes late needs no rollout")
	}, SpecTimeout(5*time.Minute))
})

// authorization is the header that a call of tool brings to the backend.
func authorization(ctx context.Context, peer *harness.Peer, tool string) string {
	answer, err := peer.Call(ctx, tool, nil)
	if err != nil {
		return err.Error()
	}
	echoed, err := harness.Echoed(answer)
	if err != nil {
		return answer.Text()
	}
	return echoed.Headers["authorization"]
}

func expectHeader(ctx context.Context, ns *harness.Namespace, tool, want string) {
	GinkgoHelper()
	for _, peer := range ns.Peers(ctx, "front") {
		Expect(authorization(ctx, peer, tool)).To(Equal(want), "header of %s at %s", tool, peer.Name)
	}
}

// history is what a condition has been, oldest first: "Status Reason".
type history struct {
	mu   sync.Mutex
	list []string
	// messages go with list.
	messages []string
}

func (h *history) seen() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.list)
}

// watchCondition records each state of a server's condition from now on.
func watchCondition(ctx context.Context, ns *harness.Namespace, server, kind string) *history {
	GinkgoHelper()
	h := &history{}
	ns.Watch(ctx, &v1alpha1.MCPServerList{}, func(event watch.Event) {
		s, ok := event.Object.(*v1alpha1.MCPServer)
		if !ok || s.Name != server {
			return
		}
		c := harness.Condition(s, kind)
		if c == nil {
			return
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		state := string(c.Status) + " " + c.Reason
		if len(h.list) == 0 || h.list[len(h.list)-1] != state {
			h.list, h.messages = append(h.list, state), append(h.messages, c.Message)
		}
	})
	return h
}
