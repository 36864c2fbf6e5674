// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// TestFluxExample decodes the example strictly into Flux's own types: a field
// that Flux does not have, or not there, is an error.
func TestFluxExample(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(root, "config", "flux", "espalier.yaml"))
	must(t, err)
	sources, waiting := map[string]bool{}, map[string]bool{}
	for _, document := range bytes.Split(raw, []byte("\n---\n")) {
		var of metav1.TypeMeta
		must(t, yaml.Unmarshal(document, &of))
		switch of.APIVersion + " " + of.Kind {
		case sourcev1.GroupVersion.String() + " GitRepository":
			var repository sourcev1.GitRepository
			must(t, yaml.UnmarshalStrict(document, &repository))
			sources[repository.Name] = true
		case kustomizev1.GroupVersion.String() + " Kustomization":
			var k kustomizev1.Kustomization
			must(t, yaml.UnmarshalStrict(document, &k))
			if !k.Spec.Wait || !k.Spec.Prune || k.Spec.Timeout == nil {
				t.Errorf("%s does not wait, or prunes nothing, or waits for ever", k.Name)
			}
			if !sources[k.Spec.SourceRef.Name] {
				t.Errorf("%s is of an unknown source %s", k.Name, k.Spec.SourceRef.Name)
			}
			for _, d := range k.Spec.DependsOn {
				if !waiting[d.Name] {
					t.Errorf("%s depends on %s, which does not come before it", k.Name, d.Name)
				}
			}
			waiting[k.Name] = true
		default:
			t.Errorf("a document of kind %s %s", of.APIVersion, of.Kind)
		}
	}
	if len(waiting) != 2 {
		t.Errorf("%d Kustomizations", len(waiting))
	}
}
