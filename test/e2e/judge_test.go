// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/test/e2e/harness"
)

// judge asks each replica, whenever a tool's status says Served True of its
// newest version, whether it serves at least that version.
type judge struct {
	tools *editedTools
	peers []*harness.Peer
	end   func()

	mu     sync.Mutex
	checks int
	lies   []string
}

func (t *editedTools) judge(ctx context.Context, peers []*harness.Peer) *judge {
	j := &judge{tools: t, peers: peers}
	j.end = t.ns.Watch(ctx, &v1alpha1.MCPToolList{}, func(event watch.Event) {
		tool, ok := event.Object.(*v1alpha1.MCPTool)
		if !ok || event.Type == watch.Deleted || strings.HasPrefix(tool.Name, "still-") {
			return
		}
		served := harness.Condition(tool, v1alpha1.ConditionServed)
		if served != nil && served.Status == metav1.ConditionTrue && served.ObservedGeneration == tool.Generation {
			j.check(context.WithoutCancel(ctx), tool)
		}
	})
	return j
}

// stop ends the watch and gives what was found.
func (j *judge) stop() (checks int, lies []string) {
	j.end()
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.checks, j.lies
}

func (j *judge) check(ctx context.Context, tool *v1alpha1.MCPTool) {
	for _, peer := range j.peers {
		lie := j.ask(ctx, peer, tool)
		j.mu.Lock()
		if lie != "" {
			j.lies = append(j.lies, fmt.Sprintf("%s generation %d at %s: %s", tool.Name, tool.Generation, peer.Name, lie))
		}
		j.mu.Unlock()
	}
	j.mu.Lock()
	j.checks++
	j.mu.Unlock()
}

// ask returns what is wrong, or nothing.
func (j *judge) ask(ctx context.Context, peer *harness.Peer, tool *v1alpha1.MCPTool) string {
	if strings.HasPrefix(tool.Name, "new-") {
		tools, err := peer.Tools(ctx)
		if err != nil {
			return err.Error()
		}
		if _, listed := tools[tool.Name]; !listed && j.exists(ctx, tool) {
			return "is not listed"
		}
		return ""
	}
	want, err := parseVersion(declaredVersion(tool))
	if err != nil {
		return err.Error()
	}
	got, err := servedVersion(ctx, peer, tool.Name)
	switch {
	case err != nil:
		return err.Error()
	case got < want:
		return fmt.Sprintf("serves v%d, Served says v%d", got, want)
	default:
		return ""
	}
}

// exists reports whether the tool was not deleted meanwhile.
func (j *judge) exists(ctx context.Context, tool *v1alpha1.MCPTool) bool {
	return j.tools.ns.Client.Get(ctx, client.ObjectKeyFromObject(tool), &v1alpha1.MCPTool{}) == nil
}

// declaredVersion is the version in a fixed tool's spec.
func declaredVersion(tool *v1alpha1.MCPTool) string {
	switch tool.Name {
	case "titled":
		return tool.Spec.Title
	case "spoken":
		return strings.Trim(tool.Spec.Expression.Text, `'"`)
	case "fetched":
		return tool.Spec.HTTP.URL[strings.LastIndexByte(tool.Spec.HTTP.URL, '/')+1:]
	default:
		return *tool.Spec.HTTP.Headers[0].Value
	}
}
