// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/contract"
	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/podreport"
	"github.com/espalier-dev/espalier/internal/prober"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// editTime is by when an edit is told as served.
const editTime = 5 * time.Second

// fleet plays the kubelets and the servers in the pods of web: a pod loads the
// catalog a moment after its annotation changed, and answers probes from what
// it has loaded.
type fleet struct {
	*world
	mu sync.Mutex
	// loaded is what each pod serves, by its address.
	loaded map[string]loaded
	// poked is the annotation that was acted upon, by pod.
	poked map[string]string
}

type loaded struct {
	config *serverconfig.Config
	digest string
}

// follow acts upon pokes until ctx ends.
func (f *fleet) follow(ctx context.Context) {
	for ctx.Err() == nil {
		var list corev1.PodList
		if err := api.Client.List(ctx, &list, client.InNamespace(f.namespace)); err != nil {
			continue
		}
		for _, pod := range list.Items {
			value := pod.Annotations[mcpv1.AnnotationCatalog]
			f.mu.Lock()
			_, started := f.loaded[pod.Status.PodIP]
			due := pod.Status.PodIP != "" && (!started || f.poked[pod.Name] != value)
			f.mu.Unlock()
			if due {
				f.load(ctx, &pod)
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(at):
		}
	}
}

func (f *fleet) load(ctx context.Context, pod *corev1.Pod) {
	var cm corev1.ConfigMap
	if err := api.Client.Get(ctx, f.key("web-mcp-catalog"), &cm); err != nil {
		return
	}
	config, digest, err := serverconfig.Join(func(name string) ([]byte, error) { return []byte(cm.Data[name]), nil })
	if err != nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.loaded[pod.Status.PodIP] = loaded{config, digest}
	f.poked[pod.Name] = pod.Annotations[mcpv1.AnnotationCatalog]
}

// probe answers as the pod at the target's address would.
func (f *fleet) probe(_ context.Context, target mcpprobe.Target) mcpprobe.Report {
	host, _, err := net.SplitHostPort(target.DialAddress)
	if err != nil {
		return mcpprobe.Report{Outcome: mcpprobe.InvalidTarget}
	}
	f.mu.Lock()
	pod, ok := f.loaded[host]
	f.mu.Unlock()
	if !ok {
		return mcpprobe.Report{Outcome: mcpprobe.ConnectionRefused, Step: mcpprobe.StepDial}
	}
	r := mcpprobe.Report{
		Pod:        &podreport.Report{Version: 1, CatalogDigest: pod.digest, CatalogState: podreport.CatalogLoaded},
		PodOutcome: mcpprobe.Proved, Outcome: mcpprobe.Proved, Step: mcpprobe.StepReport,
	}
	if target.ReportOnly {
		return r
	}
	zero := 0
	r.Step, r.CatalogDigest, r.ResourceCount, r.PromptCount = mcpprobe.StepDone, pod.digest, &zero, &zero
	r.Tools.State = mcpprobe.ToolsListed
	for _, tool := range pod.config.Tools {
		if digested, err := contract.Of(tool.Definition); err == nil {
			r.Tools.Tools = append(r.Tools.Tools, mcpprobe.Tool{Name: digested.Name, Digest: digested.Digest})
		}
	}
	return r
}

// serving gives the expression that each pod serves under name; empty for none.
func (f *fleet) serving(name string) map[string]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := map[string]string{}
	for address, pod := range f.loaded {
		out[address] = ""
		for _, tool := range pod.config.Tools {
			if tool.Name == name && tool.Expression != nil {
				out[address] = tool.Expression.Text
			}
		}
	}
	return out
}

// TestEditsWithTheProber: the controllers with the real prober. Each edit is
// told as served soon, and never before each pod serves it; nothing rolls out.
func TestEditsWithTheProber(t *testing.T) {
	t.Parallel()
	f := &fleet{world: &world{T: t, ctx: context.Background(), access: api.Operator()}, loaded: map[string]loaded{}, poked: map[string]string{}}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	must(t, api.Client.Create(f.ctx, namespace))
	f.namespace = namespace.Name
	ctx, cancel := context.WithCancel(f.ctx)
	var following sync.WaitGroup
	following.Go(func() { f.follow(ctx) })
	t.Cleanup(func() { cancel(); following.Wait() })
	probes := prober.New(prober.Options{Probe: f.probe})
	f.operator = startOperatorWith(t, f.access, f.namespace, probes, probes.Wake())

	twoTools(f.world)
	f.rollOut()
	f.becomes(map[string]string{"Ready": "True Proved", "Synced": "True Synced"})
	f.toolBecomes("alpha", isServed)
	generation := f.generation()

	var took []time.Duration
	for i := range 20 {
		text := fmt.Sprintf("'%d'", i)
		began := time.Now()
		if i%4 == 3 {
			must(t, api.Client.Delete(f.ctx, get(f.world, "alpha", &mcpv1.MCPTool{})))
			began = time.Now()
		}
		f.tool("alpha", fmt.Sprintf(`title: "%d", expression: {text: "%s"}`, i/2, text))
		f.eventually(editTime, fmt.Sprintf("edit %d", i), func() string {
			tool := get(f.world, "alpha", &mcpv1.MCPTool{})
			if problem := differs(tool.Status.Conditions, isServed, tool.Status.ObservedGeneration, tool.Generation); problem != "" {
				return problem
			}
			for pod, serves := range f.serving("alpha") {
				if serves != text {
					t.Errorf("alpha %s is told as served, and pod %s serves %s", text, pod, serves)
				}
			}
			return ""
		})
		took = append(took, time.Since(began))
		f.toolBecomes("beta", isServed)
	}
	slices.Sort(took)
	t.Logf("edit to Served: median %s, longest %s", took[len(took)/2].Round(time.Millisecond), took[len(took)-1].Round(time.Millisecond))
	f.becomes(map[string]string{"Ready": "True Proved", "Synced": "True Synced", "Reconciling": "-"})
	if f.generation() != generation {
		t.Error("an edit rolled out")
	}
	before := len(f.writes.all())
	f.tool("beta", `expression: {text: "'edited'"}`)
	f.toolBecomes("beta", isServed)
	f.becomes(map[string]string{"Synced": "True Synced"})
	// The catalog, a poke for each of three pods, and two statuses of the
	// server and of the tool: pending, done.
	if lines := f.writes.all()[before:]; len(lines) > 10 {
		t.Errorf("one edit wrote %d times: %v", len(lines), lines)
	}
}
