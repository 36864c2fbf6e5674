// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/mcpprobe/fakemcp"
)

const (
	// readyTimeout is ample for the largest fleet on a slow machine.
	readyTimeout = 15 * time.Minute
	// quiet is for how long no write must be seen before the fleet counts as
	// settled.
	quiet = 10 * time.Second
	// followTimeout is far longer than what internal/prober promises for a server
	// that fails (interval, threshold x timeout and 6 s): here all fail at once.
	followTimeout = 10 * time.Minute
	// repairs is how many Deployments are deleted, one after the other.
	repairs = 5
)

// period is what the operator did in some time.
type period struct {
	took   time.Duration
	writes writes
	cpu    time.Duration
	probes float64
	// lag is the largest that was seen, in seconds; oldest the age of the
	// oldest proof of a server that was seen.
	lag    float64
	oldest time.Duration
}

// figures of one fleet.
type figures struct {
	fleet fleet
	// ready is the time from the first MCPServer until all were Ready.
	ready time.Duration
	// starting lasts until nothing is written any more.
	starting, rest, restart period
	// beside is like rest, with so many black holes beside the fleet.
	holes  int
	beside period
	// settle is the time from the restart until all pods were proved again.
	settle time.Duration
	// memory before the restart and after it.
	memory, restartMemory resident
	// repair is the longest time until a deleted Deployment was back.
	repair time.Duration
	// unready is the time from pods that are not ready to a Ready that says so;
	// down and up from the endpoints that answer 503, or do again, to the last
	// Ready that says so.
	unready, down, up time.Duration
}

// measure goes through all phases with one fleet.
func measure(ctx context.Context, o options, f fleet, dir, binary string) (_ *figures, err error) {
	s, err := build(ctx, o, f, dir, binary)
	defer func() {
		if err = errors.Join(err, s.close()); err != nil {
			fmt.Fprintln(os.Stderr, "log of the operator:", tail(s.dir+"/operator.log"))
		}
	}()
	if err != nil {
		return nil, err
	}
	m := &figures{fleet: f}
	for _, phase := range []struct {
		name    string
		measure func(context.Context, options, *figures) error
	}{
		{"start", s.measureStart}, {"rest", s.measureRest}, {"black holes", s.measureHoles}, {"restart", s.measureRestart},
		{"repair", s.measureRepair}, {"pods that are not ready", s.measureUnready}, {"503", s.measure503},
	} {
		began := time.Now()
		if err := phase.measure(ctx, o, m); err != nil {
			return m, fmt.Errorf("%s: %w", phase.name, err)
		}
		fmt.Fprintf(os.Stderr, "%s: %s took %s\n", f, phase.name, time.Since(began).Round(time.Second))
	}
	return m, nil
}

// observe fills p with what happens until do returns.
func (s *site) observe(ctx context.Context, p *period, do func() error) error {
	before, err := s.reading(ctx)
	if err != nil {
		return err
	}
	watching, cancel := context.WithCancel(ctx)
	sampled := make(chan struct{})
	go func() {
		defer close(sampled)
		s.sample(watching, p)
	}()
	began := time.Now()
	err = do()
	p.took = time.Since(began)
	cancel()
	<-sampled
	if err != nil {
		return err
	}
	after, err := s.reading(ctx)
	if err != nil {
		return err
	}
	p.writes, p.cpu, p.probes = after.writes.since(before.writes), after.cpu-before.cpu, after.probes-before.probes
	return nil
}

// reading is the state of the counters.
type reading struct {
	writes writes
	cpu    time.Duration
	probes float64
}

func (s *site) reading(ctx context.Context) (reading, error) {
	w, err := s.cluster.audit.read()
	if err != nil {
		return reading{}, err
	}
	cpu, err := s.operator.cpu()
	if err != nil {
		return reading{}, err
	}
	probes, err := s.operator.sum(ctx, "espalier_probes_total", "")
	return reading{w, cpu, probes}, err
}

// sampling is how often the operator's metrics are read. Each reading costs the
// operator what a scrape costs: more often, and they would be a good part of
// what is measured.
const sampling = 5 * time.Second

// sample looks now and then at how late probes are.
func (s *site) sample(ctx context.Context, p *period) {
	ticker := time.NewTicker(sampling)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if lag, err := s.operator.sum(ctx, "espalier_probe_lag_seconds", ""); err == nil {
				p.lag = max(p.lag, lag)
			}
			if oldest, err := s.operator.oldestProof(ctx); err == nil {
				p.oldest = max(p.oldest, oldest)
			}
		}
	}
}

// healthy is an error when somebody has failed whom the figures rest on.
func (s *site) healthy() error {
	return errors.Join(s.operator.alive(), s.cluster.manager.alive(), s.kubelet.failure())
}

func (s *site) allReady() (bool, error) {
	return s.watcher.readyCount() == s.fleet.servers, s.healthy()
}

