// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the table into docs/gitops.md")

// root of the repository.
var root = filepath.Join("..", "..")

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// verdicts are what others must make of each state.
type verdicts struct {
	kstatus status.Status
	argo    string
}

var (
	current     = verdicts{status.CurrentStatus, "Healthy"}
	off         = verdicts{status.CurrentStatus, "Suspended"}
	progressing = verdicts{status.InProgressStatus, "Progressing"}
	broken      = verdicts{status.InProgressStatus, "Degraded"}
	stalled     = verdicts{status.FailedStatus, "Degraded"}
)

// want has every state: each object that is kept is in it, and the reverse.
var want = map[string]verdicts{
	"mcpserver-unseen": progressing, "mcpserver-edited": progressing,
	"mcpserver-proved": current, "mcpserver-zero": off, "mcpserver-suspended": off,
	"mcpserver-wants-auth": current, "mcpserver-auth-rejected": broken,
	"mcpserver-starting": progressing, "mcpserver-env-missing": progressing, "mcpserver-rolling-out": progressing,
	"mcpserver-tool-secret-missing": current, "mcpserver-rollout-for-credentials": progressing,
	"mcpserver-catalog-pending": progressing, "mcpserver-catalog-not-loaded": broken,
	"mcpserver-failing": broken, "mcpserver-no-traffic": broken, "mcpserver-upstreams-gone": broken,
	"mcpserver-an-upstream-down": current, "mcpserver-contract-broken": current,
	"mcpserver-never-started": stalled, "mcpserver-invalid": stalled, "mcpserver-in-the-way": stalled,
	"mcpserver-stale": progressing,
}

// wantRegistration is the same for each kind of registration.
var wantRegistration = map[string]verdicts{
	"unseen": progressing, "edited": progressing,
	"served": current, "server-starts": current, "edit-on-its-way": current,
	"before-its-server": current, "no-servers": current, "suspended": off,
	"conflict": stalled, "invalid": stalled,
}

func init() {
	for _, kind := range []string{"mcptool", "mcpresource", "mcpprompt"} {
		for state, v := range wantRegistration {
			want[kind+"-"+state] = v
		}
	}
}

// keptStates reads the objects of test/states, by file name.
func keptStates(t *testing.T) map[string]*unstructured.Unstructured {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "test", "states", "testdata", "*.yaml"))
	must(t, err)
	out := map[string]*unstructured.Unstructured{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		must(t, err)
		text, err := yaml.YAMLToJSON(raw)
		must(t, err)
		obj := &unstructured.Unstructured{}
		// Numbers as the API machinery decodes them.
		must(t, obj.UnmarshalJSON(text))
		out[strings.TrimSuffix(filepath.Base(file), ".yaml")] = obj
	}
	return out
}

// TestVerdicts: what kstatus and Argo CD make of each state, and the table of it
// in docs/gitops.md.
func TestVerdicts(t *testing.T) {
	scripts, kept := argoScripts(t), keptStates(t)
	servers, registrations := []string{}, []string{}
	for name, obj := range kept {
		wanted, ok := want[name]
		if !ok {
			t.Errorf("%s: no verdict is wanted of it", name)
			continue
		}
		judged, err := status.Compute(obj)
		must(t, err)
		if judged.Status != wanted.kstatus {
			t.Errorf("%s: kstatus says %s (%s), want %s", name, judged.Status, judged.Message, wanted.kstatus)
		}
		argo, err := argoHealth(scripts[obj.GetKind()], obj)
		if err != nil {
			t.Errorf("%s: the script for Argo CD: %v", name, err)
			continue
		}
		if argo.Status != wanted.argo || argo.Message == "" {
			t.Errorf("%s: Argo CD says %q (%s), want %s", name, argo.Status, argo.Message, wanted.argo)
		}
		kind, state, _ := strings.Cut(name, "-")
		switch kind {
		case "mcpserver":
			servers = append(servers, fmt.Sprintf("| %s | %s | %s | %s | %s |", state, shown(obj, "Ready"), shown(obj, "Reconciling", "Stalled"), judged.Status, argo.Status))
		case "mcptool":
			registrations = append(registrations, fmt.Sprintf("| %s | %s | %s | %s | %s | %s |", state, shown(obj, "Accepted"), shown(obj, "Served"), shown(obj, "Stalled"), judged.Status, argo.Status))
		}
	}
	for name := range want {
		if kept[name] == nil {
			t.Errorf("%s: no such object is kept", name)
		}
	}
	inDocs(t, "servers", "| MCPServer | Ready | Reconciling, Stalled | kstatus | Argo CD |", servers)
	inDocs(t, "registrations", "| MCPTool, MCPResource, MCPPrompt | Accepted | Served | Stalled | kstatus | Argo CD |", registrations)
}

// shown are the conditions of these types that the object has.
func shown(obj *unstructured.Unstructured, types ...string) string {
	list, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	var out []string
	for _, item := range list {
		c, _ := item.(map[string]any)
		if kind := fmt.Sprint(c["type"]); slices.Contains(types, kind) {
			text := fmt.Sprintf("%v `%v`", c["status"], c["reason"])
			if len(types) > 1 {
				text = kind + " " + text
			}
			out = append(out, text)
		}
	}
	if len(out) == 0 {
		return "-"
	}
	return strings.Join(out, ", ")
}

// inDocs compares a table with the one between its marks in docs/gitops.md.
func inDocs(t *testing.T, mark, head string, rows []string) {
	t.Helper()
	slices.Sort(rows)
	rule := "|" + strings.Repeat("---|", strings.Count(head, "|")-1)
	table := strings.Join(append([]string{head, rule}, rows...), "\n")
	path := filepath.Join(root, "docs", "gitops.md")
	page, err := os.ReadFile(path)
	must(t, err)
	begin, end := []byte("<!-- "+mark+" -->\n"), []byte("\n<!-- end of "+mark+" -->")
	before, rest, ok := bytes.Cut(page, begin)
	shown, after, ok2 := bytes.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no marks of %s", path, mark)
	}
	if string(shown) == table {
		return
	}
	if !*update {
		t.Errorf("docs/gitops.md shows another table of %s; go test -C test/gitops . -update writes it. Want:\n%s", mark, table)
		return
	}
	must(t, os.WriteFile(path, slices.Concat(before, begin, []byte(table), end, after), 0o600))
}
