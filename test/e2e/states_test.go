// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/test/e2e/harness"
	"github.com/espalier-dev/espalier/test/states"
)

// state is a row of the table of states: what a server comes to, and what
// kstatus makes of it.
type state struct {
	server string
	// make builds the server; nil is one of type Tools with one tool.
	make func(*v1alpha1.MCPServer)
	// then changes what was proved before.
	then func(ctx context.Context, ns *harness.Namespace)
	// ready is status and reasons of Ready; others are conditions that tell
	// more, "TYPE STATUS REASON".
	ready   harness.Wanted
	others  []string
	kstatus status.Status
}

// stateWithin: a start-up budget of 15 s, or the minute for which entries of an
// upstream that is away are kept, and the way of the news.
const stateWithin = 2 * time.Minute

func readyIs(status metav1.ConditionStatus, reasons ...string) harness.Wanted {
	return harness.Is(v1alpha1.ConditionReady, status, reasons...)
}

// build gives the server, and a tool where it may have one.
func (s state) build(namespace string) []client.Object {
	server := harness.Server(s.server, 1, harness.Probed(probeInterval, probeTimeout, probeThreshold))
	if s.make != nil {
		s.make(server)
	}
	for i := range server.Spec.Upstreams {
		server.Spec.Upstreams[i].URL = strings.ReplaceAll(server.Spec.Upstreams[i].URL, "NAMESPACE", namespace)
	}
	out := []client.Object{server}
	if server.Spec.Type == v1alpha1.TypeTools && s.server != "upstreams-gone" {
		out = append(out, harness.Tool(s.server, s.server, harness.Says(`"here"`)))
	}
	if s.server == "tool-secret-missing" {
		out = append(out, harness.Tool("keyless", s.server, harness.Gets("http://behind/", keyOf("nowhere"))))
	}
	return out
}

func keyOf(secret string) v1alpha1.Header {
	return v1alpha1.Header{Name: "X-Key", SecretKeyRef: &v1alpha1.SecretKeyRef{Name: secret, Key: "key"}}
}

// runsFake makes a server run the fake, in a mode.
func runsFake(mode string) func(*v1alpha1.MCPServer) {
	return func(s *v1alpha1.MCPServer) {
		s.Spec.Type = v1alpha1.TypeContainer
		s.Spec.Container = &v1alpha1.ContainerSource{Image: harness.FakeMCPImage, Args: []string{"--mode=" + mode}}
	}
}

// inFrontOf makes a server stand in front of a URL.
func inFrontOf(url string) func(*v1alpha1.MCPServer) {
	return func(s *v1alpha1.MCPServer) { s.Spec.Upstreams = []v1alpha1.Upstream{{Name: "behind", URL: url}} }
}

func both(changes ...func(*v1alpha1.MCPServer)) func(*v1alpha1.MCPServer) {
	return func(s *v1alpha1.MCPServer) {
		for _, change := range changes {
			change(s)
		}
	}
}

