// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/catalog"
	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/podstate"
	"github.com/espalier-dev/espalier/internal/resources"
)

// registrationVerdicts says how each registration that names the server fares
// with it.
func registrationVerdicts(s *serverScope, synced verdict) map[catalog.ID]registrationVerdict {
	out := make(map[catalog.ID]registrationVerdict, len(s.registrations))
	index := newServedIndex(s)
	for _, r := range s.registrations {
		id := catalog.IDOf(r)
		v := registrationVerdict{generation: r.GetGeneration()}
		if s.catalog == nil {
			v.accepted = fromCatalog(catalog.NotFronted(s.server))
			v.refs = unknown(mcpv1.ReasonPending, "It was not accepted.")
			v.served = &verdict{metav1.ConditionFalse, mcpv1.ReasonNotAccepted, v.accepted.message}
		} else {
			v.accepted = fromCatalog(s.catalog.Verdicts[id])
			v.refs = s.registrationRefs(id)
			v.served = s.registrationServed(id, index, synced)
		}
		out[id] = v
	}
	return out
}

func fromCatalog(v catalog.Verdict) verdict {
	if v.Accepted {
		return yes(v.Reason, v.Message)
	}
	return no(v.Reason, v.Message)
}

func (s *serverScope) registrationRefs(id catalog.ID) verdict {
	compiled, ok := s.catalog.Served[id]
	if !ok {
		if c := s.compiled[id]; c != nil && len(c.Refs) == 0 {
			return yes(mcpv1.ReasonResolvedRefs, "No Secret or ConfigMap is named.")
		}
		return unknown(mcpv1.ReasonPending, "It was not accepted.")
	}
	if v := catalog.UpstreamOf(compiled, s.server.Name, s.upstreams); !v.Accepted {
		return no(v.Reason, v.Message)
	}
	if len(compiled.Refs) == 0 {
		return yes(mcpv1.ReasonResolvedRefs, "No Secret or ConfigMap is named.")
	}
	for _, ref := range compiled.Refs {
		if reason, message := s.refProblem(ref); reason != "" {
			return no(reason, message)
		}
	}
	return yes(mcpv1.ReasonResolvedRefs, "All Secrets and ConfigMaps that are named exist.")
}

// servedIndex holds what each replica that takes traffic lists, so that a
// thousand tools are not searched for in a thousand lists.
type servedIndex struct {
	pods []podList
}

type podList struct {
	pod    *corev1.Pod
	digest string
	known  bool
	mounts resources.Mounts
	// lists are the digests by identity; nil when not known.
	lists map[catalog.List]map[string]string
}

func newServedIndex(s *serverScope) *servedIndex {
	index := &servedIndex{}
	if s.catalog == nil {
		return index
	}
	for _, pod := range s.pods {
		if !podstate.TakesTraffic(pod) {
			continue
		}
		entry := podList{pod: pod, mounts: resources.MountsOf(&pod.Spec)}
		entry.digest, entry.known = s.reportedDigest(pod)
		if obs := s.observed(pod); obs != nil && obs.Report != nil && obs.Report.Outcome == mcpprobe.Proved {
			entry.lists = listedBy(obs.Report)
		}
		index.pods = append(index.pods, entry)
	}
	return index
}

// registrationServed says whether each replica that takes traffic answers with
// this version of it; nil while that is not known.
func (s *serverScope) registrationServed(id catalog.ID, index *servedIndex, synced verdict) *verdict {
	compiled, ok := s.catalog.Served[id]
	switch {
	case !ok:
		v := no(mcpv1.ReasonNotAccepted, fmt.Sprintf("MCPServer %s did not accept it; see Accepted.", s.server.Name))
		return &v
	case resources.Replicas(s.server) == 0:
		v := zeroVerdict(s, unknown)
		return &v
	case len(index.pods) == 0 || s.set == nil:
		return nil
	}
	uncertain := false
	for _, pod := range index.pods {
		switch s.podServes(pod, compiled) {
		case servesNot:
			v := no(mcpv1.ReasonCatalogPending, "Not every replica answers with this version yet.")
			if synced.status == metav1.ConditionFalse {
				v = no(synced.reason, synced.message)
			}
			return &v
		case servesUnknown:
			uncertain = true
		}
	}
	if uncertain {
		return nil
	}
	v := yes(mcpv1.ReasonServed, "Each replica that takes traffic answers with this version.")
	return &v
}

type serves int

const (
	servesUnknown serves = iota
	servesNot
	servesIt
)

func (s *serverScope) podServes(pod podList, entry *catalog.Compiled) serves {
	if !pod.mounts.Covers(entry.Refs) {
		return servesNot
	}
	if !pod.known {
		return servesUnknown
	}
	if pod.digest != s.set.Digest {
		version, known := s.memory.version(pod.digest, entry.ID)
		switch {
		case !known:
			// The catalog changed while nobody watched; whether this entry did
			// is not known.
			return servesUnknown
		case version != entry.EntryDigest:
			return servesNot
		}
	}
	listed := pod.lists[entry.List]
	if listed == nil {
		return servesUnknown
	}
	if listed[wireName(entry)] != entry.Wire.Digest {
		return servesNot
	}
	return servesIt
}

// wireName is the identity of entry as the probe tells it.
func wireName(entry *catalog.Compiled) string { return mcpprobe.EscapeName(entry.Name()) }

// listedBy gives the digests of each list that was read, by identity.
func listedBy(report *mcpprobe.Report) map[catalog.List]map[string]string {
	tools := make(map[string]string, len(report.Tools.Tools))
	for _, t := range report.Tools.Tools {
		tools[t.Name] = t.Digest
	}
	out := map[catalog.List]map[string]string{catalog.Tools: tools}
	for list, read := range map[catalog.List]mcpprobe.EntryList{
		catalog.Resources: report.Resources, catalog.Templates: report.Templates, catalog.Prompts: report.Prompts,
	} {
		if !read.Known {
			continue
		}
		entries := make(map[string]string, len(read.Entries))
		for _, e := range read.Entries {
			entries[e.Name] = e.Digest
		}
		out[list] = entries
	}
	return out
}
