// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/internal/resources"
)

func parseFlags(t *testing.T, args ...string) (*flags, error) {
	t.Helper()
	set := flag.NewFlagSet("manager", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	f := newFlags(set)
	(&zap.Options{}).BindFlags(set)
	if err := set.Parse(args); err != nil {
		return nil, err
	}
	return f, f.check()
}

// chartArgs are the flags in a rendering of the chart.
func chartArgs(t *testing.T, name string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "hack", "helm", "testdata", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, document := range strings.Split(string(text), "\n---\n") {
		var d appsv1.Deployment
		if err := yaml.Unmarshal([]byte(document), &d); err == nil && d.Kind == "Deployment" {
			return d.Spec.Template.Spec.Containers[0].Args
		}
	}
	t.Fatalf("%s has no Deployment", name)
	return nil
}

// TestChartFlags: the operator takes each flag that the chart gives it, and
// understands it as it is meant.
func TestChartFlags(t *testing.T) {
	f, err := parseFlags(t, chartArgs(t, "default")...)
	if err != nil {
		t.Fatal(err)
	}
	fallback, err := parseFlags(t, "--leader-elect", "--server-image="+f.serverImage, "--namespace="+f.namespace)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(fallback, f, cmp.AllowUnexported(flags{})); diff != "" {
		t.Errorf("the chart's defaults are not the operator's (-operator +chart):\n%s", diff)
	}

	f, err = parseFlags(t, chartArgs(t, "full")...)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.denyCIDRs) != 2 || f.concurrency != 16 || f.qps != 500 || f.probeRate != 600.5 || f.timeout != 2*time.Minute || f.metricsAddress != ":9443" {
		t.Errorf("flags of all values: %+v", f)
	}
	want := resources.Options{
		ServerImage: "registry.example.com/espalier/shared/server:v1.2.2", ImagePullSecrets: []string{"org-cred", "registry"},
		Mirrors:     resources.Mirrors{"docker.io": "registry.example.com/docker", "ghcr.io": "registry.example.com/github"},
		PodSecurity: "baseline",
		Operator:    resources.Pods{Namespace: f.namespace, Labels: map[string]string{"control-plane": "controller-manager"}},
	}
	if diff := cmp.Diff(want, f.resources()); diff != "" {
		t.Errorf("options of all values (-want +got):\n%s", diff)
	}

	for _, text := range []string{"", "a in (b, c)", "!a", "a=b=c"} {
		if _, err := parseFlags(t, "--server-image=a", "--namespace=b", "--operator-pod-labels="+text); err == nil {
			t.Errorf("labels %q are taken", text)
		}
	}
	f, err = parseFlags(t, chartArgs(t, "namespaced")...)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"team-a", "team-b"}, f.namespaces); diff != "" || f.metricsSecure {
		t.Errorf("namespaces %q, secure metrics %v", f.namespaces, f.metricsSecure)
	}
}

func TestFlagsRefused(t *testing.T) {
	for name, args := range map[string][]string{
		"no server image": {"--namespace=n"},
		"no namespace":    {"--server-image=i"},
		"concurrency":     {"--server-image=i", "--namespace=n", "--concurrency=0"},
		"user":            {"--server-image=i", "--namespace=n", "--run-as-user=root"},
		"mirror":          {"--server-image=i", "--namespace=n", "--registry-mirror=docker.io"},
		"networks":        {"--server-image=i", "--namespace=n", "--probe-deny-cidrs=10.0.0.1"},
	} {
		t.Setenv("POD_NAMESPACE", "")
		if _, err := parseFlags(t, args...); err == nil {
			t.Errorf("%s: %q is taken", name, args)
		}
	}
}
