// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/test/e2e/harness"
)

// installBefore installs the commit before this one by its own chart.
func installBefore(ctx context.Context, found *harness.Installation) {
	GinkgoHelper()
	before := found.Before()
	harness.Say("the commit before: %s", before.Commit)
	cluster.Helm(ctx, append([]string{"install", "espalier", before.Chart, "--wait", helmWait}, before.ChartValues()...)...)
	cluster.AwaitOperator(ctx)
}

// upgradeFromBefore upgrades that to the chart and the operator of this tree,
// while load calls the fleet of ns, and expects no pod of a server to restart.
// Pods are replaced only where this tree renders others, which is said.
func upgradeFromBefore(ctx context.Context, found *harness.Installation, ns *harness.Namespace, load *harness.Load) {
	GinkgoHelper()
	templates, pods := templatesOf(ctx, ns), podsOfFleet(ctx, ns)
	cluster.Helm(ctx, append([]string{"upgrade", "espalier", harness.Chart, "--reset-then-reuse-values", "--wait", helmWait}, found.ChartValues()...)...)
	cluster.AwaitOperator(ctx)
	expectCRDsOfThisTree(ctx)
	retitle(ctx, ns, "after the upgrade")
	awaitFleet(ctx, ns, "")
	expectNoFailure(load, "from the commit before")
	if changed := cmp.Diff(templates, templatesOf(ctx, ns)); changed != "" {
		harness.Say("this tree renders other pods than the commit before, which are replaced:\n%s", changed)
		Expect(podsOfFleet(ctx, ns)).To(HaveEach(HaveSuffix(" 0")), "restarts of containers")
		return
	}
	Expect(podsOfFleet(ctx, ns)).To(Equal(pods), "pods of servers")
}

// retitle edits each server, so that whoever is Ready afterwards was looked
// after by the operator that runs now.
func retitle(ctx context.Context, ns *harness.Namespace, title string) {
	GinkgoHelper()
	for _, s := range fleetOf(ctx, ns) {
		ns.Update(ctx, s.Name, &s, func() { s.Spec.ServerInfo = &v1alpha1.ServerInfo{Title: title} })
	}
}

// templatesOf are the pods that the servers' Deployments want.
func templatesOf(ctx context.Context, ns *harness.Namespace) map[string]corev1.PodTemplateSpec {
	GinkgoHelper()
	var deployments appsv1.DeploymentList
	Expect(ns.Client.List(ctx, &deployments, client.InNamespace(ns.Name), client.HasLabels{v1alpha1.LabelServer})).To(Succeed())
	out := map[string]corev1.PodTemplateSpec{}
	for _, d := range deployments.Items {
		out[d.Name] = d.Spec.Template
	}
	return out
}

// expectCRDsOfThisTree compares the versions of the cluster's CRDs with those
// of config/crd.
func expectCRDsOfThisTree(ctx context.Context) {
	GinkgoHelper()
	files, err := filepath.Glob(filepath.Join("..", "..", "config", "crd", "bases", "*.yaml"))
	Expect(err).NotTo(HaveOccurred())
	Expect(files).To(HaveLen(len(crds(ctx))))
	for _, file := range files {
		raw, err := os.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())
		want, got := &unstructured.Unstructured{}, &unstructured.Unstructured{}
		Expect(yaml.Unmarshal(raw, &want.Object)).To(Succeed())
		got.SetGroupVersionKind(want.GroupVersionKind())
		Expect(cluster.Client.Get(ctx, client.ObjectKeyFromObject(want), got)).To(Succeed())
		Expect(cmp.Diff(versionsOf(want), versionsOf(got))).To(BeEmpty(), "%s (-this tree +cluster)", want.GetName())
	}
}

// versionsOf a CRD, numbers as texts: YAML and the API server's JSON are read
// into different kinds.
func versionsOf(crd *unstructured.Unstructured) string {
	GinkgoHelper()
	versions, found, err := unstructured.NestedFieldNoCopy(crd.Object, "spec", "versions")
	Expect(err).NotTo(HaveOccurred())
	Expect(found).To(BeTrue())
	raw, err := yaml.Marshal(versions)
	Expect(err).NotTo(HaveOccurred())
	return string(raw)
}

// fleetName of the server of a number.
func fleetName(i int) string { return fmt.Sprintf("server-%02d", i) }

// fleetOf are the servers of the fleet of ns.
func fleetOf(ctx context.Context, ns *harness.Namespace) []v1alpha1.MCPServer {
	GinkgoHelper()
	var servers v1alpha1.MCPServerList
	Expect(ns.Client.List(ctx, &servers, client.InNamespace(ns.Name))).To(Succeed())
	var fleet []v1alpha1.MCPServer
	for _, s := range servers.Items {
		if strings.HasPrefix(s.Name, "server-") {
			fleet = append(fleet, s)
		}
	}
	return fleet
}
