// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
)

// hole is the n-th server that takes connections and never answers.
func (s *site) hole(n int) *mcpv1.MCPServer {
	hole := s.server(n)
	hole.Name = fmt.Sprintf("hole-%04d", n)
	hole.Spec.Replicas = ptr.To[int32](1)
	hole.Spec.Container.Port = ptr.To(int32(s.holePort))
	return hole
}

// addHoles listens for what is never answered.
func (s *site) addHoles(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", "0.0.0.0:0")
	if err != nil {
		return err
	}
	s.holePort = listener.Addr().(*net.TCPAddr).Port
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			// It reads until the peer has had enough.
			conns.Go(func() { _, _ = io.Copy(io.Discard, conn); _ = conn.Close() })
		}
	})
	s.closers = append(s.closers, func() error {
		err := listener.Close()
		conns.Wait()
		return err
	})
	return nil
}

// measureHoles puts one black hole beside each ten servers, and sees whether
// the probes of the servers come later for it.
func (s *site) measureHoles(ctx context.Context, o options, m *figures) error {
	m.holes = max(1, s.fleet.servers/10)
	for n := range m.holes {
		if err := s.client().Create(ctx, s.hole(n)); err != nil {
			return err
		}
	}
	if err := s.givenUp(ctx, m.holes); err != nil {
		return err
	}
	if err := s.observe(ctx, &m.beside, func() error { return pause(ctx, o.rest) }); err != nil {
		return err
	}
	if ready := s.watcher.readyCount(); ready != s.fleet.servers {
		return fmt.Errorf("%d of %d servers are Ready beside black holes", ready, s.fleet.servers)
	}
	var errs error
	for n := range m.holes {
		errs = errors.Join(errs, s.client().Delete(ctx, s.hole(n)))
	}
	if errs != nil {
		return errs
	}
	return s.settled(ctx)
}

// givenUp waits until the start-up budget of each black hole is over and its
// status says so. What is written from then on would be too much.
func (s *site) givenUp(ctx context.Context, holes int) error {
	next := 0
	_, err := until(ctx, readyTimeout, "black holes are given up", func() (bool, error) {
		if next == holes {
			return true, nil
		}
		hole := s.hole(next)
		if err := s.client().Get(ctx, client.ObjectKeyFromObject(hole), hole); err != nil {
			return false, err
		}
		if meta.IsStatusConditionTrue(hole.Status.Conditions, mcpv1.ConditionStalled) {
			next++
			return next == holes, nil
		}
		return false, pause(ctx, time.Second)
	})
	if err != nil {
		return err
	}
	return s.settled(ctx)
}

// oldestProof is the age of the oldest proof of the fleet's own servers.
func (o *operator) oldestProof(ctx context.Context) (time.Duration, error) {
	oldest, now := time.Duration(0), time.Now()
	err := o.each(ctx, "espalier_mcpserver_last_proof_timestamp_seconds", func(labels string, value float64) {
		if strings.Contains(labels, `name="server-`) {
			oldest = max(oldest, now.Sub(time.UnixMilli(int64(value*1000))))
		}
	})
	return oldest, err
}
