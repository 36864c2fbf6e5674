// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"errors"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// dockerHub is the registry of images whose names have none.
const dockerHub = "docker.io"

// Mirrors are, by registry ("docker.io"), where its images are pulled from
// instead ("registry.example.com/docker").
type Mirrors map[string]string

var (
	registryHost = regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9.-]*[a-zA-Z0-9])?(:[0-9]+)?$`)
	mirrorPrefix = regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9.-]*[a-zA-Z0-9])?(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*$`)
)

// Add adds a mirror written as REGISTRY=PREFIX.
func (m Mirrors) Add(s string) error {
	from, to, ok := strings.Cut(s, "=")
	to = strings.TrimSuffix(to, "/")
	switch {
	case !ok, !registryHost.MatchString(from), !mirrorPrefix.MatchString(to):
		return errors.New("write REGISTRY=PREFIX, docker.io=registry.example.com/docker for example")
	case m[from] != "":
		return errors.New("a registry has one mirror")
	}
	m[from] = to
	return nil
}

// image is where the image of a name is pulled from. Names whose registry has
// no mirror stay as they are written.
func (m Mirrors) image(name string) string {
	host, path, ok := strings.Cut(name, "/")
	if !ok || host != "localhost" && !strings.ContainsAny(host, ".:") {
		host, path = dockerHub, name
	}
	to := m[host]
	if to == "" {
		return name
	}
	if host == dockerHub && !strings.Contains(path, "/") {
		path = "library/" + path
	}
	return to + "/" + path
}

// apply pulls all images of a pod from their mirrors.
func (m Mirrors) apply(pod *corev1.PodSpec) {
	if len(m) == 0 {
		return
	}
	for _, containers := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
		for i := range containers {
			containers[i].Image = m.image(containers[i].Image)
		}
	}
	for _, volume := range pod.Volumes {
		if volume.Image != nil {
			volume.Image.Reference = m.image(volume.Image.Reference)
		}
	}
}
