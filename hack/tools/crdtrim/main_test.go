// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestTrimFile: only descriptions go, and only below the fields of Kubernetes'
// types. A property that is called description stays.
func TestTrimFile(t *testing.T) {
	const before = `---
spec:
  versions:
  - schema:
      openAPIV3Schema:
        properties:
          spec:
            properties:
              external:
                description: stays
                properties:
                  secretKeyRef:
                    description: stays
                    properties:
                      name:
                        description: gone
                        type: string
                    x-kubernetes-validations:
                    - message: stays
                      rule: stays
              networkPolicy:
                properties:
                  ingress:
                    properties:
                      namespaces:
                        description: stays
                        items:
                          description: gone
                          type: object
              workload:
                properties:
                  affinity:
                    description: affinity of the pods.
                    properties:
                      description:
                        description: gone
                        type: string
                  labels:
                    additionalProperties:
                      description: stays
                    description: stays
                  volumes:
                    items:
                      description: stays
                      properties:
                        name:
                          description: stays
                        secret:
                          description: stays
                          properties:
                            items:
                              description: gone
                              maxItems: 3
`
	const after = `---
spec:
  versions:
  - schema:
      openAPIV3Schema:
        properties:
          spec:
            properties:
              external:
                description: stays
                properties:
                  secretKeyRef:
                    description: stays
                    properties:
                      name:
                        type: string
                    x-kubernetes-validations:
                    - message: stays
                      rule: stays
              networkPolicy:
                properties:
                  ingress:
                    properties:
                      namespaces:
                        description: stays
                        items:
                          type: object
              workload:
                properties:
                  affinity:
                    description: affinity of the pods.
                    properties:
                      description:
                        type: string
                  labels:
                    additionalProperties:
                      description: stays
                    description: stays
                  volumes:
                    items:
                      description: stays
                      properties:
                        name:
                          description: stays
                        secret:
                          description: stays
                          properties:
                            items:
                              maxItems: 3
`
	file := filepath.Join(t.TempDir(), "crd.yaml")
	if err := os.WriteFile(file, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := trimFile(file); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != after {
		t.Errorf("got\n%s", got)
	}
}