var tableOfStates = []state{
	{server: "proved", ready: readyIs(metav1.ConditionTrue, v1alpha1.ReasonProved), kstatus: status.CurrentStatus},
	{server: "zero", make: func(s *v1alpha1.MCPServer) { s.Spec.Replicas = harness.To(int32(0)) }, ready: readyIs(metav1.ConditionTrue, v1alpha1.ReasonScaledToZero), others: []string{"Healthy Unknown ScaledToZero"}, kstatus: status.CurrentStatus},
	{server: "suspended", make: func(s *v1alpha1.MCPServer) { s.Spec.Suspend = harness.To(true) }, ready: readyIs(metav1.ConditionTrue, v1alpha1.ReasonSuspended), others: []string{"Healthy Unknown Suspended"}, kstatus: status.CurrentStatus},
	{server: "wants-auth", make: runsFake("auth"), ready: readyIs(metav1.ConditionTrue, string(mcpprobe.AuthRequired)), others: []string{"Healthy Unknown AuthRequired"}, kstatus: status.CurrentStatus},
	{server: "auth-rejected", make: both(runsFake("auth"), func(s *v1alpha1.MCPServer) {
		s.Spec.Probe.Headers = []v1alpha1.Header{keyOf("wrong")}
	}), ready: readyIs(metav1.ConditionFalse, string(mcpprobe.AuthRejected)), kstatus: status.InProgressStatus},
	{server: "starting", make: runsFake("garbage"), ready: readyIs(metav1.ConditionFalse, string(mcpprobe.NotMCP)), others: []string{"Reconciling True Starting"}, kstatus: status.InProgressStatus},
	{server: "env-missing", make: both(runsFake("ok"), func(s *v1alpha1.MCPServer) {
		s.Spec.Workload.Env = []corev1.EnvVar{{Name: "KEY", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: "nowhere"}, Key: "key",
		}}}}
	}), ready: readyIs(metav1.ConditionFalse, v1alpha1.ReasonSecretNotFound), others: []string{"Reconciling True SecretNotFound"}, kstatus: status.InProgressStatus},
	{server: "rolling-out", make: runsFake("ok"), then: func(ctx context.Context, ns *harness.Namespace) {
		ns.Kubectl(ctx, "patch", "mcpserver", "rolling-out", "--type=merge", "-p", `{"spec":{"container":{"image":"example.test/none:1"}}}`)
	}, ready: readyIs(metav1.ConditionTrue, v1alpha1.ReasonProved), others: []string{"Reconciling True ImagePullFailed"}, kstatus: status.InProgressStatus},
	{server: "tool-secret-missing", ready: readyIs(metav1.ConditionTrue, v1alpha1.ReasonProved), others: []string{"ResolvedRefs False SecretNotFound"}, kstatus: status.CurrentStatus},
	{server: "failing", make: runsFake("ok"), then: func(ctx context.Context, ns *harness.Namespace) {
		harness.SetMode(ctx, &ns.Pods(ctx, "failing")[0], "garbage")
	}, ready: readyIs(metav1.ConditionFalse, string(mcpprobe.NotMCP)), kstatus: status.InProgressStatus},
	{server: "no-traffic", make: runsFake("ok"), then: func(ctx context.Context, ns *harness.Namespace) {
		harness.Crashing(ctx, &ns.Pods(ctx, "no-traffic")[0])
	}, ready: readyIs(metav1.ConditionFalse, v1alpha1.ReasonCrashLoopBackOff, v1alpha1.ReasonContainerExited), kstatus: status.InProgressStatus},
	{server: "upstreams-gone", make: inFrontOf("http://behind.NAMESPACE.svc/mcp"), then: func(ctx context.Context, ns *harness.Namespace) {
		ns.Kubectl(ctx, "scale", "deployment/behind", "--replicas=0")
	}, ready: readyIs(metav1.ConditionFalse, v1alpha1.ReasonUpstreamsUnavailable), others: []string{"UpstreamsReady False UpstreamsUnavailable"}, kstatus: status.InProgressStatus},
	{server: "an-upstream-down", make: inFrontOf("http://nowhere.NAMESPACE.svc/mcp"), ready: readyIs(metav1.ConditionTrue, v1alpha1.ReasonProved), others: []string{"UpstreamsReady False UpstreamsUnavailable"}, kstatus: status.CurrentStatus},
	{server: "contract-broken", make: func(s *v1alpha1.MCPServer) {
		s.Spec.Contract = &v1alpha1.Contract{Tools: []v1alpha1.ContractTool{{Name: "contract-broken", Digest: "v1:sha256:" + strings.Repeat("0", 64)}}}
	}, ready: readyIs(metav1.ConditionTrue, v1alpha1.ReasonProved), others: []string{"ContractMet False Drifted"}, kstatus: status.CurrentStatus},
	{server: "never-started", make: both(runsFake("garbage"), func(s *v1alpha1.MCPServer) { s.Spec.StartupTimeoutSeconds = harness.To(int32(15)) }), ready: readyIs(metav1.ConditionFalse, string(mcpprobe.NotMCP)), others: []string{"Stalled True NotMCP"}, kstatus: status.FailedStatus},
	{server: "invalid", make: func(s *v1alpha1.MCPServer) { s.Spec.Tools = &v1alpha1.ToolsPolicy{Filter: "nope("} }, ready: readyIs(metav1.ConditionFalse, v1alpha1.ReasonInvalidFilter), others: []string{"Stalled True InvalidFilter"}, kstatus: status.FailedStatus},
	{server: "in-the-way", ready: readyIs(metav1.ConditionFalse, v1alpha1.ReasonForeignObject), others: []string{"Stalled True ForeignObject"}, kstatus: status.FailedStatus},
}

