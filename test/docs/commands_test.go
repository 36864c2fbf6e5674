// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/jsonpath"
	"k8s.io/utils/ptr"

	"github.com/espalier-dev/espalier/api/v1alpha1"
)

// ours is a command that reads one field of one of our objects.
var ours = regexp.MustCompile(`kubectl get (mcp\w+)\b.*-o jsonpath='([^']+)'`)

// TestCommands: each jsonpath that the documentation has for one of our kinds
// finds something in an object that has all of it.
func TestCommands(t *testing.T) {
	checked := 0
	for _, page := range pages(t) {
		text, err := os.ReadFile(filepath.Join(root, page.Path))
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(text), "\n") {
			found := ours.FindStringSubmatch(line)
			if found == nil {
				continue
			}
			checked++
			object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(full(found[1]))
			if err != nil {
				t.Fatal(err)
			}
			path := jsonpath.New("command")
			var out strings.Builder
			if err := path.Parse(found[2]); err != nil {
				t.Errorf("%s:%d: %v", page.Path, i+1, err)
			} else if err := path.Execute(io.Writer(&out), object); err != nil {
				t.Errorf("%s:%d: %v", page.Path, i+1, err)
			} else if strings.TrimSpace(out.String()) == "" {
				t.Errorf("%s:%d: the command shows nothing", page.Path, i+1)
			}
		}
	}
	if checked < 6 {
		t.Errorf("only %d commands were found", checked)
	}
}

// full is an object with all that commands ask for.
func full(kind string) any {
	var conditions []metav1.Condition
	for _, c := range []string{
		v1alpha1.ConditionReady, v1alpha1.ConditionAccepted, v1alpha1.ConditionResolvedRefs, v1alpha1.ConditionAvailable, v1alpha1.ConditionHealthy,
		v1alpha1.ConditionSynced, v1alpha1.ConditionUpstreamsReady, v1alpha1.ConditionContractMet, v1alpha1.ConditionServed,
	} {
		conditions = append(conditions, metav1.Condition{Type: c, Status: metav1.ConditionTrue, Reason: "R", Message: "M"})
	}
	registration := v1alpha1.RegistrationStatus{Conditions: conditions, Servers: []v1alpha1.RegistrationServerStatus{{Name: "n", Conditions: conditions}}}
	switch {
	case strings.HasPrefix(kind, "mcptool"):
		return &v1alpha1.MCPTool{Status: v1alpha1.MCPToolStatus{RegistrationStatus: registration}}
	case strings.HasPrefix(kind, "mcpresource"):
		return &v1alpha1.MCPResource{Status: v1alpha1.MCPResourceStatus{RegistrationStatus: registration}}
	case strings.HasPrefix(kind, "mcpprompt"):
		return &v1alpha1.MCPPrompt{Status: v1alpha1.MCPPromptStatus{RegistrationStatus: registration}}
	}
	return &v1alpha1.MCPServer{
		Spec: v1alpha1.MCPServerSpec{Replicas: ptr.To[int32](1)},
		Status: v1alpha1.MCPServerStatus{
			Conditions: conditions, URL: "u", CatalogDigest: "d", ServerImage: "i", Transports: "t", ToolCount: ptr.To[int32](1),
			Tools: []v1alpha1.ObservedTool{{Name: "n", Digest: "d", Source: "s"}}, ToolsCut: []string{"n"},
			Upstreams: []v1alpha1.ObservedUpstream{{Name: "n", State: "s", Reason: "r"}},
		},
	}
}
