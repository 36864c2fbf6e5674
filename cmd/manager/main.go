// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Command manager is the operator: it reconciles MCPServers and MCPTools and
// probes what they run.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"runtime/debug"

	"github.com/go-logr/logr"
	"k8s.io/client-go/discovery"
	eventsv1 "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/espalier-dev/espalier/internal/clusterhost"
	"github.com/espalier-dev/espalier/internal/clusterkeys"
	"github.com/espalier-dev/espalier/internal/controller"
	"github.com/espalier-dev/espalier/internal/keys"
	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/memorylimit"
	"github.com/espalier-dev/espalier/internal/metricsgate"
	"github.com/espalier-dev/espalier/internal/prober"
	"github.com/espalier-dev/espalier/internal/recorder"
	"github.com/espalier-dev/espalier/internal/references"
	"github.com/espalier-dev/espalier/internal/refusals"
	"github.com/espalier-dev/espalier/internal/resources"
	"github.com/espalier-dev/espalier/internal/rivals"
	"github.com/espalier-dev/espalier/internal/setup"
	"github.com/espalier-dev/espalier/internal/tracing"
	"github.com/espalier-dev/espalier/internal/tracing/otlp"
	"github.com/espalier-dev/espalier/internal/unprofiled"
	"github.com/espalier-dev/espalier/internal/version"
)

// gcPercent is how much garbage may gather on top of what is in use before it
// is collected. The operator allocates little once its fleet runs, so that a
// quarter of Go's default costs next to no CPU and saves memory in every burst.
const gcPercent = 25

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	f := newFlags(flag.CommandLine)
	zapOptions := zap.Options{}
	zapOptions.BindFlags(flag.CommandLine)
	flag.Parse()
	if f.pprofAddress != "" {
		unprofiled.Not() // Without it nobody can ask for what would be remembered.
	}
	logger := zap.New(zap.UseFlagOptions(&zapOptions))
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	if err := run(ctrl.SetupSignalHandler(), f); err != nil {
		logger.Error(err, "The operator ends")
		os.Exit(1)
	}
}

func run(ctx context.Context, f *flags) error {
	if err := f.check(); err != nil {
		return err
	}
	memorylimit.Follow(ctx, slog.New(logr.ToSlogHandler(ctrl.Log)))
	mgr, err := newManager(f)
	if err != nil {
		return err
	}
	traces := trace(ctx)
	defer traces.Close()
	reconciler, sources, err := wire(ctx, mgr, f, traces.Tracer())
	if err != nil {
		return err
	}
	opts := controller.Options{Concurrency: f.concurrency, Timeout: f.timeout}
	if err := controller.Setup(ctx, mgr, reconciler, sources, opts, metrics.Registry); err != nil {
		return err
	}
	ctrl.Log.Info("Starting the operator", "version", version.Version, "serverImage", f.serverImage)
	return mgr.Start(ctx)
}

func newManager(f *flags) (ctrl.Manager, error) {
	access, err := ctrl.GetConfig()
	if err != nil {
		return nil, err
	}
	access.QPS, access.Burst = float32(f.qps), f.burst
	// Within a cluster compression costs more than it spares.
	access.DisableCompression = true
	access.UserAgent = "espalier/" + version.Version
	// It does without the list of others' Leases, so that this refusal is none.
	lock, err := rivals.New(access, f.namespace, f.namespaces)
	if err != nil {
		return nil, err
	}
	refused := refusals.New(metrics.Registry, ctrl.Log.WithName("rights"))
	refused.Wrap(access)
	scheme := setup.Scheme()
	metricsOptions := metricsserver.Options{BindAddress: f.metricsAddress, SecureServing: f.metricsSecure}
	if f.metricsSecure {
		metricsOptions.FilterProvider = metricsgate.Filter
	}
	mgr, err := ctrl.NewManager(access, ctrl.Options{
		Scheme:                              scheme,
		Cache:                               setup.CacheOptions(f.namespaces),
		Client:                              setup.ClientOptions(scheme),
		Controller:                          config.Controller{CacheSyncTimeout: setup.CacheSyncTimeout},
		Metrics:                             metricsOptions,
		HealthProbeBindAddress:              f.healthAddress,
		PprofBindAddress:                    f.pprofAddress,
		LeaderElection:                      f.leaderElect,
		LeaderElectionID:                    rivals.LeaseName,
		LeaderElectionNamespace:             f.namespace,
		LeaderElectionResourceLockInterface: lock,
		LeaderElectionReleaseOnCancel:       true,
	})
	if err != nil {
		return nil, err
	}
	lock.Record(mgr.GetEventRecorderFor(rivals.LeaseName)) //nolint:staticcheck // Leader election knows the former API of events alone.
	// A second installation by mistake does not become ready, and says why.
	alone := mgr.AddReadyzCheck("alone", func(*http.Request) error { return lock.Check() })
	return mgr, errors.Join(alone, mgr.AddReadyzCheck("rights", refused.Check))
}

