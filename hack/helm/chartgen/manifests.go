// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// writeCRDs makes templates of the CRDs of config/crd. They are templates, and
// not in the chart's folder crds/, because Helm never upgrades what is there.
func writeCRDs(root repository) error {
	files, err := filepath.Glob(root.path("config", "crd", "bases", "*.yaml"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("no CRDs in config/crd")
	}
	templates := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		name := filepath.Base(file)
		if templates[name], err = crdTemplate(string(text)); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return replaceFolder(root.chart("templates", "crds"), templates)
}

const (
	crdHead = "{{- /* %s */ -}}\n{{- if .Values.crds.enabled }}\n"
	crdTail = "{{- end }}\n"
	// crdMeta goes where a CRD's metadata begins.
	crdMeta = `metadata:
  labels:
    {{- include "espalier.labels" . | nindent 4 }}
  annotations:
    {{- if .Values.crds.keep }}
    helm.sh/resource-policy: keep
    {{- end }}
`
	crdMetaBefore = "metadata:\n  annotations:\n"
)

// crdTemplate makes a template of a CRD. Braces in it are no template's.
func crdTemplate(crd string) (string, error) {
	crd = strings.TrimPrefix(crd, "---\n")
	crd = strings.NewReplacer("{{", `{{ "{{" }}`, "}}", `{{ "}}" }}`).Replace(crd)
	before, after, ok := strings.Cut(crd, crdMetaBefore)
	if !ok || strings.Contains(after, "\n"+crdMetaBefore) {
		return "", fmt.Errorf("it does not have metadata with annotations once, as controller-gen writes them")
	}
	return fmt.Sprintf(crdHead, generated("config/crd")) + before + crdMeta + after + crdTail, nil
}

// writeRules brings the rules of config/rbac, with their comments, to the
// chart, whose templates put them into roles.
func writeRules(root repository) error {
	files, err := filepath.Glob(root.path("config", "rbac", "*role.yaml"))
	if err != nil {
		return err
	}
	rules := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		_, after, ok := strings.Cut(string(text), "\nrules:\n")
		if !ok || strings.Contains(after, "\n---") {
			return fmt.Errorf("%s: not one role that ends with its rules", file)
		}
		rules[filepath.Base(file)] = after
	}
	return replaceFolder(root.chart("files", "rbac"), rules)
}

const ruleHead = `# %s
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: rules
  namespace: system
  labels:
    app.kubernetes.io/name: espalier
    app.kubernetes.io/managed-by: kustomize
spec:
`

const dashboardHead = `# %s
apiVersion: v1
kind: ConfigMap
metadata:
  name: dashboard
  namespace: system
  labels:
    app.kubernetes.io/name: espalier
    app.kubernetes.io/managed-by: kustomize
    grafana_dashboard: "1"
data:
  espalier.json: |
`

// writeMonitoring brings the chart's alerts and dashboard to config/prometheus.
func writeMonitoring(root repository) error {
	resources := "resources:\n- monitor.yaml\n"
	for _, part := range []struct{ from, to, head, indent string }{
		{"rules.yaml", "rules.yaml", ruleHead, "  "},
		{"dashboard.json", "dashboard.yaml", dashboardHead, "    "},
	} {
		text, err := readIfThere(root.chart("files", part.from))
		if err != nil {
			return err
		}
		if text == "" {
			continue
		}
		head := fmt.Sprintf(part.head, generated("charts/espalier/files/"+part.from))
		if err := write(root.path("config", "prometheus", part.to), head+indent(text, part.indent)); err != nil {
			return err
		}
		resources += "- " + part.to + "\n"
	}
	return write(root.path("config", "prometheus", "kustomization.yaml"), resources)
}
