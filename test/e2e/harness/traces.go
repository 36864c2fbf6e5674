// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"encoding/base64"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// traces are all places where a credential must not be: what is printed of the
// namespace and of the operator, by the kubectl command that prints it. Secrets
// themselves are left out.
func (n *Namespace) traces(ctx context.Context) map[string]string {
	GinkgoHelper()
	out := map[string]string{}
	for _, args := range [][]string{
		{"get", "mcpservers,mcptools,mcpresources,mcpprompts", "--output=yaml", "--show-managed-fields"},
		{"get", "configmaps", "--output=yaml", "--show-managed-fields"},
		{"get", "deployments,replicasets,pods,services", "--output=yaml", "--show-managed-fields"},
		{"get", "events,events.events.k8s.io", "--output=yaml"},
		{"logs", "--selector=mcp.espalier.dev/server", "--all-containers", "--tail=-1", "--max-log-requests=20"},
		{"logs", "--namespace=" + OperatorNamespace, "--selector=control-plane=controller-manager", "--all-containers", "--tail=-1"},
		{"get", "--namespace=" + OperatorNamespace, "configmaps,events,pods,leases", "--output=yaml"},
	} {
		if args[1] != "--namespace="+OperatorNamespace {
			args = append(args, "--namespace="+n.Name)
		}
		text, err := n.kubectl(ctx, "", args...)
		Expect(err).NotTo(HaveOccurred(), "kubectl %s", strings.Join(args, " "))
		out["kubectl "+strings.Join(args, " ")] = text
	}
	return out
}

// ExpectNoTraceOf looks for each value, as it is and in base64, in status,
// events, ConfigMaps, pods and logs of the namespace's servers and of the operator.
func (n *Namespace) ExpectNoTraceOf(ctx context.Context, values ...string) {
	GinkgoHelper()
	traces := n.traces(ctx)
	for command, text := range traces {
		for _, value := range values {
			for _, form := range []string{value, base64.StdEncoding.EncodeToString([]byte(value)), base64.StdEncoding.EncodeToString([]byte("Bearer " + value))} {
				Expect(strings.Contains(text, form)).To(BeFalse(), "%s shows the credential %q", command, value)
			}
		}
	}
	// What finds nothing must be able to find: the name of the namespace is everywhere.
	for command, text := range traces {
		if !strings.Contains(command, OperatorNamespace) && strings.HasPrefix(command, "kubectl get") {
			Expect(text).To(ContainSubstring(n.Name), "%s shows nothing of the namespace", command)
		}
	}
}
