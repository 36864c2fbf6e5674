// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
)

var registrationConditionOrder = []string{mcpv1.ConditionAccepted, mcpv1.ConditionResolvedRefs, mcpv1.ConditionServed, mcpv1.ConditionStalled}

// onServer is one server that a registration names, and what is known of it
// there; verdict is nil while that is not known for its generation.
type onServer struct {
	name    string
	exists  bool
	verdict *registrationVerdict
}

// registrationStatus computes what the status of all kinds shares. complete is
// false while some server that exists has not spoken about this generation.
func registrationStatus(obj mcpv1.Registration, servers []onServer, now metav1.Time) (status mcpv1.RegistrationStatus, complete bool) {
	status = *obj.GetRegistrationStatus().DeepCopy()
	generation := obj.GetGeneration()
	status.ObservedGeneration = generation
	slices.SortFunc(servers, func(a, b onServer) int { return cmp.Compare(a.name, b.name) })

	present := map[string]mcpv1.RegistrationServerStatus{}
	for _, s := range status.Servers {
		present[s.Name] = s
	}
	status.Servers = nil
	var all []registrationVerdict
	accepted := 0
	for _, server := range servers {
		v := server.verdict
		switch {
		case !server.exists:
			v = missingServer(server.name)
		case v == nil:
			return status, false
		}
		entry := serverStatusOf(generation, present[server.name], server.name, *v, now)
		all = append(all, withServed(*v, entry))
		if v.accepted.status == metav1.ConditionTrue {
			accepted++
		}
		status.Servers = append(status.Servers, entry)
	}
	status.ServersOmitted = nil
	if n := len(status.Servers) - mcpv1.MaxStatusServers; n > 0 {
		status.Servers = status.Servers[:mcpv1.MaxStatusServers]
		status.ServersOmitted = ptr.To(int32(n)) //nolint:gosec // Servers of a namespace fit.
	}
	status.ServerCount = ptr.To(int32(accepted))
	summarise(generation, &status, servers, all, now)
	return status, true
}

func missingServer(name string) *registrationVerdict {
	message := fmt.Sprintf("MCPServer %s does not exist. Create it, or correct spec.serverRefs.", name)
	served := no(mcpv1.ReasonServerNotFound, message)
	return &registrationVerdict{
		accepted: no(mcpv1.ReasonServerNotFound, message),
		refs:     unknown(mcpv1.ReasonPending, "The server does not exist."),
		served:   &served,
	}
}

// serverStatusOf gives the entry of one server. While it is not known whether
// it is served, what was said of this generation holds.
func serverStatusOf(generation int64, present mcpv1.RegistrationServerStatus, name string, v registrationVerdict, now metav1.Time) mcpv1.RegistrationServerStatus {
	entry := mcpv1.RegistrationServerStatus{Name: name, Conditions: slices.Clone(present.Conditions)}
	setCondition(&entry.Conditions, mcpv1.ConditionAccepted, v.accepted, generation, now)
	setCondition(&entry.Conditions, mcpv1.ConditionResolvedRefs, v.refs, generation, now)
	served := unknown(mcpv1.ReasonPending, "No replica that takes traffic has been asked yet.")
	if v.served != nil {
		served = *v.served
	} else if c := meta.FindStatusCondition(present.Conditions, mcpv1.ConditionServed); c != nil && c.ObservedGeneration == generation && stillSo(c.Reason) {
		served = verdict{c.Status, c.Reason, c.Message}
	}
	setCondition(&entry.Conditions, mcpv1.ConditionServed, served, generation, now)
	sortConditions(entry.Conditions, registrationConditionOrder)
	return entry
}

// stillSo: what Served said for this reason may hold while the server, which
// exists and has accepted the registration, has not spoken about it.
func stillSo(reason string) bool {
	switch reason {
	case mcpv1.ReasonNotAccepted, mcpv1.ReasonServerNotFound:
		return false
	}
	return !nothingServed(verdict{reason: reason})
}

// withServed fills in what entry holds.
func withServed(v registrationVerdict, entry mcpv1.RegistrationServerStatus) registrationVerdict {
	served := conditionVerdict(entry.Conditions, mcpv1.ConditionServed)
	v.served = &served
	return v
}

// summarise sets the conditions of the registration itself.
func summarise(generation int64, status *mcpv1.RegistrationStatus, servers []onServer, all []registrationVerdict, now metav1.Time) {
	set := func(t string, v verdict) { setCondition(&status.Conditions, t, v, generation, now) }
	if len(all) == 0 {
		v := no(mcpv1.ReasonNoServers, "No MCPServer of this namespace matches spec.serverSelector.")
		set(mcpv1.ConditionAccepted, v)
		set(mcpv1.ConditionResolvedRefs, unknown(mcpv1.ReasonPending, v.message))
		set(mcpv1.ConditionServed, v)
		meta.RemoveStatusCondition(&status.Conditions, mcpv1.ConditionStalled)
		sortConditions(status.Conditions, registrationConditionOrder)
		return
	}
	acceptedOf := func(v registrationVerdict) verdict { return v.accepted }
	accepted := worst(servers, all, acceptedOf)
	set(mcpv1.ConditionAccepted, accepted)
	set(mcpv1.ConditionResolvedRefs, worst(servers, all, func(v registrationVerdict) verdict { return v.refs }))
	servedOf := func(v registrationVerdict) verdict { return *v.served }
	served := worst(servers, all, servedOf)
	if served.status == metav1.ConditionFalse && slices.ContainsFunc(all, func(v registrationVerdict) bool { return v.served.status == metav1.ConditionTrue }) {
		served.reason = mcpv1.ReasonPartlyServed
	}
	set(mcpv1.ConditionServed, served)
	if accepted.status == metav1.ConditionFalse && wrongByItself(accepted.reason) {
		set(mcpv1.ConditionStalled, *accepted.asTrue())
	} else {
		meta.RemoveStatusCondition(&status.Conditions, mcpv1.ConditionStalled)
	}
	sortConditions(status.Conditions, registrationConditionOrder)
}

// wrongByItself: only a change of the object can help. One before its server is
// merely early, and one that is filtered out or switched off is as wanted.
func wrongByItself(reason string) bool {
	switch reason {
	case mcpv1.ReasonServerNotFound, mcpv1.ReasonFiltered, mcpv1.ReasonSuspended:
		return false
	}
	return true
}

// worst gives the verdict that a summary shows: the first that is False, else
// the first Unknown, else the first. With several servers the message names
// the one it is of.
func worst(servers []onServer, all []registrationVerdict, of func(registrationVerdict) verdict) verdict {
	at := 0
	for i := range all {
		if rank(of(all[i]).status) < rank(of(all[at]).status) {
			at = i
		}
	}
	v := of(all[at])
	if len(all) > 1 && v.status != metav1.ConditionTrue {
		v.message = servers[at].name + ": " + v.message
	}
	return v
}

func rank(s metav1.ConditionStatus) int {
	switch s {
	case metav1.ConditionFalse:
		return 0
	case metav1.ConditionUnknown:
		return 1
	default:
		return 2
	}
}
