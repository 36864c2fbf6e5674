// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMirrors(t *testing.T) {
	m := Mirrors{}
	for _, s := range []string{"docker.io=registry.example.com/docker", "ghcr.io=registry.example.com:5000/", "registry.local:5000=mirror"} {
		if err := m.Add(s); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
	for name, want := range map[string]string{
		"node:22":                    "registry.example.com/docker/library/node:22",
		"acme/files":                 "registry.example.com/docker/acme/files",
		"docker.io/node":             "registry.example.com/docker/library/node",
		"docker.io/acme/files:1":     "registry.example.com/docker/acme/files:1",
		"ghcr.io/acme/x@sha256:0123": "registry.example.com:5000/acme/x@sha256:0123",
		"registry.local:5000/a/b":    "mirror/a/b",
		"quay.io/acme/x:1":           "quay.io/acme/x:1",
		"localhost/x":                "localhost/x",
	} {
		if got := m.image(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	for _, s := range []string{
		"", "docker.io", "docker.io=", "=a", "docker.io/acme=a", "https://ghcr.io=a", "quay.io=https://a", "quay.io=a/B", "quay.io=a b",
		"quay.io=a//b", "docker.io=other.example.com",
	} {
		if err := m.Add(s); err == nil {
			t.Errorf("%q is taken", s)
		}
	}
	if got := (Mirrors{}).image("node:22"); got != "node:22" {
		t.Errorf("without mirrors: %s", got)
	}
}

// TestMirrorsReachAllImages: those of the user, of Espalier, and those that
// the user's podTemplate adds.
func TestMirrorsReachAllImages(t *testing.T) {
	o := options()
	o.Mirrors = Mirrors{"docker.io": "registry.example.com/docker", "ghcr.io": "registry.example.com/github"}
	for name, want := range map[string][]string{
		`{}`: {"registry.example.com/github/espalier-dev/server:v0.1.0"},
		`{type: Container, container: {image: "ghcr.io/acme/orders:1"}}`: {"registry.example.com/github/acme/orders:1"},
		`{type: Stdio, stdio: {image: "node:22", command: [npx]}, workload: {podTemplate: {spec: {
		   initContainers: [{name: first, image: busybox}],
		   containers: [{name: beside, image: acme/beside}],
		   volumes: [{name: data, image: {reference: "ghcr.io/acme/data:1"}}]}}}}`: {
			"registry.example.com/github/espalier-dev/server:v0.1.0", "registry.example.com/docker/library/busybox",
			"registry.example.com/docker/acme/beside", "registry.example.com/docker/library/node:22", "registry.example.com/github/acme/data:1",
		},
	} {
		d, err := o.Deployment(TemplateInput{Server: server(t, name)}, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var got []string
		pod := d.Spec.Template.Spec
		for _, c := range pod.InitContainers {
			got = append(got, c.Image)
		}
		for _, c := range pod.Containers {
			got = append(got, c.Image)
		}
		for _, v := range pod.Volumes {
			if v.Image != nil {
				got = append(got, v.Image.Reference)
			}
		}
		if !cmp.Equal(got, want) {
			t.Errorf("%s:\n got %s\nwant %s", name, strings.Join(got, " "), strings.Join(want, " "))
		}
	}
}