var _ = Describe("The states of a server", func() {
	It("are told by Ready, its reason and kstatus alike, each from a real set-up", Label(slow), func(ctx SpecContext) {
		ns := cluster.Namespace(ctx, "states")
		behind, service := harness.Workload("behind", harness.FakeMCPImage, 8080)
		foreign := &corev1.Service{ObjectMeta: harness.Meta("in-the-way-mcp")}
		foreign.Spec.Ports = []corev1.ServicePort{{Port: 80}}
		ns.Create(ctx, behind, service, foreign,
			&corev1.Secret{ObjectMeta: harness.Meta("wrong"), StringData: map[string]string{"key": "expired"}})
		ns.AwaitRollout(ctx, "behind", harness.ReadyTimeout)
		for _, s := range tableOfStates {
			ns.Create(ctx, s.build(ns.Name)...)
		}
		for _, s := range tableOfStates {
			if s.then != nil {
				ns.AwaitServer(ctx, s.server, harness.ReadyTimeout, harness.Ready)
				s.then(ctx, ns)
			}
		}
		var lines []string
		for _, s := range tableOfStates {
			lines = append(lines, expectState(ctx, ns, s))
			Expect(states.Check(s.server, storedServer(ctx, ns, s.server))).To(Succeed(), s.server)
		}
		ns.Show(ctx, "The states of a server")
		harness.Say("%s", aligned("STATE\tREADY\tRECONCILING\tSTALLED\tKSTATUS", lines))
	}, SpecTimeout(6*time.Minute))
})

// expectState waits for a state and gives its line of the table.
func expectState(ctx context.Context, ns *harness.Namespace, s state) string {
	GinkgoHelper()
	seen := ns.AwaitServer(ctx, s.server, stateWithin, s.ready)
	Eventually(ctx, func(g Gomega) {
		ns.Get(ctx, s.server, seen)
		for _, other := range s.others {
			g.Expect(conditionLines(seen)).To(ContainElement(other))
		}
		g.Expect(harness.Has(seen, s.ready)).To(Succeed())
		g.Expect(kstatusOf(ctx, ns, s.server)).To(Equal(s.kstatus), "%s: %v", s.server, conditionLines(seen))
	}).WithTimeout(stateWithin).Should(Succeed(), s.server)
	line := s.server
	for _, kind := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled} {
		line += "\t"
		if c := harness.Condition(seen, kind); c != nil {
			line += string(c.Status) + " " + c.Reason
		} else {
			line += "-"
		}
	}
	// kstatus knows no more than this, and neither must a person.
	Expect(slices.ContainsFunc(seen.Status.Conditions, func(c metav1.Condition) bool { return c.Message == "" })).To(BeFalse(), s.server)
	return line + "\t" + s.kstatus.String()
}

func conditionLines(server *v1alpha1.MCPServer) []string {
	var out []string
	for _, c := range server.Status.Conditions {
		out = append(out, fmt.Sprintf("%s %s %s", c.Type, c.Status, c.Reason))
	}
	return out
}

// kstatusOf is the verdict of the library that kubectl apply --prune, Flux and
// others wait with.
func kstatusOf(ctx context.Context, ns *harness.Namespace, name string) (status.Status, error) {
	result, err := status.Compute(storedServer(ctx, ns, name))
	if err != nil {
		return "", err
	}
	return result.Status, nil
}

// storedServer is an MCPServer as those see it who know nothing of its type.
func storedServer(ctx context.Context, ns *harness.Namespace, name string) *unstructured.Unstructured {
	GinkgoHelper()
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("MCPServer"))
	ns.Get(ctx, name, obj)
	return obj
}

func aligned(head string, lines []string) string {
	var out strings.Builder
	table := tabwriter.NewWriter(&out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, head)
	for _, line := range lines {
		fmt.Fprintln(table, line)
	}
	_ = table.Flush()
	return out.String()
}

