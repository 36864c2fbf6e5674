// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"strings"
	"testing"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/podreport"
)

const oneDocument = `upstreams: [{name: billing, prefix: b_, openAPI: {document: {url: "https://billing.test/openapi.json"}}}]`

// TestSkippedOperations: what a document has and cannot be served is named.
func TestSkippedOperations(t *testing.T) {
	w := newWorld(t, oneDocument)
	w.fronting([]string{"b_x"}, []podreport.Upstream{{
		Name: "billing", State: podreport.UpstreamReady, Tools: 1, Skipped: 20, SkippedNames: []podreport.Skipped{{Name: "b_upload", Reason: "UnsupportedMediaType"}},
	}})
	status := w.pass()
	got := status.Upstreams[0]
	if got.Skipped == nil || *got.Skipped != 20 || !slices.Equal(got.SkippedOperations, []mcpv1.SkippedOperation{{Name: "b_upload", Reason: "UnsupportedMediaType"}}) {
		t.Errorf("observed %+v", got)
	}
	v, _ := held(status.Conditions, mcpv1.ConditionUpstreamsReady)
	if !strings.Contains(v.message, "20 operations that cannot be tools, b_upload (UnsupportedMediaType) first") {
		t.Errorf("said %q", v.message)
	}
}

func TestDocumentInTrouble(t *testing.T) {
	for reason, want := range map[string]string{
		"InvalidDocument": "False InvalidDocument: tools of the one before stay", "NoServer": "False UpstreamsUnavailable: Set openAPI.url",
		"UntrustedServer": "False UpstreamsUnavailable: Set openAPI.url", "Timeout": "False UpstreamsUnavailable: cannot be had; tools of the one before stay",
	} {
		w := newWorld(t, oneDocument)
		w.fronting([]string{"b_x"}, []podreport.Upstream{{Name: "billing", State: podreport.UpstreamUnavailable, Reason: reason, Tools: 1}})
		status := w.pass()
		state, words, _ := strings.Cut(want, ": ")
		v, _ := held(status.Conditions, mcpv1.ConditionUpstreamsReady)
		if got := condition(status.Conditions, mcpv1.ConditionUpstreamsReady); got != state || !strings.Contains(v.message, words) {
			t.Errorf("%s gives %s: %s", reason, got, v.message)
		}
		if got := condition(status.Conditions, mcpv1.ConditionReady); got != "True Proved" {
			t.Errorf("%s: Ready is %s", reason, got)
		}
	}
}
