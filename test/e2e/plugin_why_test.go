// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/plugin/why"
	"github.com/espalier-dev/espalier/test/e2e/harness"
)

// wrong is a set-up with one thing wrong, and what "kubectl mcp why" is to say.
type wrong struct {
	name string
	// about is what is asked about; the server of that name where it is empty.
	about string
	// make gives the objects. NAMESPACE in a URL of a server is the spec's.
	make func() []client.Object
	// within is the state that is waited for before why is asked.
	within harness.Wanted
	// verdict, cause (the step) and reasons of it, any of them. Without a cause
	// the first of what is also wrong is looked at.
	verdict why.Verdict
	cause   string
	reasons []string
	// says are words of the evidence.
	says []string
}

// one gives a server, changed.
func one(name string, change ...func(*v1alpha1.MCPServer)) func() []client.Object {
	return func() []client.Object {
		server := harness.Server(name, 1, harness.Probed(probeInterval, probeTimeout, probeThreshold))
		for _, c := range change {
			c(server)
		}
		out := []client.Object{server}
		if server.Spec.Type == v1alpha1.TypeTools && len(server.Spec.Upstreams) == 0 {
			out = append(out, harness.Tool(name, name, harness.Says(`"here"`)))
		}
		return out
	}
}

// runs makes a server run an image with arguments.
func runs(image string, args ...string) func(*v1alpha1.MCPServer) {
	return func(s *v1alpha1.MCPServer) {
		s.Spec.Type = v1alpha1.TypeContainer
		s.Spec.Container = &v1alpha1.ContainerSource{Image: image, Args: args}
	}
}

// external is a server that runs at a URL.
func external(name, url string) func() []client.Object {
	return func() []client.Object {
		server := harness.External(name, url)
		harness.Probed(probeInterval, probeTimeout, probeThreshold)(server)
		return []client.Object{server}
	}
}

func notReady(reasons ...string) harness.Wanted {
	return readyIs(metav1.ConditionFalse, reasons...)
}

