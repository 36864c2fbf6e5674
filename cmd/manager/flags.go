// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/espalier-dev/espalier/internal/controller"
	"github.com/espalier-dev/espalier/internal/resources"
)

// flags of the operator.
type flags struct {
	serverImage      string
	maxRollouts      int
	imagePullSecrets []string
	mirrors          resources.Mirrors
	runAsUser        string
	podSecurity      string
	operatorLabels   map[string]string

	namespace   string
	namespaces  []string
	leaderElect bool
	concurrency int
	timeout     time.Duration
	qps         float64
	burst       int

	probeWorkers int
	probeRate    float64
	denyCIDRs    []netip.Prefix

	metricsAddress string
	metricsSecure  bool
	healthAddress  string
	pprofAddress   string
}

func newFlags(fs *flag.FlagSet) *flags {
	f := &flags{mirrors: resources.Mirrors{}}
	fs.StringVar(&f.serverImage, "server-image", "", "Image of the shared server that pods of types Tools and Stdio run. Required.")
	fs.IntVar(&f.maxRollouts, "max-server-rollouts", controller.DefaultServerRollouts, "Servers that are given a new --server-image at once; the next follows when one is Ready. Two that fail with it stop the rest.")
	fs.Func("image-pull-secret", "Name of a Secret for pulling images that every pod lists, taken from the pod's namespace. May be repeated.", func(s string) error {
		f.imagePullSecrets = append(f.imagePullSecrets, s)
		return nil
	})
	fs.Func("registry-mirror", "Where images of a registry are pulled from instead, those that MCPServers name as well: REGISTRY=PREFIX. docker.io is the registry of names without one. May be repeated.", f.mirrors.Add)
	fs.StringVar(&f.runAsUser, "run-as-user", strconv.FormatInt(resources.DefaultRunAsUser, 10), "User of pods of the shared image; empty leaves it to the platform, as OpenShift wants.")
	fs.StringVar(&f.podSecurity, "pod-security", "restricted", "Pod Security level that pod templates are judged by: privileged, baseline or restricted.")
	f.operatorLabels = map[string]string{"control-plane": "controller-manager"}
	fs.Func("operator-pod-labels", "Labels of the operator's own pods, as in KEY=VALUE,KEY=VALUE: the NetworkPolicies of servers let them in, in the operator's namespace (default \"control-plane=controller-manager\").", f.parseLabels)
	fs.StringVar(&f.namespace, "namespace", os.Getenv("POD_NAMESPACE"), "Namespace of the operator, for its Lease and its keys. Defaults to POD_NAMESPACE.")
	fs.Func("watch-namespace", "Namespace to work in; may be repeated. Default: all.", func(s string) error {
		f.namespaces = append(f.namespaces, s)
		return nil
	})
	fs.BoolVar(&f.leaderElect, "leader-elect", false, "Work only while holding the Lease espalier-manager.")
	fs.IntVar(&f.concurrency, "concurrency", 8, "Objects of a kind that are reconciled at once.")
	fs.DurationVar(&f.timeout, "reconcile-timeout", time.Minute, "Time for one pass over one object.")
	fs.Float64Var(&f.qps, "kube-api-qps", 200, "Requests per second to the API server.")
	fs.IntVar(&f.burst, "kube-api-burst", 400, "Requests at once to the API server.")
	fs.IntVar(&f.probeWorkers, "probe-workers", 32, "Probes at once that have not proved slow.")
	fs.Float64Var(&f.probeRate, "probe-rate", 300, "Probes started per second.")
	fs.Func("probe-deny-cidrs", "Networks that are never dialled, comma-separated, beside loopback, link-local and metadata addresses.", f.parseCIDRs)
	fs.StringVar(&f.metricsAddress, "metrics-bind-address", ":8443", "Address of the metrics; 0 switches them off.")
	fs.BoolVar(&f.metricsSecure, "metrics-secure", true, "Serve metrics over HTTPS to who may get /metrics.")
	fs.StringVar(&f.healthAddress, "health-probe-bind-address", ":8081", "Address of /healthz and /readyz.")
	fs.StringVar(&f.pprofAddress, "pprof-bind-address", "", "Address of /debug/pprof, for developers; empty switches it off. Whoever reaches it can read the operator's memory.")
	return f
}

func (f *flags) parseCIDRs(s string) error {
	for _, part := range strings.Split(s, ",") {
		prefix, err := netip.ParsePrefix(strings.TrimSpace(part))
		if err != nil {
			return err
		}
		f.denyCIDRs = append(f.denyCIDRs, prefix)
	}
	return nil
}

func (f *flags) parseLabels(s string) error {
	parsed, err := labels.ConvertSelectorToLabelsMap(s)
	if err != nil {
		return err
	}
	if len(parsed) == 0 {
		return errors.New("name a label: without one every pod of the namespace would be let in")
	}
	f.operatorLabels = parsed
	return nil
}

// check refuses what could not work, before anything starts.
func (f *flags) check() error {
	switch {
	case f.serverImage == "":
		return errors.New("--server-image is required: the image that pods of types Tools and Stdio run")
	case f.namespace == "":
		return errors.New("--namespace is required outside of a pod: the operator's keys live there")
	case f.maxRollouts < 1:
		return errors.New("--max-server-rollouts is at least 1")
	case f.concurrency < 1, f.probeWorkers < 1, f.probeRate <= 0:
		return errors.New("--concurrency, --probe-workers and --probe-rate are at least 1")
	}
	if f.runAsUser != "" {
		if _, err := strconv.ParseInt(f.runAsUser, 10, 64); err != nil {
			return fmt.Errorf("--run-as-user: %w", err)
		}
	}
	return nil
}

func (f *flags) resources() resources.Options {
	out := resources.Options{
		ServerImage: f.serverImage, ImagePullSecrets: f.imagePullSecrets, Mirrors: f.mirrors, PodSecurity: f.podSecurity,
		Operator: resources.Pods{Namespace: f.namespace, Labels: f.operatorLabels},
	}
	if f.runAsUser != "" {
		// check has parsed it before.
		user, _ := strconv.ParseInt(f.runAsUser, 10, 64)
		out.RunAsUser = &user
	}
	return out
}
