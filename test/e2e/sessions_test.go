// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/test/e2e/harness"
)

// held is a session, and the pod that has it.
type held struct {
	*harness.Legacy
	owner string
}

var _ = Describe("Sessions of legacy clients", func() {
	const each = 8 // sessions that each replica has

	// spray lets each session call through each replica.
	spray := func(ctx SpecContext, sessions []*held, peers []*harness.Peer) {
		GinkgoHelper()
		for i, s := range sessions {
			for j, p := range peers {
				word := strconv.Itoa(i) + "/" + strconv.Itoa(j)
				answer, status, err := s.Call(ctx, p, "echo", map[string]any{"word": word})
				Expect(err).NotTo(HaveOccurred(), "session of %s through %s: HTTP %d", s.owner, p.Name, status)
				Expect(answer.Text()).To(Equal(word))
			}
		}
	}

	// Case C07: no sticky Service, and each request comes to another replica.
	It("are served by any replica, and start over when their own is gone", func(ctx SpecContext) {
		ns := cluster.Namespace(ctx, "sessions")
		ns.Create(ctx, harness.Server("front", 3), harness.Tool("echo", "front", harness.Says("args.word")))
		ns.AwaitServer(ctx, "front", harness.ReadyTimeout, harness.Ready)
		ns.AwaitTool(ctx, "echo", harness.ServedTimeout, harness.Served)
		var service corev1.Service
		ns.Get(ctx, "front-mcp-peers", &service)
		Expect(service.Spec.ClusterIP).To(Equal(corev1.ClusterIPNone))
		Expect(service.Spec.SessionAffinity).To(Equal(corev1.ServiceAffinityNone))

		peers := ns.Peers(ctx, "front")
		Expect(peers).To(HaveLen(3))
		var sessions []*held
		var streams []<-chan string
		for i, p := range peers {
			for range each {
				s, err := p.Begin(ctx)
				Expect(err).NotTo(HaveOccurred(), p.Name)
				sessions = append(sessions, &held{s, p.Name})
				told, err := s.Stand(ctx, peers[(i+1)%len(peers)]) // Never at its own.
				Expect(err).NotTo(HaveOccurred())
				streams = append(streams, told)
			}
		}
		spray(ctx, sessions, peers)

		By("a change of the catalog reaches each session's stream, through the replica where that is open")
		ns.Create(ctx, harness.Tool("second", "front", harness.Says(`"2"`)))
		for i, told := range streams {
			Eventually(ctx, told).WithTimeout(harness.ServedTimeout).Should(Receive(Equal(mcp.NotificationToolsChanged)), "session %d", i)
		}

		By("a session ends through another replica")
		status, err := sessions[0].End(ctx, peers[1])
		Expect(err).NotTo(HaveOccurred())
		Expect(status).To(Equal(http.StatusNoContent))
		Eventually(ctx, streams[0]).WithTimeout(harness.CallTimeout).Should(BeClosed())
		_, status, _ = sessions[0].Call(ctx, peers[2], "echo", map[string]any{"word": "x"})
		Expect(status).To(Equal(http.StatusNotFound))

		By("a replica is deleted: its sessions start over, the others notice nothing")
		gone, stay := peers[0], peers[1:]
		ns.Delete(ctx, &corev1.Pod{ObjectMeta: harness.Meta(gone.Name)})
		Eventually(ctx, func(g Gomega) {
			spray(ctx, sessions[each:], stay)
			_, status, _ := sessions[1].Call(ctx, stay[0], "echo", map[string]any{"word": "x"})
			g.Expect(status).To(Equal(http.StatusNotFound))
		}).WithTimeout(harness.ReadyTimeout).WithPolling(harness.Poll).Should(Succeed())
		for i := 1; i < each; i++ {
			_, status, _ := sessions[i].Call(ctx, stay[i%2], "echo", map[string]any{"word": "x"})
			Expect(status).To(Equal(http.StatusNotFound), "session %d of %s", i, gone.Name)
			again, err := stay[i%2].Begin(ctx)
			Expect(err).NotTo(HaveOccurred())
			sessions[i] = &held{again, stay[i%2].Name}
		}

		By("the new replica serves the sessions of the others as soon as it takes traffic")
		ns.AwaitServer(ctx, "front", harness.ReadyTimeout, harness.Ready)
		ns.AwaitRollout(ctx, "front-mcp", harness.ReadyTimeout)
		spray(ctx, sessions[1:], ns.Peers(ctx, "front"))
	}, SpecTimeout(6*time.Minute))

	It("are bounded, and a server with one replica has no Service of replicas", func(ctx SpecContext) {
		ns := cluster.Namespace(ctx, "sessions")
		ns.Create(ctx, harness.Server("single", 1, func(s *v1alpha1.MCPServer) {
			s.Spec.Sessions = &v1alpha1.Sessions{Max: harness.To[int32](2)}
		}), harness.Tool("echo", "single", harness.Says("args.word")))
		ns.AwaitServer(ctx, "single", harness.ReadyTimeout, harness.Ready)
		ns.AwaitTool(ctx, "echo", harness.ServedTimeout, harness.Served)
		Expect(ns.Owned(ctx, "single")).NotTo(ContainElement(ContainSubstring("peers")))
		peer := ns.Peers(ctx, "single")[0]
		first, err := peer.Begin(ctx)
		Expect(err).NotTo(HaveOccurred())
		_, err = peer.Begin(ctx)
		Expect(err).NotTo(HaveOccurred())
		_, err = peer.Begin(ctx)
		Expect(err).To(MatchError(ContainSubstring("HTTP 429")))
		spray(ctx, []*held{{first, peer.Name}}, []*harness.Peer{peer, ns.ServicePeer(ctx, "single")})
		status, err := first.End(ctx, peer)
		Expect(err).NotTo(HaveOccurred())
		Expect(status).To(Equal(http.StatusNoContent))
		_, err = peer.Begin(ctx)
		Expect(err).NotTo(HaveOccurred())
	})
})
