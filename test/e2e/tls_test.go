// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/mcpserver/serving/servingtest"
	"github.com/espalier-dev/espalier/test/e2e/harness"
)

// certified makes or changes the Secret of this name, as cert-manager would.
// It gives the certificate.
func certified(ctx context.Context, ns *harness.Namespace, secret string, by, ca *servingtest.Authority, name string, valid time.Duration) []byte {
	GinkgoHelper()
	cert, key, err := by.Issue(name, valid)
	Expect(err).NotTo(HaveOccurred())
	data := map[string][]byte{corev1.TLSCertKey: cert, corev1.TLSPrivateKeyKey: key, "ca.crt": ca.PEM}
	object := &corev1.Secret{ObjectMeta: harness.Meta(secret), Type: corev1.SecretTypeTLS, Data: data}
	object.Namespace = ns.Name
	if ns.Client.Create(ctx, object.DeepCopy()) != nil {
		ns.Update(ctx, secret, object, func() { object.Data = data })
	}
	block, _ := pem.Decode(cert)
	return block.Bytes
}

// encrypted are the endpoints of a server's pods over TLS, verified by a.
func encrypted(ctx context.Context, ns *harness.Namespace, server string, a *servingtest.Authority) []*harness.Peer {
	GinkgoHelper()
	peers := ns.Peers(ctx, server)
	for _, p := range peers {
		pool := x509.NewCertPool()
		Expect(pool.AppendCertsFromPEM(a.PEM)).To(BeTrue())
		p.URL = strings.Replace(p.URL, "http://", "https://", 1)
		p.Client = &http.Client{Transport: &http.Transport{
			DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: server + "-mcp." + ns.Name + ".svc"},
		}}
	}
	return peers
}

// shown is the certificate that a peer shows.
func shown(p *harness.Peer) ([]byte, error) {
	address := strings.TrimSuffix(strings.TrimPrefix(p.URL, "https://"), "/mcp")
	c, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		return nil, err
	}
	return c.ConnectionState().PeerCertificates[0].Raw, c.Close()
}

var _ = Describe("A server's certificate", func() {
	It("is served, rotated without a restart, verified by the operator and by servers in front", Label(slow), func(ctx SpecContext) {
		ns := cluster.Namespace(ctx, "tls")
		a, err := servingtest.NewAuthority()
		Expect(err).NotTo(HaveOccurred())
		host := "web-mcp." + ns.Name + ".svc"
		ns.Create(ctx, harness.Server("web", 2, harness.Probed(probeInterval, probeTimeout, probeThreshold), func(s *v1alpha1.MCPServer) {
			s.Spec.TLS = &v1alpha1.ServerTLS{SecretRef: v1alpha1.CertificateRef{Name: "web-tls"}}
		}), harness.Tool("echo", "web", harness.Says("args.word")))

		By("no Secret")
		ns.AwaitServer(ctx, "web", harness.ReadyTimeout, harness.Is(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonSecretNotFound).Saying("web-tls"))
		certified(ctx, ns, "web-tls", a, a, host, time.Hour)
		server := ns.AwaitServer(ctx, "web", 2*harness.ReadyTimeout, harness.Ready)
		Expect(server.Status.URL).To(Equal("https://" + host + ":8080/mcp"))
		ns.AwaitTool(ctx, "echo", harness.ServedTimeout, harness.Served)

		By("TLS, and nothing else")
		peers := encrypted(ctx, ns, "web", a)
		Expect(peers).To(HaveLen(2))
		for i, p := range peers {
			answer, err := p.Call(ctx, "echo", map[string]any{"word": "hi"})
			Expect(err).NotTo(HaveOccurred())
			Expect(answer.Text()).To(Equal("hi"))
			session, err := p.Begin(ctx)
			Expect(err).NotTo(HaveOccurred())
			answer, _, err = session.Call(ctx, peers[1-i], "echo", map[string]any{"word": "passed on"})
			Expect(err).NotTo(HaveOccurred())
			Expect(answer.Text()).To(Equal("passed on"))
		}
		_, err = ns.Peers(ctx, "web")[0].Call(ctx, "echo", map[string]any{"word": "hi"})
		Expect(err).To(HaveOccurred())

		By("a server in front of it")
		ns.Create(ctx, harness.Server("front", 1, func(s *v1alpha1.MCPServer) {
			s.Spec.Upstreams = []v1alpha1.Upstream{{Name: "web", ServerRef: &v1alpha1.UpstreamServerRef{Name: "web"}}}
		}))
		ns.AwaitServer(ctx, "front", harness.ReadyTimeout, harness.Ready, harness.Is(v1alpha1.ConditionUpstreamsReady, metav1.ConditionTrue))
		front := ns.Peers(ctx, "front")[0]
		answer, err := front.Call(ctx, "echo", map[string]any{"word": "through"})
		Expect(err).NotTo(HaveOccurred())
		Expect(answer.Text()).To(Equal("through"))

		By("a rotation")
		pods := harness.Identity(ns.Pods(ctx, "web"))
		ready := watchCondition(ctx, ns, "web", v1alpha1.ConditionReady)
		start := time.Now()
		rotated := certified(ctx, ns, "web-tls", a, a, host, 2*time.Hour)
		for _, p := range peers {
			Eventually(ctx, func() ([]byte, error) { return shown(p) }).
				WithTimeout(time.Minute).WithPolling(harness.Poll).Should(Equal(rotated), p.Name)
		}
		harness.Say("a rotated certificate is shown by both replicas after %s", time.Since(start).Round(100*time.Millisecond))
		answer, err = front.Call(ctx, "echo", map[string]any{"word": "through"})
		Expect(err).NotTo(HaveOccurred())
		Expect(answer.Text()).To(Equal("through"))
		Expect(ready.seen()).To(Or(BeEmpty(), HaveEach(HavePrefix("True"))), "Ready while the certificate was rotated")

		By("certificates that nobody should take")
		other, err := servingtest.NewAuthority()
		Expect(err).NotTo(HaveOccurred())
		for _, wrong := range []struct {
			by    *servingtest.Authority
			name  string
			valid time.Duration
			told  mcpprobe.Outcome
		}{
			{a, host, -time.Hour, mcpprobe.TLSExpired},
			{a, "other-mcp." + ns.Name + ".svc", time.Hour, mcpprobe.TLSWrongName},
			{other, host, time.Hour, mcpprobe.TLSUntrusted},
		} {
			certified(ctx, ns, "web-tls", wrong.by, a, wrong.name, wrong.valid)
			broken, took := ns.AwaitServerFor(ctx, "web", 2*time.Minute, harness.Is(v1alpha1.ConditionReady, metav1.ConditionFalse, string(wrong.told)))
			harness.Say("%s after %s: %s", wrong.told, took.Round(time.Second), harness.Condition(broken, v1alpha1.ConditionReady).Message)
		}
		certified(ctx, ns, "web-tls", a, a, host, time.Hour)
		ns.AwaitServer(ctx, "web", 2*time.Minute, harness.Ready)
		Expect(harness.Identity(ns.Pods(ctx, "web"))).To(Equal(pods), "pods were replaced or restarted")
	}, SpecTimeout(9*time.Minute))
})
