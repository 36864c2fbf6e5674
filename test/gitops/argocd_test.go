// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	lua "github.com/yuin/gopher-lua"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// argoPrefix of the keys of Argo CD's ConfigMap.
const argoPrefix = "resource.customizations.health.mcp.espalier.dev_"

// argoTimeout is what Argo CD gives a script.
const argoTimeout = time.Second

// argoHealths are the words that Argo CD takes for an answer.
var argoHealths = map[string]bool{"Healthy": true, "Progressing": true, "Degraded": true, "Suspended": true, "Missing": true, "Unknown": true}

// health is what a script answers.
type health struct {
	Status, Message string
}

// argoScripts reads the scripts from the ConfigMap that users apply, by kind.
func argoScripts(t *testing.T) map[string]string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, "config", "argocd", "argocd-cm.yaml"))
	must(t, err)
	var cm corev1.ConfigMap
	must(t, yaml.UnmarshalStrict(raw, &cm))
	out := map[string]string{}
	for key, script := range cm.Data {
		kind, ok := strings.CutPrefix(key, argoPrefix)
		if !ok {
			t.Errorf("key %s is no health script of ours", key)
		}
		out[kind] = script
	}
	return out
}

// argoHealth runs a script as Argo CD does: with the libraries base, package
// and table, a global obj, and no more.
func argoHealth(script string, obj *unstructured.Unstructured) (health, error) {
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for name, open := range map[string]lua.LGFunction{lua.LoadLibName: lua.OpenPackage, lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable} {
		if err := state.CallByParam(lua.P{Fn: state.NewFunction(open), Protect: true}, lua.LString(name)); err != nil {
			return health{}, err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), argoTimeout)
	defer cancel()
	state.SetContext(ctx)
	state.SetGlobal("obj", toLua(state, obj.Object))
	if err := state.DoString(script); err != nil {
		return health{}, err
	}
	answer, ok := state.Get(-1).(*lua.LTable)
	if !ok {
		return health{}, fmt.Errorf("it returns a %s, not a table", state.Get(-1).Type())
	}
	out := health{Status: lua.LVAsString(answer.RawGetString("status")), Message: lua.LVAsString(answer.RawGetString("message"))}
	if !argoHealths[out.Status] {
		return out, fmt.Errorf("Argo CD knows no health %q", out.Status)
	}
	return out, nil
}

// toLua gives a value of an object as scripts see it.
func toLua(state *lua.LState, value any) lua.LValue {
	switch v := value.(type) {
	case bool:
		return lua.LBool(v)
	case string:
		return lua.LString(v)
	case int64:
		return lua.LNumber(v)
	case float64:
		return lua.LNumber(v)
	case []any:
		out := state.NewTable()
		for _, item := range v {
			out.Append(toLua(state, item))
		}
		return out
	case map[string]any:
		out := state.NewTable()
		for key, item := range v {
			out.RawSetString(key, toLua(state, item))
		}
		return out
	default:
		return lua.LNil
	}
}

// TestEveryKindHasAScript, and those of registrations are one.
func TestEveryKindHasAScript(t *testing.T) {
	scripts := argoScripts(t)
	for _, kind := range []string{"MCPServer", "MCPTool", "MCPResource", "MCPPrompt"} {
		if scripts[kind] == "" {
			t.Errorf("%s has no script", kind)
		}
	}
	if scripts["MCPTool"] != scripts["MCPResource"] || scripts["MCPTool"] != scripts["MCPPrompt"] {
		t.Error("the scripts of MCPTool, MCPResource and MCPPrompt differ")
	}
	if len(scripts) != 4 {
		t.Errorf("%d scripts, want 4", len(scripts))
	}
}

// TestScriptsBearAnything: an object without status or conditions, as Argo CD
// shows one before the operator saw it, or one whose status is odd.
func TestScriptsBearAnything(t *testing.T) {
	for kind, script := range argoScripts(t) {
		for _, text := range []string{
			`{}`, `{status: {}}`, `{status: {observedGeneration: -1}}`, `{status: {observedGeneration: 1, conditions: []}}`,
			`{status: {observedGeneration: 1, conditions: [{type: Other, status: "True"}]}}`,
		} {
			obj := &unstructured.Unstructured{}
			must(t, yaml.Unmarshal([]byte(text), &obj.Object))
			obj.SetKind(kind)
			obj.SetGeneration(1)
			got, err := argoHealth(script, obj)
			if err != nil || got.Status != "Progressing" || got.Message == "" {
				t.Errorf("%s %s: %+v, %v; want Progressing and why", kind, text, got, err)
			}
		}
	}
}
