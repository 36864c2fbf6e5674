// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/test/e2e/harness"
)

const (
	// What the caller of an observed call says of itself.
	callersTrace  = "4bf92f3577b34da6a3ce929d0e0e4736"
	callersSpan   = "00f067aa0ba902b7"
	callersID     = "observed-1"
	aliceKey      = "alice-5d21f0c6b7"
	givenArgument = "argument-91c4e07ad3"
	// spansWithin: spans are sent shortly after they end.
	spansWithin = 30 * time.Second
)

var _ = Describe("A call that is observed", func() {
	It("is one trace from its caller to the server behind, and a line of the audit log", func(ctx SpecContext) {
		ns := cluster.Namespace(ctx, "observed")
		collector := ns.Collector(ctx)
		ns.Create(ctx,
			&corev1.Secret{ObjectMeta: harness.Meta("callers"), StringData: map[string]string{"alice": aliceKey}},
			harness.Server("behind", 1, harness.Traced(collector)),
			harness.Tool("deep", "behind", harness.Says(`"deep"`)),
			harness.Server("front", 1, harness.Traced(collector), audited, func(s *v1alpha1.MCPServer) {
				s.Spec.Auth = &v1alpha1.Auth{APIKeys: &v1alpha1.APIKeyAuth{SecretRef: v1alpha1.SecretRef{Name: "callers"}}}
				s.Spec.Upstreams = []v1alpha1.Upstream{{
					Name: "rear", Prefix: "r_", ServerRef: &v1alpha1.UpstreamServerRef{Name: "behind"}, Metadata: map[string]string{"costCategory": "high"},
				}}
			}),
		)
		ns.AwaitServer(ctx, "front", harness.RolloutTimeout, harness.Ready, harness.Is(v1alpha1.ConditionUpstreamsReady, metav1.ConditionTrue))
		peer := ns.ServicePeer(ctx, "front")
		peer.Header = http.Header{
			"Traceparent": {"00-" + callersTrace + "-" + callersSpan + "-01"}, "X-Api-Key": {aliceKey}, "X-Request-Id": {callersID},
		}
		began := time.Now()
		answer, err := peer.Call(ctx, "r_deep", map[string]any{"secret": givenArgument})
		Expect(err).NotTo(HaveOccurred())
		Expect(answer.Text()).To(Equal("deep"))

		By("its trace: the call, its handler, the request behind, and the same at the server behind")
		way := []harness.Span{
			{Service: "front", Name: "tools/call r_deep", Kind: "SPAN_KIND_SERVER"},
			{Service: "front", Name: "execute_tool r_deep", Kind: "SPAN_KIND_INTERNAL"},
			{Service: "front", Name: "tools/call deep", Kind: "SPAN_KIND_CLIENT"},
			{Service: "behind", Name: "tools/call deep", Kind: "SPAN_KIND_SERVER"},
			{Service: "behind", Name: "execute_tool deep", Kind: "SPAN_KIND_INTERNAL"},
		}
		spans := awaitWay(ctx, collector, way)
		Expect(spans[0].Attributes).To(And(HaveKeyWithValue("espalier.outcome", "ok"), HaveKeyWithValue("espalier.cost_category", "high"),
			HaveKeyWithValue("espalier.upstream", "rear"), HaveKeyWithValue("espalier.principal.kind", "APIKey")))
		Expect(spans[3].Attributes).To(HaveKeyWithValue("espalier.server", "behind"))
		all, err := collector.Spans(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(fmt.Sprint(all)).NotTo(Or(ContainSubstring(givenArgument), ContainSubstring(aliceKey)), "words of the caller in spans")

		By("its line of the audit log: who, what, when, the outcome and its cost")
		line := auditLine(ctx, ns, "front", callersID)
		Expect(line).To(And(
			HaveKeyWithValue("traceId", callersTrace), HaveKeyWithValue("server", "front"),
			HaveKeyWithValue("principal", map[string]any{"kind": "APIKey", "subject": "alice"}),
			HaveKeyWithValue("method", "tools/call"), HaveKeyWithValue("tool", "r_deep"), HaveKeyWithValue("upstream", "rear"),
			HaveKeyWithValue("outcome", "ok"), HaveKeyWithValue("costCategory", "high"), Not(HaveKey("params")),
		))
		at, err := time.Parse(time.RFC3339Nano, fmt.Sprint(line["time"]))
		Expect(err).NotTo(HaveOccurred())
		Expect(at).To(BeTemporally("~", began, harness.CallTimeout))

		By("a call that is refused is a line, too")
		peer.Header.Set("X-Request-Id", "observed-2")
		_, err = peer.Call(ctx, "none", map[string]any{"secret": givenArgument})
		Expect(err).To(HaveOccurred())
		Expect(auditLine(ctx, ns, "front", "observed-2")).To(And(HaveKeyWithValue("asked", "none"), HaveKeyWithValue("outcome", "UnknownTool"),
			HaveKeyWithValue("principal", HaveKeyWithValue("subject", "alice"))))
		ns.ExpectNoTraceOf(ctx, givenArgument, aliceKey)
	}, SpecTimeout(4*time.Minute))
})

func audited(s *v1alpha1.MCPServer) {
	s.Spec.Workload.Env = append(s.Spec.Workload.Env, corev1.EnvVar{Name: "ESPALIER_AUDIT_LOG", Value: "stdout"})
}

// awaitWay waits for the spans of the caller's trace, expects them to be those
// of way, each within the one before, and gives them.
func awaitWay(ctx context.Context, collector *harness.Collector, way []harness.Span) []harness.Span {
	GinkgoHelper()
	var out []harness.Span
	Eventually(ctx, func(g Gomega) {
		spans, err := collector.Spans(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		out = nil
		parent, ofTrace := callersSpan, 0
		for _, want := range way {
			for _, s := range spans {
				if s.Trace == callersTrace && s.Service == want.Service && s.Name == want.Name && s.Kind == want.Kind && s.Parent == parent {
					out = append(out, s)
					parent = s.ID
					break
				}
			}
		}
		for _, s := range spans {
			if s.Trace == callersTrace {
				ofTrace++
			}
		}
		g.Expect(out).To(HaveLen(len(way)), "of %v", spans)
		g.Expect(ofTrace).To(Equal(len(way)), "spans of the trace in %v", spans)
	}).WithTimeout(spansWithin).WithPolling(harness.Poll).Should(Succeed())
	return out
}

// auditLine is the one line of a request in the log of a server's pod, once it
// is there.
func auditLine(ctx context.Context, ns *harness.Namespace, server, request string) map[string]any {
	GinkgoHelper()
	pods := ns.Pods(ctx, server)
	Expect(pods).To(HaveLen(1))
	var found []map[string]any
	Eventually(ctx, func(g Gomega) {
		log, err := ns.Clientset.CoreV1().Pods(ns.Name).GetLogs(pods[0].Name, &corev1.PodLogOptions{}).DoRaw(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		found = nil
		for text := range strings.Lines(string(log)) {
			line := map[string]any{}
			if json.Unmarshal([]byte(text), &line) == nil && line["audit"] == "call" && line["requestId"] == request {
				found = append(found, line)
			}
		}
		g.Expect(found).To(HaveLen(1), "lines of %s in %s", request, log)
	}).WithTimeout(harness.CallTimeout).WithPolling(harness.Poll).Should(Succeed())
	return found[0]
}

// expectSpansOfOperator waits until the operator's own spans tell of a server:
// that it was reconciled, and probed, by which the server's spans are joined.
func expectSpansOfOperator(ctx context.Context, collector *harness.Collector, ns *harness.Namespace, server string) {
	GinkgoHelper()
	const operator = "espalier-manager"
	Eventually(ctx, func(g Gomega) {
		spans, err := collector.Spans(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		reconciled, probes, asked := 0, map[string]bool{}, 0
		for _, s := range spans {
			if s.Service != operator || s.Attributes["espalier.name"] != server || s.Attributes["k8s.namespace.name"] != ns.Name {
				continue
			}
			switch s.Name {
			case "reconcile MCPServer":
				reconciled++
			case "probe":
				probes[s.Trace+s.ID] = true
			}
		}
		for _, s := range spans {
			if s.Service == server && s.Name == "tools/list" && probes[s.Trace+s.Parent] {
				asked++
			}
		}
		g.Expect(reconciled).NotTo(BeZero(), "reconcile MCPServer of %s", server)
		g.Expect(asked).NotTo(BeZero(), "lists that %d probes asked for, at the server", len(probes))
	}).WithTimeout(harness.ReadyTimeout).WithPolling(harness.Poll).Should(Succeed())
}