// wire makes what the controllers need and adds the Runnables among it.
func wire(ctx context.Context, mgr ctrl.Manager, f *flags, tracer *tracing.Tracer) (*controller.MCPServerReconciler, controller.Sources, error) {
	none := controller.Sources{}
	// The cache has not started, and Secrets are in none.
	direct, err := client.New(mgr.GetConfig(), client.Options{Scheme: mgr.GetScheme()})
	if err != nil {
		return nil, none, err
	}
	own, err := keys.Load(ctx, direct, f.namespace)
	if err != nil {
		return nil, none, err
	}
	signer, err := mcpprobe.NewTokenSigner(own.Probe, nil)
	if err != nil {
		return nil, none, err
	}
	security, err := resources.NewPodSecurity(f.podSecurity)
	if err != nil {
		return nil, none, fmt.Errorf("--pod-security: %w", err)
	}
	probeClient := mcpprobe.New(mcpprobe.Options{
		Policy: mcpprobe.Policy{Deny: f.denyCIDRs}, Version: version.Version, Proxy: clusterhost.Proxy(http.ProxyFromEnvironment),
	})
	probes := prober.New(prober.Options{
		Probe: probeClient.Probe, Drain: probeClient.Close,
		Workers: f.probeWorkers, Rate: f.probeRate, Registerer: metrics.Registry, Tracer: tracer,
	})
	published, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, none, err
	}
	refs := references.New(mgr.GetAPIReader(), own.Digest, clock.RealClock{})
	eventsClient, err := eventsv1.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, none, err
	}
	events := recorder.New(eventsClient, mgr.GetScheme(), "espalier", ctrl.Log.WithName("events"))
	for _, runnable := range []interface {
		Start(context.Context) error
	}{probes, refs, events} {
		if err := mgr.Add(runnable); err != nil {
			return nil, none, err
		}
	}
	if err := addChecks(mgr, probes); err != nil {
		return nil, none, err
	}
	return &controller.MCPServerReconciler{
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Clock: clock.RealClock{},
		Recorder:  events,
		Resources: f.resources(), PodSecurity: security, MaxServerRollouts: f.maxRollouts,
		Prober: probes, References: refs, ClusterKeys: clusterkeys.New(published.RESTClient(), clock.RealClock{}),
		Tokens: signer.Source, TrustedKeys: []string{own.Public()}, Tracer: tracer,
	}, controller.Sources{Probes: probes.Wake(), References: refs.Wake()}, nil
}

// trace has spans sent as OTEL_* says; nil when it does not want them. What
// cannot be understood there is no reason not to work.
func trace(ctx context.Context) *otlp.Provider {
	instance, _ := os.Hostname() // The pod's name. Empty says nothing.
	provider, err := otlp.Start(ctx, otlp.Options{
		Getenv: os.Getenv, Service: "espalier-manager", Version: version.Version, Instance: instance,
		Undelivered: func(cause string) { ctrl.Log.Info("Spans could not be delivered", "cause", cause) },
	})
	switch {
	case err != nil:
		ctrl.Log.Error(err, "Tracing stays off")
	case provider != nil:
		ctrl.Log.Info("Tracing is on")
	}
	return provider
}

// addChecks: alive while the prober keeps up (a prober that lags gives up the
// Lease by being restarted), ready while it serves and nothing that it must read
// is refused.
func addChecks(mgr ctrl.Manager, probes *prober.Prober) error {
	if err := mgr.AddHealthzCheck("prober", probes.Check); err != nil {
		return err
	}
	return mgr.AddReadyzCheck("ping", healthz.Ping)
}
