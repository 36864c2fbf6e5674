// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"errors"
	"strings"
	"testing"
)

// TestPodSecurity: what is rendered passes restricted as it is; what users
// loosen is judged by the level.
func TestPodSecurity(t *testing.T) {
	const container = `{type: Container, container: {image: i}, workload: {podTemplate: {spec: `
	tests := map[string]struct {
		spec    string
		refused map[string]string // by level: a part of the message
	}{
		"tools":        {goldens["tools-minimal"].spec, nil},
		"tools max":    {goldens["tools-maximal"].spec, nil},
		"container":    {goldens["container-minimal"].spec, nil},
		"container 2":  {goldens["container-maximal"].spec, nil},
		"host network": {container + `{hostNetwork: true}}}}`, map[string]string{"restricted": "host namespaces", "baseline": "host namespaces"}},
		"host path":    {container + `{volumes: [{name: h, hostPath: {path: /}}]}}}}`, map[string]string{"restricted": "hostPath", "baseline": "hostPath"}},
		"privileged": {container + `{containers: [{name: server, securityContext: {privileged: true, allowPrivilegeEscalation: true}}]}}}}`,
			map[string]string{"restricted": "privileged", "baseline": "privileged"}},
		"root":        {container + `{securityContext: {runAsUser: 0, runAsNonRoot: false}}}}}`, map[string]string{"restricted": "runAsNonRoot"}},
		"a bare init": {container + `{initContainers: [{name: init, image: i}]}}}}`, map[string]string{"restricted": "allowPrivilegeEscalation"}},
	}
	for name, test := range tests {
		for _, level := range []string{"restricted", "baseline", "privileged"} {
			t.Run(name+" at "+level, func(t *testing.T) {
				judge, err := NewPodSecurity(level)
				if err != nil {
					t.Fatal(err)
				}
				d, err := options().Deployment(TemplateInput{Server: server(t, test.spec)}, nil)
				if err != nil {
					t.Fatal(err)
				}
				err = judge.Check(&d.Spec.Template)
				want := test.refused[level]
				if (want != "") != errors.Is(err, ErrPodSecurity) {
					t.Fatalf("error %v, want %q", err, want)
				}
				if want != "" && !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not tell %q", err, want)
				}
				for range 5 {
					if again := judge.Check(&d.Spec.Template); want != "" && again.Error() != err.Error() {
						t.Errorf("first %q, then %q", err, again)
					}
				}
			})
		}
	}
	if _, err := NewPodSecurity("paranoid"); err == nil {
		t.Error("an unknown level was taken")
	}
}
