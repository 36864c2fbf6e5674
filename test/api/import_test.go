// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/test/apiserver"
)

// TestImported: what "kubectl mcp import" makes of the configurations of its
// own tests is taken by the API server, without a warning or an unknown field.
func TestImported(t *testing.T) {
	files, err := filepath.Glob(apiserver.Path("internal", "plugin", "importing", "testdata", "*.yaml"))
	if err != nil || len(files) < 5 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	strict := client.WithFieldValidation(server.Client, "Strict")
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			kinds := map[string]int{}
			decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(raw), 4096)
			for {
				object := &unstructured.Unstructured{}
				err := decoder.Decode(&object.Object)
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				if object.Object == nil {
					continue // Comments alone.
				}
				object.SetNamespace("default")
				if err := strict.Create(t.Context(), object, client.DryRunAll); err != nil {
					t.Errorf("%s %s: %v", object.GetKind(), object.GetName(), err)
				}
				kinds[object.GetKind()]++
			}
			if kinds["MCPServer"] < 2 || kinds["MCPServer"]+kinds["Secret"] != len(bytes.Split(raw, []byte("\nkind: ")))-1 {
				t.Errorf("it has %v", kinds)
			}
		})
	}
}
