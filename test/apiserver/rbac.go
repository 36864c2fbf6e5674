// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// kustomizeNamespace stands for the operator's namespace in config/.
const kustomizeNamespace = "system"

// installRBAC creates the operator's namespace and what config/rbac holds,
// but for the name prefix that config/default adds.
func (s *Server) installRBAC(ctx context.Context) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: OperatorNamespace}}
	if err := s.Client.Create(ctx, namespace); err != nil {
		return err
	}
	files, err := filepath.Glob(Path("config", "rbac", "*.yaml"))
	if err != nil {
		return err
	}
	for _, file := range files {
		if filepath.Base(file) == "kustomization.yaml" {
			continue
		}
		if err := s.createAll(ctx, file); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return nil
}

func (s *Server) createAll(ctx context.Context, file string) error {
	objects, err := ReadObjects(file)
	if err != nil {
		return err
	}
	for _, object := range objects {
		if object.GetNamespace() == kustomizeNamespace {
			object.SetNamespace(OperatorNamespace)
		}
		moveSubjects(object)
		if err := s.Client.Create(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

// moveSubjects puts the subjects of a binding into the operator's namespace.
func moveSubjects(object *unstructured.Unstructured) {
	subjects, _ := object.Object["subjects"].([]any)
	for _, subject := range subjects {
		if s, ok := subject.(map[string]any); ok && s["namespace"] == kustomizeNamespace {
			s["namespace"] = OperatorNamespace
		}
	}
}

// ReadObjects reads the objects of a YAML file.
func ReadObjects(file string) ([]*unstructured.Unstructured, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}
