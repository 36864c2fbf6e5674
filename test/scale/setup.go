// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/mcpprobe/fakemcp"
	"github.com/espalier-dev/espalier/test/apiserver"
)

const (
	namespace = "scale"
	// image is never pulled: there is no node.
	image = "example.test/mcp:1"
)

// site is one fleet with all that it runs on.
type site struct {
	fleet    fleet
	dir      string
	binary   string
	cluster  *cluster
	operator *operator
	kubelet  *kubelet
	watcher  *watcher
	mcp      *fakemcp.Server
	mcpPort  int
	holePort int
	// profiled: profiles of the operator are taken.
	profiled bool

	// closers in the order of what they close.
	closers []func() error
}

// build starts a cluster, the MCP server and the operator, and no MCPServers.
// The caller closes the site, also after an error.
func build(ctx context.Context, o options, f fleet, dir, binary string) (*site, error) {
	s := &site{fleet: f, dir: filepath.Join(dir, f.String()), binary: binary, profiled: o.profiles != ""}
	for _, step := range []func(context.Context) error{s.addCluster, s.addMCP, s.addHoles, s.addWatches, s.addOperator} {
		if err := step(ctx); err != nil {
			return s, err
		}
	}
	return s, nil
}

func (s *site) close() error {
	var errs error
	for i := len(s.closers) - 1; i >= 0; i-- {
		errs = errors.Join(errs, s.closers[i]())
	}
	return errs
}

func (s *site) client() client.Client { return s.cluster.api.Client }

func (s *site) addCluster(ctx context.Context) error {
	if err := os.Mkdir(s.dir, 0o700); err != nil {
		return err
	}
	var err error
	if s.cluster, err = startCluster(ctx, s.dir); err != nil {
		return err
	}
	s.closers = append(s.closers, s.cluster.stop)
	return s.client().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
}

// addMCP serves MCP on all addresses of pods.
func (s *site) addMCP(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", "0.0.0.0:0")
	if err != nil {
		return err
	}
	s.mcp, s.mcpPort = fakemcp.New(), listener.Addr().(*net.TCPAddr).Port
	s.mcp.SetTools(10)
	server := &http.Server{Handler: s.mcp, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	s.closers = append(s.closers, func() error {
		err := server.Close()
		if failed := <-served; !errors.Is(failed, http.ErrServerClosed) {
			err = errors.Join(err, failed)
		}
		return err
	})
	return nil
}

// addWatches starts the kubelet and the watcher.
func (s *site) addWatches(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	informers, err := cache.New(s.cluster.api.Config, cache.Options{
		Scheme: apiserver.Scheme(), DefaultTransform: cache.TransformStripManagedFields(),
	})
	if err != nil {
		cancel()
		return err
	}
	var running sync.WaitGroup
	var ended error
	running.Go(func() { ended = informers.Start(ctx) })
	s.closers = append(s.closers, func() error {
		cancel()
		running.Wait()
		return ended
	})
	kubelet, done, err := startKubelet(ctx, s.client(), informers)
	if err != nil {
		return err
	}
	running.Go(done)
	s.kubelet = kubelet
	s.watcher, err = startWatcher(ctx, informers)
	return err
}

func (s *site) addOperator(ctx context.Context) error {
	s.closers = append(s.closers, s.stopOperator)
	return s.startOperator(ctx)
}

func (s *site) startOperator(ctx context.Context) error {
	var err error
	if s.operator, err = startOperator(ctx, s.dir, s.binary, s.cluster, s.profiled); err != nil {
		return err
	}
	_, err = until(ctx, time.Minute, "the operator starts", func() (bool, error) {
		return s.operator.started(ctx), s.operator.alive()
	})
	return err
}

func (s *site) stopOperator() error {
	if s.operator == nil {
		return nil
	}
	return s.operator.stop()
}

// serverName is the name of the n-th server, from 0.
func serverName(n int) string { return fmt.Sprintf("server-%04d", n) }

// createWorkers are how many servers are created at once.
const createWorkers = 8

// createServers creates the fleet.
func (s *site) createServers(ctx context.Context) error {
	numbers := make(chan int)
	errs := make(chan error, createWorkers)
	for range createWorkers {
		go func() {
			var err error
			for n := range numbers {
				err = errors.Join(err, s.client().Create(ctx, s.server(n)))
			}
			errs <- err
		}()
	}
	for n := range s.fleet.servers {
		numbers <- n
	}
	close(numbers)
	var all error
	for range createWorkers {
		all = errors.Join(all, <-errs)
	}
	return all
}

func (s *site) server(n int) *mcpv1.MCPServer {
	return &mcpv1.MCPServer{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: serverName(n)},
		Spec: mcpv1.MCPServerSpec{
			Type:      mcpv1.TypeContainer,
			Container: &mcpv1.ContainerSource{Image: image, Port: ptr.To(int32(s.mcpPort))},
			Replicas:  ptr.To(int32(s.fleet.replicas)),
		},
	}
}
