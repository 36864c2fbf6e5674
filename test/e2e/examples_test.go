// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/test/e2e/harness"
)

// exampleNamespace is the one that the examples name.
const exampleNamespace = "espalier-demo"

var _ = Describe("The examples", func() {
	It("work as they are written", Label(slow), func(ctx SpecContext) {
		err := cluster.Client.Get(ctx, client.ObjectKey{Name: exampleNamespace}, &corev1.Namespace{})
		if !apierrors.IsNotFound(err) {
			Skip("namespace " + exampleNamespace + " exists: the demo runs here, and this test would end it")
		}
		ns := cluster.Adopt(exampleNamespace)
		manifests := exampleManifests()
		DeferCleanup(func(ctx SpecContext) {
			ns.KubectlIn(ctx, manifests, "delete", "--ignore-not-found", "--wait=false", "--filename=-")
		})
		ns.KubectlIn(ctx, manifests, "apply", "--filename=-")

		var servers v1alpha1.MCPServerList
		Expect(cluster.Client.List(ctx, &servers, client.InNamespace(exampleNamespace))).To(Succeed())
		Expect(servers.Items).To(HaveLen(strings.Count(manifests, "\nkind: MCPServer\n")))
		for _, server := range servers.Items {
			ns.AwaitServer(ctx, server.Name, harness.ImageTimeout, harness.Ready)
		}
		Eventually(ctx, func() error { return allServed(ctx, ns) }).
			WithTimeout(harness.RotationTimeout).WithPolling(2 * harness.Poll).Should(Succeed())
		// A server is Ready before the backends of its tools are: a call is not part of the proof.
		ns.AwaitRollouts(ctx, harness.ReadyTimeout)
		ns.AwaitService(ctx, "shop")
		ns.Show(ctx, "The examples")
		// kubectl diff fails when there is a difference.
		ns.KubectlIn(ctx, manifests, "diff", "--filename=-")

		ask := func(server, tool, arguments string) map[string]any {
			GinkgoHelper()
			var args, structured map[string]any
			Expect(json.Unmarshal([]byte(arguments), &args)).To(Succeed())
			answer, err := ns.ServicePeer(ctx, server).Call(ctx, tool, args)
			Expect(err).NotTo(HaveOccurred())
			Expect(answer.IsError).To(BeFalse(), "%s of %s answers %q", tool, server, answer.Text())
			harness.Say("%s %s %s -> %.300s", server, tool, arguments, answer.Text())
			if answer.Structured == nil {
				return map[string]any{"text": answer.Text()}
			}
			Expect(json.Unmarshal(answer.Structured, &structured)).To(Succeed())
			return structured
		}
		By("expressions")
		Expect(ask("hello", "greet", `{"name":"Ada"}`)).To(HaveKeyWithValue("text", "Hello, Ada!"))
		Expect(ask("hello", "convert_temperature", `{"celsius":100}`)).To(HaveKeyWithValue("fahrenheit", BeNumerically("==", 212)))
		weak, err := ns.ServicePeer(ctx, "hello").Call(ctx, "check_password", map[string]any{"password": "short"})
		Expect(err).NotTo(HaveOccurred())
		Expect(weak.IsError).To(BeTrue())

		By("a REST backend")
		order := ask("shop", "create_order", `{"customer":"ada","item":"pear","quantity":2}`)
		Expect(order).To(HaveKeyWithValue("item", "pear"))
		Expect(ask("shop", "get_order", `{"id":"`+order["id"].(string)+`"}`)).To(Equal(order))
		Expect(ask("shop", "list_orders", `{"customer":"ada"}`)["orders"]).To(HaveLen(1))
		Expect(ask("shop", "get_forecast", `{"city":"Bern","days":4}`)["highs"]).To(HaveLen(4))

		By("the cluster's own API")
		Expect(ask("cluster", "list_namespaces", `{}`)["namespaces"]).To(ContainElement(exampleNamespace))
		Expect(ask("cluster", "list_pods", `{"namespace":"`+exampleNamespace+`"}`)["pods"]).To(ContainElement(
			HaveKeyWithValue("phase", "Running")))
		Expect(ask("cluster", "list_mcp_servers", `{"namespace":"`+exampleNamespace+`"}`)["servers"]).To(ContainElement(
			Equal(map[string]any{"name": "hello", "ready": true})))
		refused, err := ns.ServicePeer(ctx, "cluster").Call(ctx, "list_pods", map[string]any{"namespace": "../../secrets"})
		Expect(err).NotTo(HaveOccurred())
		Expect(refused.IsError).To(BeTrue(), "an argument does not change the path's structure")

		By("a front for others")
		Eventually(ctx, func(g Gomega) {
			front := &v1alpha1.MCPServer{}
			g.Expect(cluster.Client.Get(ctx, client.ObjectKey{Namespace: exampleNamespace, Name: "front"}, front)).To(Succeed())
			g.Expect(front.Status.Upstreams).To(HaveLen(2))
			for _, upstream := range front.Status.Upstreams {
				g.Expect(upstream).To(HaveField("State", "Ready"))
			}
		}).WithTimeout(harness.RotationTimeout).WithPolling(2 * harness.Poll).Should(Succeed())
		Expect(ask("front", "welcome", `{"name":"Ada"}`)).To(HaveKeyWithValue("text", "Hello, Ada!"))
		Expect(ask("front", "every_echo", `{"message":"hi"}`)).To(HaveKeyWithValue("text", ContainSubstring("hi")))
		Expect(ask("front", "repeat", `{"message":"hi"}`)).To(HaveKeyWithValue("text", ContainSubstring("hi")))

		By("OpenAPI documents")
		Eventually(ctx, func(g Gomega) {
			apis := &v1alpha1.MCPServer{}
			g.Expect(cluster.Client.Get(ctx, client.ObjectKey{Namespace: exampleNamespace, Name: "apis"}, apis)).To(Succeed())
			g.Expect(apis.Status.Upstreams).To(HaveLen(2))
			for _, upstream := range apis.Status.Upstreams {
				g.Expect(upstream).To(HaveField("State", "Ready"))
			}
		}).WithTimeout(harness.RotationTimeout).WithPolling(2 * harness.Poll).Should(Succeed())
		Expect(ask("apis", "place_order", `{"body":{"customer":"bob","item":"plum","quantity":1}}`)).To(HaveKeyWithValue("item", "plum"))
		Expect(ask("apis", "kube_readAppsV1NamespacedDeployment", `{"namespace":"`+exampleNamespace+`","name":"shop"}`)).To(
			HaveKeyWithValue("kind", "Deployment"))

		By("resources and prompts")
		handbook := ns.ServicePeer(ctx, "handbook")
		Expect(handbook.Read(ctx, "docs://runbooks/checkout")).To(ContainSubstring("Restart the workers."))
		Expect(handbook.Read(ctx, "docs://services/search")).To(ContainSubstring("docs://runbooks/search"))
		Expect(handbook.Prompt(ctx, "triage", map[string]string{"service": "search"})).To(ContainSubstring("Look at the index age."))

		By("server-everything")
		for _, name := range []string{"everything", "vendor"} {
			server := &v1alpha1.MCPServer{}
			ns.Get(ctx, name, server)
			Expect(server.Status.ToolCount).To(HaveValue(BeEquivalentTo(everythingTools)))
		}
	}, SpecTimeout(8*time.Minute))
})

// exampleManifests are all examples as one stream of YAML.
func exampleManifests() string {
	GinkgoHelper()
	root := filepath.Join("..", "..", "examples")
	files, err := filepath.Glob(filepath.Join(root, "*", "*.yaml"))
	Expect(err).NotTo(HaveOccurred())
	var all []string
	for _, file := range append([]string{filepath.Join(root, "namespace.yaml")}, files...) {
		raw, err := os.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())
		if strings.Contains(string(raw), "\napiVersion: gateway.networking.k8s.io/") {
			continue // The cluster has no such kinds; test/api applies it.
		}
		all = append(all, string(raw))
	}
	return strings.ReplaceAll(strings.Join(all, "\n---\n"), "ghcr.io/espalier-dev/", harness.Registry()+"/")
}
