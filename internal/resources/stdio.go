// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
)

const (
	// ContainerInstall copies the shared server beside the program of a server
	// of type Stdio, whose image knows nothing of it.
	ContainerInstall = "espalier-install"

	volumeBinary = "espalier-binary"
	mountBinary  = "/espalier"
)

// wrap puts the shared server, c, into the user's image: an init container
// copies it there.
func (o Options) wrap(t *corev1.PodTemplateSpec, c *corev1.Container, server *mcpv1.MCPServer, w *mcpv1.Workload) {
	limit := resource.MustParse("256Mi")
	t.Spec.Volumes = append(t.Spec.Volumes, corev1.Volume{Name: volumeBinary, VolumeSource: corev1.VolumeSource{
		EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: &limit},
	}})
	t.Spec.InitContainers = []corev1.Container{{
		Name: ContainerInstall, Image: o.ServerImage, Args: []string{"install", mountBinary},
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("64Mi")},
			Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("128Mi")},
		},
		SecurityContext: containerSecurityContext(),
		VolumeMounts:    []corev1.VolumeMount{{Name: volumeBinary, MountPath: mountBinary}},
	}}
	src := server.Spec.Stdio
	c.Image, c.Command = src.Image, []string{mountBinary + "/server"}
	c.Args = append(c.Args, "--reap")
	own := slices.DeleteFunc(slices.Clone(w.Env), func(e corev1.EnvVar) bool {
		return slices.ContainsFunc(src.Env, func(s corev1.EnvVar) bool { return s.Name == e.Name })
	})
	c.Env = withDefaults(slices.Concat(own, src.Env), launcherEnv())
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: volumeBinary, MountPath: mountBinary, ReadOnly: true})
	addWritable(t, c, w)
}

// ServerImage is the image that the shared server of a pod comes from; empty
// where there is none.
func ServerImage(spec *corev1.PodSpec) string {
	for _, c := range spec.InitContainers {
		if c.Name == ContainerInstall {
			return c.Image
		}
	}
	for _, c := range spec.Containers {
		if c.Name == ContainerServer {
			return c.Image
		}
	}
	return ""
}
