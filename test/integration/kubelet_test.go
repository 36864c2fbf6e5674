// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/contract"
	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/podreport"
	"github.com/espalier-dev/espalier/internal/prober"
	"github.com/espalier-dev/espalier/internal/resources"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// pods of web.
func (w *world) pods() []corev1.Pod {
	w.Helper()
	var list corev1.PodList
	must(w.T, api.Client.List(w.ctx, &list, client.InNamespace(w.namespace), client.MatchingLabels{mcpv1.LabelServer: "web"}))
	return list.Items
}

// rollOut does what Deployment controller and kubelet would do: it leaves as
// many pods of the present template as are wanted, all ready, and says so.
func (w *world) rollOut() {
	w.Helper()
	w.eventually(soon, "Deployment web-mcp", func() string {
		if w.exists("web-mcp", &appsv1.Deployment{}) {
			return ""
		}
		return "it does not exist"
	})
	d := get(w, "web-mcp", &appsv1.Deployment{})
	hash := resources.Hash(d.Spec.Template)[:10]
	have := 0
	for _, pod := range w.pods() {
		if pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey] == hash && have < int(*d.Spec.Replicas) {
			have++
			continue
		}
		must(w.T, api.Client.Delete(w.ctx, &pod, client.GracePeriodSeconds(0)))
	}
	for have < int(*d.Spec.Replicas) {
		have++
		w.startPod(d, hash, have)
	}
	w.complete(d)
}

// complete lets the Deployment say that it has what it wants.
func (w *world) complete(d *appsv1.Deployment) {
	w.Helper()
	n := *d.Spec.Replicas
	before := d.DeepCopy()
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n}
	must(w.T, api.Client.Status().Patch(w.ctx, d, client.MergeFrom(before)))
}

func (w *world) startPod(d *appsv1.Deployment, hash string, n int) {
	w.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: fmt.Sprintf("web-mcp-%s-", hash), Namespace: w.namespace, Labels: map[string]string{}, Annotations: d.Spec.Template.Annotations},
		Spec:       d.Spec.Template.Spec,
	}
	for key, value := range d.Spec.Template.Labels {
		pod.Labels[key] = value
	}
	pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = hash
	must(w.T, api.Client.Create(w.ctx, pod))
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: fmt.Sprintf("10.0.0.%d", n), PodIPs: []corev1.PodIP{{IP: fmt.Sprintf("10.0.0.%d", n)}},
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}, {Type: corev1.ContainersReady, Status: corev1.ConditionTrue}},
		ContainerStatuses: []corev1.ContainerStatus{{
			Name: "server", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		}},
	}
	must(w.T, api.Client.Status().Update(w.ctx, pod))
}

// catalog that lies in the ConfigMaps of web, as a pod would read it.
func (w *world) catalog() (*serverconfig.Config, string, error) {
	w.Helper()
	var list corev1.ConfigMapList
	must(w.T, api.Client.List(w.ctx, &list, client.InNamespace(w.namespace), client.MatchingLabels{mcpv1.LabelServer: "web"}))
	files := map[string][]byte{}
	for _, cm := range list.Items {
		for key, value := range cm.Data {
			files[key] = []byte(value)
		}
		for key, value := range cm.BinaryData {
			files[key] = value
		}
	}
	return serverconfig.Join(func(name string) ([]byte, error) {
		if raw, ok := files[name]; ok {
			return raw, nil
		}
		return nil, fmt.Errorf("no file %s", name)
	})
}