func (s *site) measureStart(ctx context.Context, o options, m *figures) error {
	profiled := s.operator.saveCPU(ctx, o.profiles, s.fleet.String()+"-start", 20)
	err := s.observe(ctx, &m.starting, func() error {
		began := time.Now()
		if err := s.createServers(ctx); err != nil {
			return err
		}
		_, err := until(ctx, readyTimeout, "all servers are Ready", s.allReady)
		m.ready = time.Since(began)
		if err != nil {
			return fmt.Errorf("%w; %d are", err, s.watcher.readyCount())
		}
		return s.settled(ctx)
	})
	if err != nil {
		return err
	}
	if m.memory, err = s.operator.memory.read(); err != nil {
		return err
	}
	return errors.Join(profiled(), s.operator.save(ctx, o.profiles, s.fleet.String()+"-start"))
}

// settled waits until nothing was written for some time.
func (s *site) settled(ctx context.Context) error {
	last, since := -1, time.Now()
	_, err := until(ctx, readyTimeout, "nothing is written any more", func() (bool, error) {
		w, err := s.cluster.audit.read()
		if n := w.total(); n != last {
			last, since = n, time.Now()
		}
		return time.Since(since) > quiet, err
	})
	return err
}

func (s *site) measureRest(ctx context.Context, o options, m *figures) error {
	profiled := s.operator.saveCPU(ctx, o.profiles, s.fleet.String()+"-rest", int(o.rest.Seconds()))
	err := s.observe(ctx, &m.rest, func() error { return pause(ctx, o.rest) })
	if err != nil {
		return err
	}
	if m.memory, err = s.operator.memory.read(); err != nil {
		return err
	}
	return errors.Join(profiled(), s.operator.save(ctx, o.profiles, s.fleet.String()+"-rest"))
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

func (s *site) measureRestart(ctx context.Context, o options, m *figures) error {
	before, err := s.cluster.audit.read()
	if err != nil {
		return err
	}
	if err := s.operator.stop(); err != nil {
		return err
	}
	began := time.Now()
	if err := s.startOperator(ctx); err != nil {
		return err
	}
	_, err = until(ctx, readyTimeout, "all pods are proved again", func() (bool, error) {
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return false, err
		}
		proved, err := s.operator.sum(ctx, "espalier_mcpserver_probe_targets", `verdict="Proved"`)
		return int(proved) == s.fleet.pods(), err
	})
	m.settle = time.Since(began)
	if err != nil {
		return err
	}
	if err := s.observe(ctx, &m.restart, func() error { return pause(ctx, o.rest) }); err != nil {
		return err
	}
	after, err := s.cluster.audit.read()
	if err != nil {
		return err
	}
	m.restart.writes = after.since(before)
	m.restartMemory, err = s.operator.memory.read()
	return errors.Join(err, s.operator.save(ctx, o.profiles, s.fleet.String()+"-restart"))
}

func (s *site) measureRepair(ctx context.Context, _ options, m *figures) error {
	for n := range min(repairs, s.fleet.servers) {
		name := serverName(n) + "-mcp"
		old := s.watcher.deployment(name)
		deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		if err := s.client().Delete(ctx, deployment, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
			return err
		}
		took, err := until(ctx, time.Minute, "a deleted Deployment is back", func() (bool, error) {
			uid := s.watcher.deployment(name)
			return uid != "" && uid != old, s.healthy()
		})
		if err != nil {
			return err
		}
		m.repair = max(m.repair, took)
	}
	// The pods of the deleted Deployments go, and others come.
	_, err := until(ctx, readyTimeout, "all servers are Ready after repairs", s.allReady)
	return errors.Join(err, s.settled(ctx))
}

// measureUnready lets all pods of one server be not ready, and ready again.
func (s *site) measureUnready(ctx context.Context, _ options, m *figures) error {
	name := serverName(s.fleet.servers - 1)
	var pods corev1.PodList
	err := s.client().List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabels{mcpv1.LabelServer: name})
	if err != nil {
		return err
	}
	become := func(ready bool) error {
		for _, pod := range pods.Items {
			if err := s.kubelet.patch(ctx, client.ObjectKeyFromObject(&pod), podStatus(pod.Status.PodIP, ready)); err != nil {
				return err
			}
		}
		return nil
	}
	if err := become(false); err != nil {
		return err
	}
	m.unready, err = until(ctx, time.Minute, "Ready follows pods that are not ready", func() (bool, error) {
		return !s.watcher.isReady(name), s.healthy()
	})
	if err != nil {
		return err
	}
	if err := become(true); err != nil {
		return err
	}
	_, err = until(ctx, time.Minute, "Ready follows pods that are ready again", s.allReady)
	return err
}

// measure503 lets all endpoints answer 503, and serve again.
func (s *site) measure503(ctx context.Context, _ options, m *figures) (err error) {
	s.mcp.On(fakemcp.Any, func(c *fakemcp.Call) { c.Text(http.StatusServiceUnavailable, "text/plain", "no") })
	m.down, err = until(ctx, followTimeout, "no server is Ready once all answer 503", func() (bool, error) {
		return s.watcher.readyCount() == 0, s.healthy()
	})
	if err != nil {
		return err
	}
	s.mcp.Reset()
	m.up, err = until(ctx, followTimeout, "all servers are Ready once they serve again", s.allReady)
	return err
}
