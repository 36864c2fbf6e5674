// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"encoding/json"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// RunOperatorWith restarts the operator with further flags, and gives what
// takes them back. That is done when the spec ends, at the latest.
func (c *Cluster) RunOperatorWith(ctx context.Context, flags ...string) (restore func(context.Context)) {
	GinkgoHelper()
	var d appsv1.Deployment
	Expect(c.Client.Get(ctx, client.ObjectKey{Namespace: OperatorNamespace, Name: OperatorDeployment}, &d)).To(Succeed())
	before := d.Spec.Template.Spec.Containers[0].Args
	set := func(ctx context.Context, args []string) {
		patch, err := json.Marshal([]map[string]any{{"op": "replace", "path": "/spec/template/spec/containers/0/args", "value": args}})
		Expect(err).NotTo(HaveOccurred())
		Expect(c.Client.Patch(ctx, &d, client.RawPatch(types.JSONPatchType, patch))).To(Succeed())
		c.AwaitOperator(ctx)
	}
	restored := false
	restore = func(ctx context.Context) {
		if !restored {
			restored = true
			set(ctx, before)
		}
	}
	DeferCleanup(restore)
	set(ctx, append(slices.Clone(before), flags...))
	return restore
}

// Leader is who holds the operator's Lease.
func (c *Cluster) Leader(ctx context.Context) string {
	GinkgoHelper()
	var leases coordinationv1.LeaseList
	Expect(c.Client.List(ctx, &leases, client.InNamespace(OperatorNamespace))).To(Succeed())
	for _, lease := range leases.Items {
		if holder := lease.Spec.HolderIdentity; lease.Name == OperatorDeployment && holder != nil {
			return *holder
		}
	}
	return ""
}
