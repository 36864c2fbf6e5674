// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fleet is "kubectl mcp get": all servers at a glance, the worst first,
// and whether what is told of them is fresh.
package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/plugin/operator"
	"github.com/espalier-dev/espalier/internal/resources"
)

// Health is Ready and what stands beside it in one word.
type Health string

// Healths, the worst first.
const (
	// NotReady: Ready is False.
	NotReady Health = "NotReady"
	// Unknown: Ready is Unknown, or nobody keeps it true.
	Unknown Health = "Unknown"
	// Degraded: Ready is True, and another condition is False.
	Degraded Health = "Degraded"
	// Starting: Ready is False, and there still is time to start.
	Starting Health = "Starting"
	// Updating: Ready is True, and a change is under way.
	Updating Health = "Updating"
	// Idle: no pods are wanted.
	Idle Health = "Idle"
	// Ready: a client can use the server now.
	Ready Health = "Ready"
)

// healths in the order of the table.
var healths = []Health{NotReady, Unknown, Degraded, Starting, Updating, Idle, Ready}

// inWords are those of the summary.
var inWords = map[Health]string{
	NotReady: "not ready", Unknown: "unknown", Degraded: "degraded", Starting: "starting",
	Updating: "updating", Idle: "idle", Ready: "ready",
}

// Row is one server.
type Row struct {
	Server *mcpv1.MCPServer
	Health Health
	// Reason is that of the condition that Health comes from.
	Reason string
	// Replicas proved, and wanted; "-" for a server without pods.
	Replicas string
	// Tools, resources and prompts proved on the wire; "-" is unknown.
	Tools, Resources, Prompts string
	Protocol                  string
	// Since is for how long Ready is as it is.
	Since string
	// Proof is "fresh", or how old it is.
	Proof string
}

// Judge makes the rows of servers, the worst first.
func Judge(servers []mcpv1.MCPServer, state operator.State) []Row {
	rows := make([]Row, 0, len(servers))
	for i := range servers {
		rows = append(rows, judge(&servers[i], state.Of(servers[i].Namespace), state.Now))
	}
	slices.SortStableFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(slices.Index(healths, a.Health), slices.Index(healths, b.Health)),
			cmp.Compare(a.Server.Namespace, b.Server.Namespace), cmp.Compare(a.Server.Name, b.Server.Name))
	})
	return rows
}

func judge(server *mcpv1.MCPServer, life operator.Life, now time.Time) Row {
	status := &server.Status
	row := Row{
		Server: server, Replicas: replicas(server), Protocol: "-", Since: "-",
		Tools: count(status.ToolCount), Resources: count(status.ResourceCount), Prompts: count(status.PromptCount),
	}
	if status.Server != nil {
		row.Protocol = cmp.Or(status.Server.ProtocolVersion, "-")
	}
	if ready := condition(server, mcpv1.ConditionReady); ready != nil {
		row.Since = duration.HumanDuration(max(now.Sub(ready.LastTransitionTime.Time), 0))
	}
	row.Health, row.Reason = health(server)
	row.Proof = proof(server, life)
	if life.Down() {
		row.Health, row.Reason, row.Since = Unknown, life.Since(), "-"
		row.Tools, row.Resources, row.Prompts, row.Protocol = "-", "-", "-", "-"
		if resources.HasPods(server) {
			row.Replicas = fmt.Sprintf("-/%d", resources.Replicas(server))
		}
	}
	return row
}

// underWay are reasons for which a condition is False while a change is made.
var underWay = []string{
	mcpv1.ReasonRollingOut, mcpv1.ReasonStarting, mcpv1.ReasonCatalogPending, mcpv1.ReasonRolloutForCredentials, mcpv1.ReasonPending,
}

// health of a server whose status is kept true.
func health(server *mcpv1.MCPServer) (Health, string) {
	ready := condition(server, mcpv1.ConditionReady)
	reconciling := condition(server, mcpv1.ConditionReconciling)
	switch {
	case ready == nil:
		return Unknown, mcpv1.ReasonPending
	case ready.Status == metav1.ConditionUnknown:
		return Unknown, ready.Reason
	case ready.Status == metav1.ConditionFalse:
		if reconciling != nil && slices.Contains(underWay, reconciling.Reason) {
			return Starting, ready.Reason
		}
		return NotReady, ready.Reason
	case ready.Reason == mcpv1.ReasonScaledToZero, ready.Reason == mcpv1.ReasonSuspended:
		return Idle, ready.Reason
	}
	updating := ""
	for _, c := range server.Status.Conditions {
		if c.Status != metav1.ConditionFalse {
			continue
		}
		if !slices.Contains(underWay, c.Reason) {
			return Degraded, c.Reason
		}
		updating = cmp.Or(updating, c.Reason)
	}
	switch {
	case reconciling != nil:
		return Updating, reconciling.Reason
	case updating != "":
		return Updating, updating
	case server.Status.ObservedGeneration < server.Generation:
		return Updating, mcpv1.ReasonPending
	}
	return Ready, ready.Reason
}

// proof says how old what is told can be.
func proof(server *mcpv1.MCPServer, life operator.Life) string {
	ready := condition(server, mcpv1.ConditionReady)
	switch {
	case ready == nil, server.Status.LastProbe == nil:
		return "-"
	case !life.Known:
		return "?"
	case life.Down() && life.Renewed.IsZero():
		return "old"
	case life.Down():
		return life.Ago() + " old"
	case ready.Reason == mcpv1.ReasonStale:
		return "old"
	case ready.Reason == mcpv1.ReasonScaledToZero, ready.Reason == mcpv1.ReasonSuspended:
		return "-"
	}
	return "fresh"
}

func replicas(server *mcpv1.MCPServer) string {
	if !resources.HasPods(server) {
		return "-"
	}
	proved := "-"
	if n := server.Status.HealthyReplicas; n != nil {
		proved = strconv.Itoa(int(*n))
	}
	return fmt.Sprintf("%s/%d", proved, resources.Replicas(server))
}

func count(n *int32) string {
	if n == nil {
		return "-"
	}
	return strconv.Itoa(int(*n))
}

func condition(server *mcpv1.MCPServer, kind string) *metav1.Condition {
	return meta.FindStatusCondition(server.Status.Conditions, kind)
}
