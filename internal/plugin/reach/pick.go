// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"cmp"
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/podstate"
	"github.com/espalier-dev/espalier/internal/resources"
)

// again is how soon a replica that could not be reached is tried again when
// nothing else happens.
const again = time.Second

// picker dials a replica that is ready: the one that it dialled last while that
// is, since a session may be at home there.
type picker struct {
	*cluster
	server *mcpv1.MCPServer

	mu   sync.Mutex
	last string
}

// dial tries what is ready, and waits for more while there is time.
func (p *picker) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	var failure error
	for {
		pods, err := p.pods(ctx, p.server)
		if err != nil {
			return nil, cmp.Or(failure, err)
		}
		for _, name := range p.order(pods) {
			conn, err := p.forward(ctx, p.server.Namespace, name, resources.ContainerPort(p.server))
			if err == nil {
				p.keep(name)
				return conn, nil
			}
			if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
				return nil, err
			}
			if ctx.Err() == nil {
				failure = err
			}
		}
		if err := p.await(ctx, pods.ResourceVersion); err != nil {
			return nil, cmp.Or(failure, p.late(pods, err))
		}
	}
}

// late is what is said when the time is over.
func (p *picker) late(pods *corev1.PodList, err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	return noReplica(p.server, len(pods.Items))
}

// order of the ready pods: the last one first, then by name.
func (p *picker) order(pods *corev1.PodList) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var names []string
	for i := range pods.Items {
		if podstate.TakesTraffic(&pods.Items[i]) {
			names = append(names, pods.Items[i].Name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		switch p.last {
		case a:
			return -1
		case b:
			return 1
		}
		return cmp.Compare(a, b)
	})
	return names
}

func (p *picker) keep(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = name
}

// await returns when the pods may have changed since version, or after a
// while; its error is that of ctx.
func (p *picker) await(ctx context.Context, version string) error {
	timer := time.NewTimer(again)
	defer timer.Stop()
	var events <-chan struct{}
	watch, err := p.client.Watch(ctx, &corev1.PodList{}, client.InNamespace(p.server.Namespace),
		client.MatchingLabels(resources.Selector(p.server)), &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: version}})
	if err == nil {
		defer watch.Stop()
		changed := make(chan struct{}, 1)
		events = changed
		go func() {
			for range watch.ResultChan() {
				select {
				case changed <- struct{}{}:
				default:
				}
			}
		}()
	}
	select {
	case <-events:
	case <-timer.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}
