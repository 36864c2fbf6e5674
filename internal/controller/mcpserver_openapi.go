// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"strings"

	"k8s.io/utils/ptr"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/podreport"
)

// documentHint says what to do about the first OpenAPI document that is in
// trouble, by the reason that the pods give.
func (s *serverScope) documentHint(observed []mcpv1.ObservedUpstream) string {
	documents := map[string]bool{}
	for _, u := range s.server.Spec.Upstreams {
		documents[u.Name] = u.OpenAPI != nil
	}
	for _, u := range observed {
		if !documents[u.Name] || u.State != string(podreport.UpstreamUnavailable) {
			continue
		}
		stay := ""
		if u.Tools != nil && *u.Tools > 0 {
			stay = "; tools of the one before stay"
		}
		switch u.Reason {
		case mcpv1.ReasonInvalidDocument:
			return fmt.Sprintf(" The document of %s cannot be read as OpenAPI 3%s. Mend it.", u.Name, stay)
		case "NoServer":
			return fmt.Sprintf(" The document of %s does not say where its API is. Set openAPI.url.", u.Name)
		case "UntrustedServer":
			return fmt.Sprintf(" The document of %s names a server of another origin, which gets no headers or certificates. Set openAPI.url.", u.Name)
		}
		return fmt.Sprintf(" The document of %s cannot be had%s.", u.Name, stay)
	}
	return ""
}

// skipped counts and names the operations that are not served, for status.
func skipped(u *podreport.Upstream) (*int32, []mcpv1.SkippedOperation) {
	if u.Skipped == 0 {
		return nil, nil
	}
	var named []mcpv1.SkippedOperation
	for _, n := range u.SkippedNames {
		if n.Name != "" {
			named = append(named, mcpv1.SkippedOperation{Name: n.Name, Reason: n.Reason})
		}
	}
	return ptr.To(int32(u.Skipped)), named //nolint:gosec // The probe bounds it.
}

// skippedOperations tells of operations that are not served, by the document.
func skippedOperations(report *podreport.Report) string {
	var out strings.Builder
	for i := range report.Upstreams {
		u := &report.Upstreams[i]
		if u.Skipped > 0 && len(u.SkippedNames) > 0 {
			first := u.SkippedNames[0]
			fmt.Fprintf(&out, " The document of %s has %d operations that cannot be tools, %s (%s) first.", u.Name, u.Skipped, first.Name, first.Reason)
		}
	}
	return out.String()
}
