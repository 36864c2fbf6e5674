// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/api/v1alpha1"
)

// Host is the name by which clients in the cluster call the server.
func (n *Namespace) Host(server string) string {
	return fmt.Sprintf("%s-mcp.%s.svc:8080", server, n.Name)
}

// Peers are the MCP endpoints of a Tools server's pods.
func (n *Namespace) Peers(ctx context.Context, server string) []*Peer {
	GinkgoHelper()
	var peers []*Peer
	for _, pod := range n.Pods(ctx, server) {
		peers = append(peers, PodPeer(&pod, n.Host(server)))
	}
	return peers
}

// ServicePeer is the MCP endpoint of the server's Service. It waits until the
// node routes the Service.
func (n *Namespace) ServicePeer(ctx context.Context, server string) *Peer {
	GinkgoHelper()
	address := n.AwaitService(ctx, server+"-mcp")
	return &Peer{Name: "the Service", URL: "http://" + address + "/mcp", Host: n.Host(server)}
}

// AwaitService waits until the node routes the first port of the Service, which
// happens some moments after pods are Ready, and returns its address.
func (n *Namespace) AwaitService(ctx context.Context, name string) string {
	GinkgoHelper()
	var service corev1.Service
	n.Get(ctx, name, &service)
	address := net.JoinHostPort(service.Spec.ClusterIP, strconv.Itoa(int(service.Spec.Ports[0].Port)))
	Eventually(ctx, func() error {
		conn, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			err = conn.Close()
		}
		return err
	}).WithTimeout(CallTimeout).WithPolling(Poll).Should(Succeed(), "Service %s", name)
	return address
}

// Update changes the object of name, again if somebody else did meanwhile.
func (n *Namespace) Update(ctx context.Context, name string, obj client.Object, change func()) {
	GinkgoHelper()
	Expect(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := n.Client.Get(ctx, client.ObjectKey{Namespace: n.Name, Name: name}, obj); err != nil {
			return err
		}
		change()
		return n.Client.Update(ctx, obj)
	})).To(Succeed(), "update of %s", name)
}

// children are the kinds of what an MCPServer owns.
func children() []client.ObjectList {
	return []client.ObjectList{
		&appsv1.DeploymentList{}, &appsv1.ReplicaSetList{}, &corev1.PodList{}, &corev1.ServiceList{},
		&corev1.ConfigMapList{}, &policyv1.PodDisruptionBudgetList{}, &networkingv1.NetworkPolicyList{}, &corev1.SecretList{},
	}
}

// Owned lists what the cluster holds of the server's making, as "Kind name".
func (n *Namespace) Owned(ctx context.Context, server string) []string {
	GinkgoHelper()
	var out []string
	for _, list := range children() {
		Expect(n.Client.List(ctx, list, client.InNamespace(n.Name), client.MatchingLabels{v1alpha1.LabelServer: server})).To(Succeed())
		items, err := meta.ExtractList(list)
		Expect(err).NotTo(HaveOccurred())
		for _, item := range items {
			out = append(out, fmt.Sprintf("%T %s", item, item.(client.Object).GetName()))
		}
	}
	slices.Sort(out)
	return out
}

// Gone waits until the object does not exist any more.
func (n *Namespace) Gone(ctx context.Context, obj client.Object) {
	GinkgoHelper()
	Eventually(ctx, func() bool {
		return apierrors.IsNotFound(n.Client.Get(ctx, client.ObjectKey{Namespace: n.Name, Name: obj.GetName()}, obj))
	}).WithTimeout(DeleteTimeout).WithPolling(Poll).Should(BeTrue(), "%T %s is still there", obj, obj.GetName())
}

// Meta is an ObjectMeta of name.
func Meta(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
