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
	"github.com/espalier-dev/espalier/internal/resources"
)

// toolVerdicts says how each tool that names the server fares with it.
func toolVerdicts(s *serverScope, synced verdict) map[string]toolVerdict {
	out := make(map[string]toolVerdict, len(s.tools))
	index := newServedIndex(s)
	for _, tool := range s.tools {
		v := toolVerdict{generation: tool.Generation}
		if s.catalog == nil {
			v.accepted = fromCatalog(catalog.NotFronted(s.server))
			v.refs = unknown(mcpv1.ReasonPending, "The tool was not accepted.")
			v.served = &verdict{metav1.ConditionFalse, mcpv1.ReasonNotAccepted, v.accepted.message}
		} else {
			v.accepted = fromCatalog(s.catalog.Verdicts[tool.Name])
			v.refs = s.toolRefs(tool)
			v.served = s.toolServed(tool, index, synced)
		}
		out[tool.Name] = v
	}
	return out
}

func fromCatalog(v catalog.Verdict) verdict {
	if v.Accepted {
		return yes(v.Reason, v.Message)
	}
	return no(v.Reason, v.Message)
}

func (s *serverScope) toolRefs(tool *mcpv1.MCPTool) verdict {
	if tool.Spec.HTTP == nil {
		return yes(mcpv1.ReasonResolvedRefs, "The tool names no Secret or ConfigMap.")
	}
	compiled, ok := s.catalog.Served[tool.Name]
	if !ok {
		return unknown(mcpv1.ReasonPending, "The tool was not accepted.")
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
	tools  map[string]string
}

func newServedIndex(s *serverScope) *servedIndex {
	index := &servedIndex{}
	if s.catalog == nil {
		return index
	}
	for _, pod := range s.pods {
		if !takesTraffic(pod) {
			continue
		}
		entry := podList{pod: pod, mounts: resources.MountsOf(&pod.Spec)}
		entry.digest, entry.known = s.reportedDigest(pod)
		if obs := s.observed(pod); obs != nil && obs.Report != nil && obs.Report.Outcome == mcpprobe.Proved {
			entry.tools = make(map[string]string, len(obs.Report.Tools.Tools))
			for _, t := range obs.Report.Tools.Tools {
				entry.tools[t.Name] = t.Digest
			}
		}
		index.pods = append(index.pods, entry)
	}
	return index
}

// toolServed says whether each replica that takes traffic answers with this
// version of the tool; nil while that is not known.
func (s *serverScope) toolServed(tool *mcpv1.MCPTool, index *servedIndex, synced verdict) *verdict {
	compiled, ok := s.catalog.Served[tool.Name]
	switch {
	case !ok:
		v := no(mcpv1.ReasonNotAccepted, fmt.Sprintf("MCPServer %s did not accept the tool; see Accepted.", s.server.Name))
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

func (s *serverScope) podServes(pod podList, tool *catalog.Compiled) serves {
	if !pod.mounts.Covers(tool.Refs) {
		return servesNot
	}
	if !pod.known {
		return servesUnknown
	}
	if pod.digest != s.set.Digest {
		version, known := s.memory.version(pod.digest, tool.Object)
		switch {
		case !known:
			// The catalog changed while nobody watched; whether this tool did
			// is not known.
			return servesUnknown
		case version != tool.EntryDigest:
			return servesNot
		}
	}
	if pod.tools == nil {
		return servesUnknown
	}
	if pod.tools[tool.Name()] != tool.Wire.Digest {
		return servesNot
	}
	return servesIt
}
