// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/test/apiserver"
)

// TestExamplesApply applies every file of examples/ strictly, so that a field
// that does not exist is an error.
func TestExamplesApply(t *testing.T) {
	namespace := &corev1.Namespace{ObjectMeta: named("espalier-demo")}
	namespace.Namespace = ""
	if err := client.IgnoreAlreadyExists(server.Client.Create(t.Context(), namespace)); err != nil {
		t.Fatal(err)
	}
	installGateway(t)
	for _, object := range exampleObjects(t) {
		if err := server.Client.Create(t.Context(), object, client.DryRunAll, client.FieldValidation("Strict")); err != nil {
			t.Errorf("%s %s: %v", object.GetKind(), object.GetName(), err)
		}
	}
}

// exampleObjects are all objects of examples/.
func exampleObjects(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	files, err := filepath.Glob(apiserver.Path("examples", "*", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	var out []*unstructured.Unstructured
	for _, file := range files {
		objects, err := apiserver.ReadObjects(file)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		out = append(out, objects...)
	}
	return out
}