// report of a pod that has loaded the present catalog.
func (w *world) report() *mcpprobe.Report {
	w.Helper()
	config, digest, err := w.catalog()
	must(w.T, err)
	var definitions []json.RawMessage
	for _, tool := range config.Tools {
		definitions = append(definitions, tool.Definition)
	}
	r := w.listing(definitions...)
	for _, resource := range config.Resources {
		r.Resources.Entries = append(r.Resources.Entries, w.entry(resource.Definition, contract.KeyURI))
	}
	for _, template := range config.Templates {
		r.Templates.Entries = append(r.Templates.Entries, w.entry(template.Definition, contract.KeyURITemplate))
	}
	for _, prompt := range config.Prompts {
		r.Prompts.Entries = append(r.Prompts.Entries, w.entry(prompt.Definition, contract.KeyName))
	}
	r.ResourceCount, r.PromptCount = r.Resources.Count(), r.Prompts.Count()
	r.CatalogDigest, r.PodOutcome = digest, mcpprobe.Proved
	r.Pod = &podreport.Report{Version: 1, CatalogDigest: digest, CatalogState: podreport.CatalogLoaded}
	return r
}

// entry is what a probe tells of a definition.
func (w *world) entry(definition json.RawMessage, key string) mcpprobe.Entry {
	w.Helper()
	of, err := contract.OfEntry(definition, key)
	must(w.T, err)
	return mcpprobe.Entry{Name: mcpprobe.EscapeName(of.Name), Digest: of.Digest}
}

// listing is the report of a server with these tools.
func (w *world) listing(definitions ...json.RawMessage) *mcpprobe.Report {
	w.Helper()
	zero := 0
	r := &mcpprobe.Report{
		Outcome: mcpprobe.Proved, Step: mcpprobe.StepDone, ProtocolVersion: "2026-07-28", Server: mcpprobe.ServerInfo{Name: "web", Version: "1"},
		Capabilities: []string{"tools"}, Tools: mcpprobe.ToolList{State: mcpprobe.ToolsListed}, ResourceCount: &zero, PromptCount: &zero,
		Resources: mcpprobe.EntryList{Known: true}, Templates: mcpprobe.EntryList{Known: true}, Prompts: mcpprobe.EntryList{Known: true},
	}
	for _, raw := range definitions {
		tool, err := contract.Of(raw)
		must(w.T, err)
		r.Tools.Tools = append(r.Tools.Tools, mcpprobe.Tool{Name: tool.Name, Digest: tool.Digest, Fields: tool.Fields})
	}
	return r
}

// prove lets a probe of each target find report, and wakes the operator.
func (w *world) prove(report *mcpprobe.Report) {
	w.Helper()
	w.judge(prober.Proved, report)
}

func (w *world) judge(verdict prober.Verdict, report *mcpprobe.Report) {
	w.Helper()
	key := w.key("web")
	spec, _ := w.prober.spec(key)
	for _, target := range spec.Targets {
		w.prober.set(key, target.ID, verdict, report)
	}
	w.prober.tell(key)
}

// targeted waits until the operator wants n targets of web to be probed.
func (w *world) targeted(n int) []prober.Target {
	w.Helper()
	var spec prober.Spec
	w.eventually(soon, "targets", func() string {
		spec, _ = w.prober.spec(w.key("web"))
		if len(spec.Targets) == n {
			return ""
		}
		return fmt.Sprintf("there are %d, want %d", len(spec.Targets), n)
	})
	return spec.Targets
}

// serve brings web, which is of type Tools, to where all its pods serve the
// present catalog, however often the Deployment changes on the way.
func (w *world) serve() {
	w.Helper()
	want := map[string]string{"Ready": "True Proved", "Synced": "True Synced", "Available": "True Available"}
	w.eventually(2*soon, "serving", func() string {
		w.rollOut()
		pods := map[string]bool{}
		for _, pod := range w.pods() {
			pods[string(pod.UID)] = true
		}
		spec, _ := w.prober.spec(w.key("web"))
		for _, target := range spec.Targets {
			if !pods[target.ID] {
				return "a pod that is gone is probed"
			}
		}
		if len(spec.Targets) != len(pods) {
			return fmt.Sprintf("%d targets for %d pods", len(spec.Targets), len(pods))
		}
		server := w.web()
		problem := differs(server.Status.Conditions, want, server.Status.ObservedGeneration, server.Generation)
		if problem != "" {
			w.prove(w.report())
		}
		return problem
	})
}
