// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/plugin/env"
	"github.com/espalier-dev/espalier/internal/rivals"
	"github.com/espalier-dev/espalier/internal/setup"
)

// managerLabels are those of the operator's Deployment, by any way to install it.
var managerLabels = client.MatchingLabels{"app.kubernetes.io/name": "espalier", "control-plane": "controller-manager"}

const labelVersion = "app.kubernetes.io/version"

// Looker reads Leases, by the cluster's clock: the user's own may be wrong,
// and a Lease is judged by seconds.
type Looker struct {
	client client.Client
	clock  *clusterClock
}

// NewLooker makes one for the cluster of e.
func NewLooker(e *env.Env) (*Looker, error) {
	config, err := e.REST()
	if err != nil {
		return nil, err
	}
	clock := &clusterClock{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return watchClock{next, clock} })
	c, err := client.New(config, client.Options{Scheme: setup.Scheme()})
	if err != nil {
		return nil, env.ClusterError(err)
	}
	return &Looker{client: c, clock: clock}, nil
}

// Look reads the Leases. Not to be allowed to is no error: the state says it.
func (l *Looker) Look(ctx context.Context) (State, error) {
	var leases coordinationv1.LeaseList
	err := l.client.List(ctx, &leases, client.MatchingFields{"metadata.name": rivals.LeaseName})
	state := State{Leases: leases.Items, Now: l.clock.now()}
	switch {
	case apierrors.IsForbidden(err):
		state.Unknown = "you may not list Leases in all namespaces"
		return state, nil
	case err != nil:
		return state, env.ClusterError(err)
	}
	state.Versions = map[string]string{}
	for i := range state.Leases {
		if v := l.version(ctx, state.Leases[i].Namespace); v != "" {
			state.Versions[state.Leases[i].Namespace] = v
		}
	}
	return state, nil
}

// version of the operator in namespace; empty when it cannot be read, which
// has no consequence but that it is not told.
func (l *Looker) version(ctx context.Context, namespace string) string {
	var list appsv1.DeploymentList
	if err := l.client.List(ctx, &list, client.InNamespace(namespace), managerLabels); err != nil || len(list.Items) != 1 {
		return ""
	}
	return versionOf(&list.Items[0])
}

// versionOf reads a Deployment's label, or the tag of its image.
func versionOf(d *appsv1.Deployment) string {
	if v := d.Labels[labelVersion]; v != "" {
		return v
	}
	for _, c := range d.Spec.Template.Spec.Containers {
		if c.Name != "manager" {
			continue
		}
		image, _, _ := strings.Cut(c.Image, "@")
		if at := strings.LastIndexByte(image, ':'); at > strings.LastIndexByte(image, '/') {
			return image[at+1:]
		}
	}
	return ""
}

// clusterClock is how far the cluster's clock is ahead of this machine's.
type clusterClock struct {
	mu     sync.Mutex
	offset time.Duration
}

func (c *clusterClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.offset)
}

// note takes down the Date of an answer. It counts whole seconds, so that less
// than two are no difference.
func (c *clusterClock) note(date string, now time.Time) {
	at, err := http.ParseTime(date)
	if err != nil {
		return
	}
	offset := at.Sub(now)
	c.mu.Lock()
	defer c.mu.Unlock()
	if offset.Abs() < 2*time.Second {
		offset = 0
	}
	c.offset = offset
}

// watchClock notes the Date of each answer.
type watchClock struct {
	next  http.RoundTripper
	clock *clusterClock
}

// RoundTrip implements http.RoundTripper.
func (w watchClock) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := w.next.RoundTrip(req)
	if err == nil {
		w.clock.note(resp.Header.Get("Date"), time.Now())
	}
	return resp, err
}

// Ahead is how far the cluster's clock is ahead of this machine's.
func (l *Looker) Ahead() time.Duration { return time.Until(l.clock.now()) }