// setups are things that go wrong, each with its true cause.
var setups = []wrong{
	{name: "bad-image", make: one("bad-image", runs("example.test/none:1")), within: notReady(v1alpha1.ReasonImagePullFailed),
		verdict: why.NotReady, cause: "pods", reasons: []string{v1alpha1.ReasonImagePullFailed}, says: []string{"example.test/none:1"}},
	{name: "missing-secret", make: one("missing-secret", runs(harness.FakeMCPImage), func(s *v1alpha1.MCPServer) {
		s.Spec.Workload.Env = []corev1.EnvVar{{Name: "KEY", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: "nowhere"}, Key: "key",
		}}}}
	}), within: notReady(v1alpha1.ReasonSecretNotFound), verdict: why.NotReady, cause: "references", reasons: []string{v1alpha1.ReasonSecretNotFound}, says: []string{"the environment of the pods"}},
	{name: "missing-key", make: one("missing-key", runs(harness.FakeMCPImage), func(s *v1alpha1.MCPServer) {
		s.Spec.Workload.Env = []corev1.EnvVar{{Name: "KEY", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: "wrong"}, Key: "other",
		}}}}
	}), within: notReady(v1alpha1.ReasonSecretKeyNotFound), verdict: why.NotReady, cause: "references", reasons: []string{v1alpha1.ReasonSecretKeyNotFound}},
	{name: "crash-loop", make: one("crash-loop", runs(harness.FakeMCPImage, "--crash", "--exit-code=3")),
		within: notReady(v1alpha1.ReasonCrashLoopBackOff), verdict: why.NotReady, cause: "pods", reasons: []string{v1alpha1.ReasonCrashLoopBackOff}, says: []string{"status 3"}},
	{name: "hanging", make: one("hanging", runs(harness.FakeMCPImage, "--mode=hang")), within: notReady(string(mcpprobe.Timeout)),
		verdict: why.NotReady, cause: "probe", reasons: []string{string(mcpprobe.Timeout)}},
	{name: "rejected", make: one("rejected", runs(harness.FakeMCPImage, "--mode=auth"), func(s *v1alpha1.MCPServer) {
		s.Spec.Probe.Headers = []v1alpha1.Header{keyOf("wrong")}
	}), within: notReady(string(mcpprobe.AuthRejected)), verdict: why.NotReady, cause: "probe", reasons: []string{string(mcpprobe.AuthRejected)}, says: []string{"HTTP 401"}},
	{name: "wrong-path", make: external("wrong-path", "http://behind.NAMESPACE.svc:8081/mcp"), within: notReady(string(mcpprobe.UnexpectedStatus)),
		verdict: why.NotReady, cause: "probe", reasons: []string{string(mcpprobe.UnexpectedStatus)}, says: []string{"404"}},
	{name: "unreachable", make: external("unreachable", "http://nowhere.NAMESPACE.svc/mcp"), within: notReady(string(mcpprobe.DNSFailed)),
		verdict: why.NotReady, cause: "probe", reasons: []string{string(mcpprobe.DNSFailed)}, says: []string{"http://nowhere."}},
	{name: "untrusted", make: external("untrusted", "https://kubernetes.default.svc/mcp"), within: notReady(string(mcpprobe.TLSUntrusted)),
		verdict: why.NotReady, cause: "probe", reasons: []string{string(mcpprobe.TLSUntrusted)}},
	{name: "unschedulable", make: one("unschedulable", func(s *v1alpha1.MCPServer) { s.Spec.Workload.NodeSelector = map[string]string{"nowhere": "true"} }),
		within: notReady(v1alpha1.ReasonUnschedulable), verdict: why.NotReady, cause: "pods", reasons: []string{v1alpha1.ReasonUnschedulable}, says: []string{"node"}},
	{name: "zero", make: one("zero", func(s *v1alpha1.MCPServer) { s.Spec.Replicas = harness.To(int32(0)) }), within: readyIs(metav1.ConditionTrue, v1alpha1.ReasonScaledToZero),
		verdict: why.Ready, cause: "pods", reasons: []string{v1alpha1.ReasonScaledToZero}},
	{name: "drifted", make: one("drifted", func(s *v1alpha1.MCPServer) {
		s.Spec.Contract = &v1alpha1.Contract{Tools: []v1alpha1.ContractTool{{Name: "drifted", Digest: "v1:sha256:" + strings.Repeat("0", 64)}}}
	}), within: harness.Is(v1alpha1.ConditionContractMet, metav1.ConditionFalse, v1alpha1.ReasonDrifted), verdict: why.Ready, reasons: []string{v1alpha1.ReasonDrifted}},
	{name: "bad-filter", make: one("bad-filter", func(s *v1alpha1.MCPServer) { s.Spec.Tools = &v1alpha1.ToolsPolicy{Filter: "nope("} }), within: notReady(v1alpha1.ReasonInvalidFilter),
		verdict: why.NotReady, cause: "spec", reasons: []string{v1alpha1.ReasonInvalidFilter}},
	{name: "in-the-way", make: one("in-the-way"), within: notReady(v1alpha1.ReasonForeignObject),
		verdict: why.NotReady, cause: "deployment", reasons: []string{v1alpha1.ReasonForeignObject}},
	{name: "upstream-gone", make: one("upstream-gone", inFrontOf("http://nowhere.NAMESPACE.svc/mcp")), within: notReady(v1alpha1.ReasonUpstreamsUnavailable),
		verdict: why.NotReady, cause: "upstreams", reasons: []string{v1alpha1.ReasonUpstreamsUnavailable}, says: []string{"DNSFailed"}},
	{name: "child-exits", make: func() []client.Object { return []client.Object{badChild("child-exits", "exit")} }, within: notReady(v1alpha1.ReasonChildExited),
		verdict: why.NotReady, cause: "upstreams", reasons: []string{v1alpha1.ReasonChildExited}},
	{name: "proved", make: one("proved"), within: harness.Ready, verdict: why.Ready},
	{name: "second", about: "tool/second", verdict: why.NotReady, cause: "accepted", reasons: []string{v1alpha1.ReasonConflict}, says: []string{"a-first"}},
	{name: "bad-schema", about: "tool/bad-schema", verdict: why.NotReady, cause: "spec", reasons: []string{v1alpha1.ReasonInvalidInputSchema}},
	{name: "lost", about: "tool/lost", verdict: why.NotReady, cause: "servers", reasons: []string{v1alpha1.ReasonServerNotFound}},
	{name: "of-a-crash-loop", about: "tool/of-a-crash-loop", verdict: why.NotReady, cause: "accepted", reasons: []string{v1alpha1.ReasonServerNotFronted}},
	{name: "keyless", about: "tool/keyless", verdict: why.Ready, reasons: []string{v1alpha1.ReasonSecretNotFound}},
}

