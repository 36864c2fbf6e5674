// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package refusals notes what the API server refuses the operator for want of
// a right. A write that is refused is told by a condition of the object that it
// was for. A list or a watch is for all objects at once and has no condition:
// it is told here, in the log, by a metric and by the operator's readiness,
// until it is allowed.
package refusals

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
)

// Refusals of one operator. It is safe for concurrent use.
type Refusals struct {
	logger logr.Logger
	total  *prometheus.CounterVec
	reads  *prometheus.GaugeVec

	mu sync.Mutex
	// refused are lists and watches whose last answer was a refusal.
	refused map[read]struct{}
}

// read is a list or a watch of a resource. An empty namespace is all of them.
type read struct{ verb, resource, namespace string }

func (r read) String() string {
	if r.namespace == "" {
		return r.verb + " " + r.resource
	}
	return r.verb + " " + r.resource + " in namespace " + r.namespace
}

// New gives a Refusals that tells them to logger and, unless it is nil,
// registerer.
func New(registerer prometheus.Registerer, logger logr.Logger) *Refusals {
	r := &Refusals{
		logger: logger, refused: map[read]struct{}{},
		total: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "espalier_api_refusals_total", Help: "Requests that the API server refused for want of a right, by verb and resource."}, []string{"verb", "resource"}),
		reads: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "espalier_api_read_refused", Help: "1 while the API server refuses a list or watch that the operator cannot work without, 0 after it was allowed; absent where it never was refused. namespace is empty for all."}, []string{"verb", "resource", "namespace"}),
	}
	if registerer != nil {
		registerer.MustRegister(r.total, r.reads)
	}
	return r
}

// Wrap lets r see what is answered to clients that are made of config from now on.
func (r *Refusals) Wrap(config *rest.Config) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &transport{next: next, refusals: r} })
}

// Check fails while a list or watch is refused. It is a readiness check.
func (r *Refusals) Check(*http.Request) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.refused) == 0 {
		return nil
	}
	var names []string
	for what := range maps.Keys(r.refused) {
		names = append(names, what.String())
	}
	slices.Sort(names)
	return fmt.Errorf("the operator may not %s; grant it by its ClusterRole (docs/rbac.md)", strings.Join(names, ", nor "))
}

// deny notes that what was refused, and logs it when it was allowed before.
func (r *Refusals) deny(what read) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.total.WithLabelValues(what.verb, what.resource).Inc()
	if _, known := r.refused[what]; known {
		return
	}
	r.refused[what] = struct{}{}
	r.reads.WithLabelValues(what.verb, what.resource, what.namespace).Set(1)
	r.logger.Error(nil, "The operator may not "+what.String()+", and works without it on what it knew before, if anything; grant it by its ClusterRole (docs/rbac.md)",
		"verb", what.verb, "resource", what.resource, "inNamespace", what.namespace)
}

// allow notes that what was answered.
func (r *Refusals) allow(what read) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.refused[what]; !known {
		return
	}
	delete(r.refused, what)
	r.reads.WithLabelValues(what.verb, what.resource, what.namespace).Set(0)
	r.logger.Info("The operator may "+what.String()+" again", "verb", what.verb, "resource", what.resource, "inNamespace", what.namespace)
}

// any reports whether a list or watch is refused now.
func (r *Refusals) any() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.refused) > 0
}
