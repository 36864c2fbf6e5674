// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Namespace is a namespace of one spec. It enforces Pod Security restricted,
// and is deleted when the spec ends.
type Namespace struct {
	*Cluster
	Name string
}

// Namespace makes one, named after hint.
func (c *Cluster) Namespace(ctx context.Context, hint string) *Namespace {
	GinkgoHelper()
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "e2e-" + hint + "-",
		Labels: map[string]string{
			"pod-security.kubernetes.io/enforce": "restricted",
			"pod-security.kubernetes.io/warn":    "restricted",
		},
	}}
	Expect(c.Client.Create(ctx, object)).To(Succeed())
	ns := &Namespace{Cluster: c, Name: object.Name}
	open.add(ns)
	DeferCleanup(ns.remove)
	return ns
}

// Adopt makes a Namespace of one that the spec created otherwise.
func (c *Cluster) Adopt(name string) *Namespace {
	ns := &Namespace{Cluster: c, Name: name}
	open.add(ns)
	DeferCleanup(ns.remove)
	return ns
}

func (n *Namespace) remove(ctx context.Context) {
	open.drop(n)
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: n.Name}}
	// Pods of a failed spec may be frozen: their grace periods are not waited for.
	zero := int64(0)
	Expect(client.IgnoreNotFound(n.Client.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(n.Name),
		&client.DeleteAllOfOptions{DeleteOptions: client.DeleteOptions{GracePeriodSeconds: &zero}}))).To(Succeed())
	Expect(client.IgnoreNotFound(n.Client.Delete(ctx, object))).To(Succeed())
	Eventually(ctx, func() bool {
		// The pods that a Deployment made in the meantime have grace periods too.
		_ = n.Client.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(n.Name),
			&client.DeleteAllOfOptions{DeleteOptions: client.DeleteOptions{GracePeriodSeconds: &zero}})
		return apierrors.IsNotFound(n.Client.Get(ctx, client.ObjectKeyFromObject(object), object))
	}).WithTimeout(DeleteTimeout).WithPolling(4*Poll).Should(BeTrue(), "namespace %s is still there", n.Name)
}

// Get reads obj by name.
func (n *Namespace) Get(ctx context.Context, name string, obj client.Object) {
	GinkgoHelper()
	Expect(n.Client.Get(ctx, client.ObjectKey{Namespace: n.Name, Name: name}, obj)).To(Succeed())
}

// Create creates objects in the namespace.
func (n *Namespace) Create(ctx context.Context, objects ...client.Object) {
	GinkgoHelper()
	for _, obj := range objects {
		obj.SetNamespace(n.Name)
		Expect(n.Client.Create(ctx, obj)).To(Succeed(), "create %T %s", obj, obj.GetName())
	}
}

// Delete deletes objects of the namespace; their dependents go in the background.
func (n *Namespace) Delete(ctx context.Context, objects ...client.Object) {
	GinkgoHelper()
	for _, obj := range objects {
		obj.SetNamespace(n.Name)
		Expect(n.Client.Delete(ctx, obj, client.PropagationPolicy(metav1.DeletePropagationBackground))).
			To(Succeed(), "delete %T %s", obj, obj.GetName())
	}
}

// openNamespaces are those of the running spec, for diagnostics.
type openNamespaces struct {
	sync.Mutex
	list []*Namespace
}

var open openNamespaces

func (o *openNamespaces) add(n *Namespace) {
	o.Lock()
	defer o.Unlock()
	o.list = append(o.list, n)
}

func (o *openNamespaces) drop(n *Namespace) {
	o.Lock()
	defer o.Unlock()
	for i, other := range o.list {
		if other == n {
			o.list = append(o.list[:i], o.list[i+1:]...)
			return
		}
	}
}

func (o *openNamespaces) all() []*Namespace {
	o.Lock()
	defer o.Unlock()
	return append([]*Namespace(nil), o.list...)
}