// outcomes are modes of the fake, and how the probe tells of each.
var outcomes = map[string]mcpprobe.Outcome{
	"hang": mcpprobe.Timeout, "hang-list": mcpprobe.Timeout, "drop": mcpprobe.ConnectionLost, "garbage": mcpprobe.NotMCP, "html": mcpprobe.NotMCP,
	"bad-gateway": mcpprobe.UnexpectedStatus, "auth-basic": mcpprobe.AuthUnverified, "host": mcpprobe.HostRejected, "version": mcpprobe.UnsupportedProtocol,
	"refuse": mcpprobe.HandshakeRejected, "list-error": mcpprobe.ListFailed, "lose-session": mcpprobe.SessionLost, "huge": mcpprobe.ResponseTooLarge,
}

// elsewhere are External servers that nothing has to run for.
var elsewhere = map[string]struct {
	url     string
	outcome mcpprobe.Outcome
}{
	"no-such-name":  {"http://nowhere.NAMESPACE.svc/mcp", mcpprobe.DNSFailed},
	"wrong-port":    {"http://fake.NAMESPACE.svc:81/mcp", mcpprobe.ConnectionRefused},
	"wrong-path":    {"http://fake.NAMESPACE.svc:8081/mcp", mcpprobe.UnexpectedStatus},
	"no-tls-there":  {"https://fake.NAMESPACE.svc:80/mcp", mcpprobe.TLSNotOffered},
	"this-machine":  {"http://127.0.0.1:9/mcp", mcpprobe.ProbeDenied},
	"the-other-end": {"https://kubernetes.default.svc/mcp", mcpprobe.TLSUntrusted},
}

var _ = Describe("What is wrong with a server", func() {
	It("is told with what to do, by kubectl get and describe alone", Label(slow), func(ctx SpecContext) {
		ns := cluster.Namespace(ctx, "outcomes")
		deployment, service := harness.Workload("fake", harness.FakeMCPImage, 8080)
		// Its switches are HTTP, and no MCP at any path. At port 81 nothing listens; what
		// becomes of a port that no Service has is up to the network.
		service.Spec.Ports = append(service.Spec.Ports, corev1.ServicePort{Name: "admin", Port: 8081}, corev1.ServicePort{Name: "nobody", Port: 81})
		ns.Create(ctx, deployment, service)
		for name := range outcomes {
			server := harness.Container(name, 1, harness.FakeMCPImage, "--mode="+name)
			harness.Probed(probeInterval, probeTimeout, probeThreshold)(server)
			ns.Create(ctx, server)
		}
		ns.AwaitRollout(ctx, "fake", harness.ReadyTimeout)
		for name, e := range elsewhere {
			server := harness.External(name, strings.ReplaceAll(e.url, "NAMESPACE", ns.Name))
			harness.Probed(probeInterval, probeTimeout, probeThreshold)(server)
			ns.Create(ctx, server)
		}
		wanted := map[string]mcpprobe.Outcome{}
		for name, outcome := range outcomes {
			wanted[name] = outcome
		}
		for name, e := range elsewhere {
			wanted[name] = e.outcome
		}
		var lines []string
		for name, outcome := range wanted {
			seen := ns.AwaitServer(ctx, name, stateWithin, readyIs(metav1.ConditionFalse, string(outcome)))
			message := harness.Condition(seen, v1alpha1.ConditionReady).Message
			lines = append(lines, fmt.Sprintf("%s\t%s\t%s", name, outcome, message))
			Expect(ns.Kubectl(ctx, "describe", "mcpserver", name)).To(ContainSubstring(strings.Fields(message)[0]), "kubectl describe shows the message")
			Expect(message).To(MatchRegexp(`(?i)(Read|Check|Give|Set|Use|Allow|Look|Ask|Raise|Name|Point|See|Is |Add|Fix|Mend)`), "%s says what to do", name)
			Expect(message).NotTo(Or(ContainSubstring("}{"), ContainSubstring("sign in"), ContainSubstring("Invalid Host")), "a peer's words do not belong into status")
		}
		slices.Sort(lines)
		ns.Show(ctx, "What is wrong")
		harness.Say("%s", aligned("SERVER\tREASON\tMESSAGE", lines))
	}, SpecTimeout(6*time.Minute))
})
