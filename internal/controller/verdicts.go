// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// toolVerdict is how one MCPTool fares with one MCPServer.
type toolVerdict struct {
	// generation of the MCPTool that it is about.
	generation int64
	accepted   verdict
	refs       verdict
	// served, or nil while it is not known: then what the tool's status says
	// holds.
	served *verdict
}

func (v toolVerdict) equal(o toolVerdict) bool {
	if (v.served == nil) != (o.served == nil) || (v.served != nil && *v.served != *o.served) {
		return false
	}
	return v.generation == o.generation && v.accepted == o.accepted && v.refs == o.refs
}

// verdicts carries what passes over MCPServers found out about MCPTools to
// the controller that writes their status, and wakes it for changes only: a
// server's catalog is computed once, not once per tool.
type verdicts struct {
	wake chan event.TypedGenericEvent[types.NamespacedName]

	mu sync.Mutex
	// by namespace, server and tool.
	namespaces map[string]map[string]map[string]toolVerdict
}

func newVerdicts() *verdicts {
	return &verdicts{
		wake:       make(chan event.TypedGenericEvent[types.NamespacedName], 4096),
		namespaces: map[string]map[string]map[string]toolVerdict{},
	}
}

// publish replaces what is known of server and wakes the tools for which it
// changed. A nil map withdraws the server.
func (v *verdicts) publish(server types.NamespacedName, tools map[string]toolVerdict) {
	v.mu.Lock()
	servers := v.namespaces[server.Namespace]
	before := servers[server.Name]
	switch {
	case tools == nil:
		delete(servers, server.Name)
	case servers == nil:
		v.namespaces[server.Namespace] = map[string]map[string]toolVerdict{server.Name: tools}
	default:
		servers[server.Name] = tools
	}
	v.mu.Unlock()
	for name, now := range tools {
		if old, ok := before[name]; !ok || !old.equal(now) {
			v.tell(server.Namespace, name)
		}
	}
	for name := range before {
		if _, ok := tools[name]; !ok {
			v.tell(server.Namespace, name)
		}
	}
}

func (v *verdicts) tell(namespace, name string) {
	v.wake <- event.TypedGenericEvent[types.NamespacedName]{Object: types.NamespacedName{Namespace: namespace, Name: name}}
}

// of gives the verdicts on one tool by server name.
func (v *verdicts) of(namespace, tool string) map[string]toolVerdict {
	v.mu.Lock()
	defer v.mu.Unlock()
	out := map[string]toolVerdict{}
	for server, tools := range v.namespaces[namespace] {
		if verdict, ok := tools[tool]; ok {
			out[server] = verdict
		}
	}
	return out
}
