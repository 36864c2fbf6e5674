// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/espalier-dev/espalier/internal/catalog"
)

// registrationVerdict is how one registration fares with one MCPServer.
type registrationVerdict struct {
	// generation of the object that it is about.
	generation int64
	accepted   verdict
	refs       verdict
	// served, or nil while it is not known: then what its status says
	// holds.
	served *verdict
}

func (v registrationVerdict) equal(o registrationVerdict) bool {
	if (v.served == nil) != (o.served == nil) || (v.served != nil && *v.served != *o.served) {
		return false
	}
	return v.generation == o.generation && v.accepted == o.accepted && v.refs == o.refs
}

// verdicts carries what passes over MCPServers found out about registrations
// to the controllers that write their status, and wakes these for changes
// only: a server's catalog is computed once, not once per registration.
type verdicts struct {
	wake map[catalog.Kind]chan event.TypedGenericEvent[types.NamespacedName]

	mu sync.Mutex
	// by namespace, server and registration.
	namespaces map[string]map[string]map[catalog.ID]registrationVerdict
}

func newVerdicts() *verdicts {
	v := &verdicts{
		wake:       map[catalog.Kind]chan event.TypedGenericEvent[types.NamespacedName]{},
		namespaces: map[string]map[string]map[catalog.ID]registrationVerdict{},
	}
	for _, k := range registrationKinds {
		v.wake[k.kind] = make(chan event.TypedGenericEvent[types.NamespacedName], 4096)
	}
	return v
}

// publish replaces what is known of server and wakes the registrations for
// which it changed. A nil map withdraws the server.
func (v *verdicts) publish(server types.NamespacedName, registrations map[catalog.ID]registrationVerdict) {
	v.mu.Lock()
	servers := v.namespaces[server.Namespace]
	before := servers[server.Name]
	switch {
	case registrations == nil:
		delete(servers, server.Name)
	case servers == nil:
		v.namespaces[server.Namespace] = map[string]map[catalog.ID]registrationVerdict{server.Name: registrations}
	default:
		servers[server.Name] = registrations
	}
	v.mu.Unlock()
	for id, now := range registrations {
		if old, ok := before[id]; !ok || !old.equal(now) {
			v.tell(server.Namespace, id)
		}
	}
	for id := range before {
		if _, ok := registrations[id]; !ok {
			v.tell(server.Namespace, id)
		}
	}
}

func (v *verdicts) tell(namespace string, id catalog.ID) {
	v.wake[id.Kind] <- event.TypedGenericEvent[types.NamespacedName]{Object: types.NamespacedName{Namespace: namespace, Name: id.Name}}
}

// of gives the verdicts on one registration by server name.
func (v *verdicts) of(namespace string, id catalog.ID) map[string]registrationVerdict {
	v.mu.Lock()
	defer v.mu.Unlock()
	out := map[string]registrationVerdict{}
	for server, registrations := range v.namespaces[namespace] {
		if verdict, ok := registrations[id]; ok {
			out[server] = verdict
		}
	}
	return out
}
