// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/discovery"
	eventsv1 "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/espalier-dev/espalier/internal/clusterkeys"
	"github.com/espalier-dev/espalier/internal/controller"
	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/prober"
	"github.com/espalier-dev/espalier/internal/recorder"
	"github.com/espalier-dev/espalier/internal/references"
	"github.com/espalier-dev/espalier/internal/refusals"
	"github.com/espalier-dev/espalier/internal/resources"
	"github.com/espalier-dev/espalier/internal/setup"
)

// operator is one running operator with a fake prober.
type operator struct {
	prober *fakeProber
	writes *writes
	log    *safeBuffer
	clock  *shiftedClock
	stop   func()
	// rights are what the API server refused, and metrics where that is counted.
	rights  *refusals.Refusals
	metrics *prometheus.Registry
	// lostEvents is how many events the API server refused.
	lostEvents *atomic.Int64
}

// probeKey is the operator's own, which outlives its restarts.
var probeKey = ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))

// startOperator starts the controllers for one namespace, as access allows.
// It is stopped at the end of the test at the latest.
func startOperator(t *testing.T, access *rest.Config, namespace string, changes ...func(*controller.MCPServerReconciler)) *operator {
	t.Helper()
	fake := newFakeProber()
	o := startOperatorWith(t, access, namespace, fake, fake.wake, changes...)
	o.prober = fake
	return o
}

// startOperatorWith starts the controllers with any prober, and waits for their
// caches. A prober that is a Runnable is started as well.
func startOperatorWith(t *testing.T, access *rest.Config, namespace string, probes controller.Prober, wake <-chan event.TypedGenericEvent[prober.Key], changes ...func(*controller.MCPServerReconciler)) *operator {
	t.Helper()
	o, caches := launchOperator(t, access, namespace, probes, wake, changes...)
	if !caches.WaitForCacheSync(t.Context()) {
		t.Fatal("the caches did not fill")
	}
	return o
}

// launchOperator starts them without waiting for the caches that it gives.
func launchOperator(t *testing.T, access *rest.Config, namespace string, probes controller.Prober, wake <-chan event.TypedGenericEvent[prober.Key], changes ...func(*controller.MCPServerReconciler)) (*operator, cache.Cache) {
	t.Helper()
	o := &operator{writes: &writes{}, log: &safeBuffer{}, clock: &shiftedClock{Clock: clock.RealClock{}}, metrics: prometheus.NewRegistry(), lostEvents: &atomic.Int64{}}
	o.rights = refusals.New(o.metrics, o.logger())
	access = rest.CopyConfig(access)
	access.QPS, access.Burst = 1000, 1000
	o.rights.Wrap(access)
	access.Wrap(o.countLostEvents)
	scheme := setup.Scheme()
	mgr, err := ctrl.NewManager(access, ctrl.Options{
		Scheme: scheme, Cache: setup.CacheOptions([]string{namespace}), Client: setup.ClientOptions(scheme),
		Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Logger:     o.logger(),
		Controller: config.Controller{SkipNameValidation: ptr.To(true), CacheSyncTimeout: setup.CacheSyncTimeout},
		NewClient: func(c *rest.Config, options client.Options) (client.Client, error) {
			inner, err := client.NewWithWatch(c, options)
			if err != nil {
				return nil, err
			}
			return interceptor.NewClient(inner, o.writes.funcs()), nil
		},
	})
	must(t, err)
	security, err := resources.NewPodSecurity("restricted")
	must(t, err)
	// The polls of references run fifty times as fast as the clock on the wall.
	fast := testclock.NewFakeClock(time.Now())
	refs := references.New(mgr.GetAPIReader(), func(v []byte) string { return "digest of " + string(v) }, fast)
	must(t, mgr.Add(refs))
	signer, err := mcpprobe.NewTokenSigner(probeKey, nil)
	must(t, err)
	published, err := discovery.NewDiscoveryClientForConfigAndClient(access, mgr.GetHTTPClient())
	must(t, err)
	if runnable, ok := probes.(manager.Runnable); ok {
		must(t, mgr.Add(runnable))
	}
	eventsClient, err := eventsv1.NewForConfigAndClient(access, mgr.GetHTTPClient())
	must(t, err)
	events := recorder.New(eventsClient, scheme, "espalier", o.logger())
	must(t, mgr.Add(events))
	reconciler := &controller.MCPServerReconciler{
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Clock: o.clock,
		Recorder: events,
		Resources: resources.Options{
			ServerImage: "ghcr.io/espalier-dev/server:test", RunAsUser: ptr.To(resources.DefaultRunAsUser), PodSecurity: "restricted",
			Operator: resources.Pods{Namespace: "espalier-system", Labels: map[string]string{"control-plane": "controller-manager"}},
		},
		PodSecurity: security, Prober: probes, References: refs,
		Tokens: signer.Source, TrustedKeys: []string{base64.StdEncoding.EncodeToString(probeKey[ed25519.SeedSize:])},
		ClusterKeys: clusterkeys.New(published.RESTClient(), o.clock),
	}
	for _, change := range changes {
		change(reconciler)
	}
	ctx, cancel := context.WithCancel(context.Background())
	sources := controller.Sources{Probes: wake, References: refs.Wake()}
	options := controller.Options{Concurrency: 2, Timeout: time.Minute}
	must(t, controller.Setup(ctx, mgr, reconciler, sources, options, o.metrics))

	var running sync.WaitGroup
	running.Go(func() {
		if err := mgr.Start(ctx); err != nil {
			t.Errorf("manager: %v", err)
		}
	})
	running.Go(func() { hurry(ctx, fast) })
	o.stop = func() {
		cancel()
		running.Wait()
	}
	t.Cleanup(func() {
		o.stop()
		if t.Failed() {
			t.Logf("log of the operator of %s:\n%s", namespace, o.log.String())
		}
	})
	return o, mgr.GetCache()
}

// roundTripper is a function that is one.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func (o *operator) countLostEvents(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(req)
		if err == nil && resp.StatusCode == http.StatusForbidden && strings.HasSuffix(req.URL.Path, "/events") {
			o.lostEvents.Add(1)
		}
		return resp, err
	})
}

func (o *operator) logger() logr.Logger {
	return zap.New(zap.WriteTo(o.log), zap.UseDevMode(true))
}

// hurry lets a second pass on c every 20 ms.
func hurry(ctx context.Context, c *testclock.FakeClock) {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			c.Step(time.Second)
		}
	}
}

// shiftedClock can be put forward.
type shiftedClock struct {
	clock.Clock
	mu    sync.Mutex
	shift time.Duration
}

func (c *shiftedClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.Clock.Now().Add(c.shift)
}

func (c *shiftedClock) forward(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shift += d
}

// safeBuffer is written by many.
type safeBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