// brokenTools are MCPTools of which four can be served by nobody.
func brokenTools() []client.Object {
	named := func(t *v1alpha1.MCPTool) { t.Spec.Name = "ask" }
	return []client.Object{
		harness.Tool("second", "proved", harness.Says(`"second"`), named),
		harness.Tool("bad-schema", "proved", harness.Says(`"x"`), func(t *v1alpha1.MCPTool) {
			t.Spec.InputSchema = &v1alpha1.JSON{Raw: []byte(`{"type":"object","properties":{"a":{"type":"nonsense"}}}`)}
		}),
		harness.Tool("lost", "nobody", harness.Says(`"x"`)),
		harness.Tool("of-a-crash-loop", "crash-loop", harness.Says(`"x"`)),
		harness.Tool("keyless", "proved", harness.Gets("http://behind/", keyOf("nowhere"))),
	}
}

var _ = Describe("kubectl mcp why", func() {
	It("names the true cause of what is wrong, with the evidence and what to do", Label(slow), func(ctx SpecContext) {
		ns := cluster.Namespace(ctx, "why")
		behind, service := harness.Workload("behind", harness.FakeMCPImage, 8080)
		service.Spec.Ports = append(service.Spec.Ports, corev1.ServicePort{Name: "admin", Port: 8081})
		foreign := &corev1.Service{ObjectMeta: harness.Meta("in-the-way-mcp")}
		foreign.Spec.Ports = []corev1.ServicePort{{Port: 80}}
		ns.Create(ctx, behind, service, foreign,
			&corev1.Secret{ObjectMeta: harness.Meta("wrong"), StringData: map[string]string{"key": "expired-credential"}},
			harness.Tool("a-first", "proved", harness.Says(`"first"`), func(t *v1alpha1.MCPTool) { t.Spec.Name = "ask" }))
		for _, s := range setups {
			if s.make != nil {
				create(ctx, ns, s.make())
			}
		}
		ns.AwaitServer(ctx, "proved", harness.ReadyTimeout, harness.Ready)
		ns.AwaitTool(ctx, "a-first", harness.ReadyTimeout, harness.Served)
		time.Sleep(1100 * time.Millisecond) // Of two tools the older wins, and creationTimestamp counts in seconds.
		ns.Create(ctx, brokenTools()...)
		for _, s := range setups {
			expectCause(ctx, ns, s)
		}
		fleet := ns.Plugin(ctx, "get")
		harness.Say("%s", fleet.Stdout)
		lines := strings.Split(fleet.Stdout, "\n")
		Expect(lines[1]).To(ContainSubstring("NotReady"), "the worst comes first")
		Expect(fleet.Stdout).To(ContainSubstring("Proofs are fresh"))
	}, SpecTimeout(8*time.Minute))

	It("tells that a quota refuses the pods, in the words of the API server", Label(slow), func(ctx SpecContext) {
		ns := cluster.Namespace(ctx, "quota")
		ns.Create(ctx, &corev1.ResourceQuota{ObjectMeta: harness.Meta("no-pods"), Spec: corev1.ResourceQuotaSpec{
			Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")},
		}})
		s := wrong{name: "over-quota", make: one("over-quota"), within: notReady(v1alpha1.ReasonPodsNotCreated),
			verdict: why.NotReady, cause: "deployment", reasons: []string{v1alpha1.ReasonPodsNotCreated}, says: []string{"exceeded quota: no-pods"}}
		create(ctx, ns, s.make())
		expectCause(ctx, ns, s)
	}, SpecTimeout(3*time.Minute))

	It("believes no status when the operator is down, and judges by the pods", Serial, Label(slow, disruptive), func(ctx SpecContext) {
		ns := cluster.Namespace(ctx, "down")
		create(ctx, ns, one("proved")())
		create(ctx, ns, one("exits", runs(harness.FakeMCPImage, "--mode=ok"))())
		ns.AwaitServer(ctx, "proved", harness.ReadyTimeout, harness.Ready)
		ns.AwaitServer(ctx, "exits", harness.ReadyTimeout, harness.Ready)
		cluster.ScaleOperator(ctx, 0)
		stop := harness.Crashing(ctx, &ns.Pods(ctx, "exits")[0])

		expectCause(ctx, ns, wrong{name: "down", about: "proved", verdict: why.NotKnown, cause: "operator"})
		Eventually(ctx, func(g Gomega) {
			d, _ := diagnosis(ctx, ns, "exits")
			g.Expect(d.Cause).NotTo(BeNil())
			g.Expect(d.Cause.Name).To(Equal("pods"), "%+v", d.Cause)
			g.Expect(d.Cause.Reason).To(BeElementOf(v1alpha1.ReasonCrashLoopBackOff, v1alpha1.ReasonContainerExited))
			g.Expect(d.Verdict).To(Equal(why.NotKnown))
		}).WithTimeout(harness.ReadyTimeout).WithPolling(time.Second).Should(Succeed())
		stop()
		fleet := ns.Plugin(ctx, "get")
		harness.Say("%s", fleet.Stdout)
		Expect(fleet.Stdout).To(And(ContainSubstring("2 unknown"), ContainSubstring("not known since"), ContainSubstring("No operator lives")))
		Expect(fleet.Stdout).NotTo(ContainSubstring("Proved"), "an old Ready is not believed")
	}, SpecTimeout(5*time.Minute))
})

