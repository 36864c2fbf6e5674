// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"net"
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
	// frozen answers nothing; its address.
	frozen string
	probes *prober.Prober
}

// newFleet makes a namespace with an operator that has the real prober.
func newFleet(t *testing.T) *fleet {
	t.Helper()
	t.Parallel()
	f := &fleet{world: &world{T: t, ctx: context.Background(), access: api.Operator()}, loaded: map[string]loaded{}, poked: map[string]string{}}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	must(t, api.Client.Create(f.ctx, namespace))
	f.namespace = namespace.Name
	ctx, cancel := context.WithCancel(f.ctx)
	var following sync.WaitGroup
	following.Go(func() { f.follow(ctx) })
	t.Cleanup(func() { cancel(); following.Wait() })
	f.startOperator()
	return f
}

func (f *fleet) startOperator() {
	f.Helper()
	f.probes = prober.New(prober.Options{Probe: f.probe})
	f.operator = startOperatorWith(f.T, f.access, f.namespace, f.probes, f.probes.Wake())
}

// freeze makes the pod at an address answer nothing.
func (f *fleet) freeze(address string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.frozen = address
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
	frozen := f.frozen == host
	f.mu.Unlock()
	if frozen {
		return mcpprobe.Report{Outcome: mcpprobe.Timeout, Step: mcpprobe.StepInitialize}
	}
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
