// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// code in the prose of the documentation.
var code = regexp.MustCompile("`([^`]+)`")

// said calls see with each piece of code in the prose of docs/, README.md and
// examples/.
func said(t *testing.T, see func(where, text string)) {
	t.Helper()
	for _, page := range pages(t) {
		if !strings.HasPrefix(page.Path, "docs/") && !strings.HasPrefix(page.Path, "examples/") && page.Path != "README.md" {
			continue
		}
		if page.Path == "docs/comparison.md" {
			continue // It is about others.
		}
		for i, line := range page.Prose {
			for _, found := range code.FindAllStringSubmatch(line, -1) {
				see(page.Path+":"+strconv.Itoa(i+1), found[1])
			}
		}
	}
}

// literals are all words that string literals and embedded files of the code
// have.
func literals(t *testing.T, dirs ...string) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	word := regexp.MustCompile(`[A-Za-z][A-Za-z0-9_]+`)
	for _, dir := range dirs {
		err := filepath.WalkDir(filepath.Join(root, dir), func(file string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") {
				return err
			}
			tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(tree, func(n ast.Node) bool {
				if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
					for _, w := range word.FindAllString(literal.Value, -1) {
						out[w] = true
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// kubernetes has words of Kubernetes and of protocols, which our code need not
// have.
var kubernetes = map[string]bool{
	"CrashLoopBackOff": true, "OOMKilled": true, "AlwaysAllow": true,
	"HTTPRoute": true, "ServiceMonitor": true, "PodMonitor": true, "PrometheusRule": true,
	"ValidatingAdmissionPolicy": true, "ValidatingAdmissionPolicyBinding": true,
	"ClusterRole": true, "ClusterRoleBinding": true, "RoleBinding": true, "ServiceAccount": true,
	"HelmRelease": true, "OCIRepository": true, "GitRepository": true,
	"MissingRequiredClientCapability": true,
	"DaemonSet":                       true, "StatefulSet": true, "OwnerReferencesPermissionEnforcement": true,
}

// reasonLike are reasons, conditions, outcomes, states and kinds: words in
// CamelCase.
var reasonLike = regexp.MustCompile(`^[A-Z][a-z]+([A-Z]+[a-z0-9]*)+$`)

// TestReasonsExist: the documentation names no reason, condition, outcome or
// kind that the code does not have.
func TestReasonsExist(t *testing.T) {
	known := literals(t, "internal", "api", "cmd")
	tests := testNames(t)
	checked := 0
	said(t, func(where, text string) {
		if !reasonLike.MatchString(text) || kubernetes[text] || tests[text] {
			return
		}
		checked++
		if !known[text] {
			t.Errorf("%s: nothing in the code is called %s", where, text)
		}
	})
	if checked < 300 {
		t.Errorf("only %d names were found", checked)
	}
}

// testNames are the names of tests, which some pages cite.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	name := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	for _, dir := range []string{"internal", "cmd", "test", "examples", "hack/docs"} {
		err := filepath.WalkDir(filepath.Join(root, filepath.FromSlash(dir)), func(file string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(file, "_test.go") {
				return err
			}
			text, err := os.ReadFile(file)
			for _, found := range name.FindAllSubmatch(text, -1) {
				out[string(found[1])] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// metric is the name of one of ours.
var metric = regexp.MustCompile(`^(espalier_[a-z_]*[a-z])(\{.*\})?$`)

// TestMetricsExist: the documentation names no metric that nobody exports.
func TestMetricsExist(t *testing.T) {
	known := literals(t, "internal", "cmd")
	for name := range known {
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			known[name+suffix] = known[name+suffix] || strings.HasSuffix(name, "_seconds")
		}
	}
	checked := 0
	said(t, func(where, text string) {
		found := metric.FindStringSubmatch(text)
		if found == nil {
			return
		}
		checked++
		// The shared server's have their namespace before them.
		if name := strings.TrimPrefix(found[1], "espalier_server_"); !known[found[1]] && (name == found[1] || !known[name]) {
			t.Errorf("%s: there is no metric %s", where, found[1])
		}
	})
	if checked < 8 {
		t.Errorf("only %d metrics were found", checked)
	}
}

// others are flags of other programs that the documentation names.
var others = map[string]bool{"--previous": true, "--server-side": true, "--force-conflicts": true, "--host": true}

// TestFlagsExist: the documentation names no flag that no program of ours has.
func TestFlagsExist(t *testing.T) {
	known := map[string]bool{}
	// A flag is declared by a literal that holds its name.
	declared := regexp.MustCompile(`"([a-z][a-z0-9-]+)", `)
	for _, program := range []string{"cmd/manager", "cmd/server", "internal/plugin/*"} {
		files, err := filepath.Glob(filepath.Join(root, program, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, found := range declared.FindAllSubmatch(text, -1) {
				known["--"+string(found[1])] = true
			}
		}
	}
	checked := 0
	said(t, func(where, text string) {
		flag, _, _ := strings.Cut(strings.TrimSpace(text), " ")
		flag, _, _ = strings.Cut(flag, "=")
		if !strings.HasPrefix(flag, "--") || strings.HasPrefix(flag, "--zap-") || flag == "--kubeconfig" {
			return
		}
		checked++
		if !known[flag] && !others[flag] {
			t.Errorf("%s: no program of ours has the flag %s", where, flag)
		}
	})
	if checked < 20 {
		t.Errorf("only %d flags were found", checked)
	}
}

// field is the path of one of ours.
var field = regexp.MustCompile(`^(spec|status)((\.[a-z][A-Za-z]*(\[\])?)+)$`)

// TestFieldsExist: the documentation names no field that no kind has.
func TestFieldsExist(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "config", "crd", "bases", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	var kinds []*apiextensionsv1.JSONSchemaProps
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(text, &crd); err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, crd.Spec.Versions[0].Schema.OpenAPIV3Schema)
	}
	checked := 0
	said(t, func(where, text string) {
		if !field.MatchString(text) {
			return
		}
		checked++
		for _, kind := range kinds {
			if hasField(kind, strings.Split(strings.ReplaceAll(text, "[]", ""), ".")) {
				return
			}
		}
		t.Errorf("%s: no kind has %s", where, text)
	})
	if checked < 100 {
		t.Errorf("only %d fields were found", checked)
	}
}

func hasField(s *apiextensionsv1.JSONSchemaProps, path []string) bool {
	for s.Items != nil && s.Items.Schema != nil {
		s = s.Items.Schema
	}
	if len(path) == 0 || len(s.Properties) == 0 {
		return len(path) == 0 || s.XPreserveUnknownFields != nil
	}
	next, ok := s.Properties[path[0]]
	return ok && hasField(&next, path[1:])
}