// create creates objects with NAMESPACE in URLs replaced.
func create(ctx context.Context, ns *harness.Namespace, objects []client.Object) {
	GinkgoHelper()
	for _, obj := range objects {
		if server, ok := obj.(*v1alpha1.MCPServer); ok {
			if e := server.Spec.External; e != nil {
				e.URL = strings.ReplaceAll(e.URL, "NAMESPACE", ns.Name)
			}
			for i := range server.Spec.Upstreams {
				server.Spec.Upstreams[i].URL = strings.ReplaceAll(server.Spec.Upstreams[i].URL, "NAMESPACE", ns.Name)
			}
		}
		ns.Create(ctx, obj)
	}
}

// diagnosis asks why of about, and gives the exit code.
func diagnosis(ctx context.Context, ns *harness.Namespace, about string) (*why.Diagnosis, int) {
	GinkgoHelper()
	ran := ns.Plugin(ctx, "why", about, "--output=json")
	Expect(ran.Code).To(BeElementOf(0, 1), "%s%s", ran.Stdout, ran.Stderr)
	d := &why.Diagnosis{}
	Expect(json.Unmarshal([]byte(ran.Stdout), d)).To(Succeed(), "%s", ran.Stdout)
	return d, ran.Code
}

// expectCause waits until why says what is to be said, and compares the text
// with the one that is kept.
func expectCause(ctx context.Context, ns *harness.Namespace, s wrong) {
	GinkgoHelper()
	about := s.about
	if about == "" {
		about = s.name
	}
	if s.within.Type != "" {
		ns.AwaitServer(ctx, s.name, stateWithin, s.within)
	}
	Eventually(ctx, func(g Gomega) {
		d, code := diagnosis(ctx, ns, about)
		g.Expect(d.Verdict).To(Equal(s.verdict), "%+v", d)
		g.Expect(code).To(Equal(map[bool]int{true: 0, false: 1}[s.verdict == why.Ready]), "the exit code")
		found := d.Cause
		if s.cause == "" && len(d.Also) > 0 {
			found = &d.Also[0]
		}
		if s.cause != "" {
			g.Expect(found).NotTo(BeNil())
			g.Expect(found.Name).To(Equal(s.cause), "%+v", found)
		}
		if len(s.reasons) > 0 {
			g.Expect(found).NotTo(BeNil(), "%+v", d)
			g.Expect(found.Reason).To(BeElementOf(s.reasons), "%+v", found)
			g.Expect(found.Do).NotTo(BeEmpty(), "it says what to do: %+v", found)
		}
		if found != nil {
			told := found.Message + "\n" + strings.Join(found.Evidence, "\n")
			for _, words := range s.says {
				g.Expect(told).To(ContainSubstring(words))
			}
		}
	}).WithTimeout(harness.ReadyTimeout).WithPolling(time.Second).Should(Succeed(), s.name)
	var said string
	Eventually(ctx, func(g Gomega) {
		said = ns.Plugin(ctx, "why", about).Stdout
		expectGolden(g, "why", s.name, masked(said, ns.Name))
	}).WithTimeout(harness.StatusTimeout).WithPolling(time.Second).Should(Succeed(), s.name)
	harness.Say("\n$ kubectl mcp why %s\n%s", about, said)
	Expect(said).NotTo(ContainSubstring("expired-credential"), "values are never printed")
}
