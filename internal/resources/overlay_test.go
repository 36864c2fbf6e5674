// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/catalog"
)

// overlaid renders the template of a Tools server under podTemplate.
func overlaid(t *testing.T, podTemplate string) (*corev1.PodTemplateSpec, error) {
	t.Helper()
	s := server(t, `{}`)
	raw, err := yaml.YAMLToJSON([]byte(podTemplate))
	if err != nil {
		t.Fatal(err)
	}
	s.Spec.Workload = &mcpv1.Workload{PodTemplate: &mcpv1.JSON{Raw: raw}}
	d, err := options().Deployment(TemplateInput{Server: s, Refs: []catalog.Ref{secret("a", "k")}, EnvDigest: "digest"}, nil)
	if err != nil {
		return nil, err
	}
	return &d.Spec.Template, nil
}

// TestOverlayRefuses: what cannot be merged is told with its path.
func TestOverlayRefuses(t *testing.T) {
	tests := map[string]struct{ template, message string }{
		"a typo":              {`{spec: {hostNetwrk: true}}`, `unknown field "spec.hostNetwrk"`},
		"a typo in a list":    {`{spec: {containers: [{name: server, imge: x}]}}`, `unknown field "spec.containers[0].imge"`},
		"wrong case":          {`{spec: {NodeSelector: {a: b}}}`, `unknown field "spec.NodeSelector"`},
		"another type":        {`{spec: {terminationGracePeriodSeconds: soon}}`, "terminationGracePeriodSeconds"},
		"a whole Deployment":  {`{spec: {template: {spec: {}}}}`, `unknown field "spec.template"`},
		"the container goes":  {`{spec: {containers: [{name: server, $patch: delete}]}}`, `container "server" cannot be removed`},
		"all containers go":   {`{spec: {containers: [{$patch: replace}, {name: mine, image: x}]}}`, `container "server" cannot be removed`},
		"the whole spec goes": {`{spec: {$patch: delete}}`, `container "server" cannot be removed`},
		"no name to merge by": {`{spec: {containers: [{image: x}]}}`, "does not merge"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := overlaid(t, test.template)
			if !errors.Is(err, ErrInvalidPodTemplate) {
				t.Fatalf("error %v, want ErrInvalidPodTemplate", err)
			}
			if !strings.Contains(err.Error(), test.message) {
				t.Errorf("error %q does not tell %q", err, test.message)
			}
		})
	}
}

// TestOverlayMerges: what users may change, changes.
func TestOverlayMerges(t *testing.T) {
	got, err := overlaid(t, `
metadata: {labels: {extra: x}, annotations: {a: b}}
spec:
  hostname: one
  nodeSelector: {disk: ssd}
  topologySpreadConstraints: [{$patch: replace}]
  initContainers: [{name: init, image: init:1}]
  containers:
  - name: server
    resources: {limits: {memory: 1Gi}}
    env: [{name: A, value: b}]
    livenessProbe: null
    ports: [{containerPort: 9000, name: debug}]
    volumeMounts: [{name: cache, mountPath: /cache}]
  - {name: sidecar, image: sidecar:1}
  volumes: [{name: cache, emptyDir: {}}]
`)
	if err != nil {
		t.Fatal(err)
	}
	c := got.Spec.Containers[slices.IndexFunc(got.Spec.Containers, func(c corev1.Container) bool { return c.Name == ContainerServer })]
	for what, ok := range map[string]bool{
		"label":         got.Labels["extra"] == "x" && got.Annotations["a"] == "b",
		"hostname":      got.Spec.Hostname == "one",
		"init":          len(got.Spec.InitContainers) == 1,
		"sidecar":       len(got.Spec.Containers) == 2,
		"spread is off": len(got.Spec.TopologySpreadConstraints) == 0,
		"memory":        c.Resources.Limits.Memory().String() == "1Gi",
		"requests stay": c.Resources.Requests.Cpu().String() == "10m",
		"env":           len(c.Env) == 3, // Two are our own.
		"liveness gone": c.LivenessProbe == nil,
		"readiness":     c.ReadinessProbe != nil,
		"port":          len(c.Ports) == 3,
		"mount":         len(c.VolumeMounts) == 3,
		"volumes":       len(got.Spec.Volumes) == 3,
	} {
		if !ok {
			t.Errorf("%s is not as wanted: %+v", what, c)
		}
	}
}

// TestOverlayReasserts: what is Espalier's stays so.
func TestOverlayReasserts(t *testing.T) {
	plain, err := overlaid(t, `{}`)
	if err != nil {
		t.Fatal(err)
	}
	want := plain.Spec.Containers[0]
	for name, template := range map[string]string{
		"labels":            `{metadata: {labels: {mcp.espalier.dev/server: other, app.kubernetes.io/instance: other, app.kubernetes.io/managed-by: me}}}`,
		"labels deleted":    `{metadata: {labels: {mcp.espalier.dev/server: null, app.kubernetes.io/name: null}}}`,
		"labels replaced":   `{metadata: {labels: {$patch: replace, a: b}}}`,
		"annotation":        `{metadata: {annotations: {mcp.espalier.dev/env: forged}}}`,
		"image and command": `{spec: {containers: [{name: server, image: evil, command: [sh], args: [-c, evil]}]}}`,
		"port renamed":      `{spec: {containers: [{name: server, ports: [{containerPort: 8080, name: web, protocol: TCP}]}]}}`,
		"port name stolen":  `{spec: {containers: [{name: server, ports: [{containerPort: 9, name: mcp}]}]}}`,
		"port deleted":      `{spec: {containers: [{name: server, ports: [{containerPort: 8081, $patch: delete}]}]}}`,
		"mount moved":       `{spec: {containers: [{name: server, volumeMounts: [{mountPath: /etc/espalier/catalog, name: mine}]}], volumes: [{name: mine, emptyDir: {}}]}}`,
		"mounts replaced":   `{spec: {containers: [{name: server, volumeMounts: [{$patch: replace}]}]}}`,
		"volume changed":    `{spec: {volumes: [{name: espalier-catalog, emptyDir: {}, projected: null}]}}`,
		"volume deleted":    `{spec: {volumes: [{name: espalier-credentials, $patch: delete}]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			got, err := overlaid(t, template)
			if err != nil {
				t.Fatal(err)
			}
			for key, value := range plain.Labels {
				if got.Labels[key] != value {
					t.Errorf("label %s is %q", key, got.Labels[key])
				}
			}
			if got.Annotations[mcpv1.AnnotationEnv] != "digest" {
				t.Errorf("annotations are %v", got.Annotations)
			}
			c := got.Spec.Containers[0]
			if c.Image != want.Image || !slices.Equal(c.Command, want.Command) || !slices.Equal(c.Args, want.Args) {
				t.Errorf("container runs %s %v %v", c.Image, c.Command, c.Args)
			}
			if !slices.Equal(c.Ports, want.Ports) {
				t.Errorf("ports are %v", c.Ports)
			}
			for _, m := range want.VolumeMounts {
				if !slices.ContainsFunc(c.VolumeMounts, func(n corev1.VolumeMount) bool { return Hash(n) == Hash(m) }) {
					t.Errorf("mount %s is gone: %v", m.Name, c.VolumeMounts)
				}
			}
			for _, v := range plain.Spec.Volumes {
				at := slices.IndexFunc(got.Spec.Volumes, func(w corev1.Volume) bool { return w.Name == v.Name })
				if at < 0 || Hash(got.Spec.Volumes[at]) != Hash(v) {
					t.Errorf("volume %s changed: %v", v.Name, got.Spec.Volumes)
				}
			}
		})
	}
}
