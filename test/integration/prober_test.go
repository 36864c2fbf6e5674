// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/prober"
)

// fakeProber knows what the test tells it.
type fakeProber struct {
	wake chan event.TypedGenericEvent[prober.Key]

	mu     sync.Mutex
	specs  map[prober.Key]prober.Spec
	passes map[prober.Key]int
	// results by object and target ID, of one identity each.
	results map[prober.Key]map[string]result
	lagging bool
}

type result struct {
	identity string
	verdict  prober.Verdict
	report   *mcpprobe.Report
	at       time.Time
}

func newFakeProber() *fakeProber {
	return &fakeProber{
		wake: make(chan event.TypedGenericEvent[prober.Key], 100), specs: map[prober.Key]prober.Spec{},
		passes: map[prober.Key]int{}, results: map[prober.Key]map[string]result{},
	}
}

// Ensure notes whom the operator wants to be probed: once in each pass.
func (p *fakeProber) Ensure(key prober.Key, spec prober.Spec) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.specs[key] = spec
	p.passes[key]++
}

// Result gives for each wanted target what the test said of its identity.
func (p *fakeProber) Result(key prober.Key) prober.Observation {
	p.mu.Lock()
	defer p.mu.Unlock()
	spec, ok := p.specs[key]
	if !ok {
		return prober.Observation{}
	}
	out := prober.Observation{Known: true, Lagging: p.lagging}
	for _, target := range spec.Targets {
		seen := prober.TargetObservation{ID: target.ID, Name: target.Name, Identity: target.Identity, Verdict: prober.Pending}
		if r, ok := p.results[key][target.ID]; ok && r.identity == target.Identity {
			seen.Verdict, seen.Report, seen.Latest, seen.Pod, seen.LastProbe = r.verdict, r.report, r.report, r.report.Pod, r.at
			seen.EverConnected = r.report.Outcome.Connected(r.report.Step)
		}
		out.Targets = append(out.Targets, seen)
	}
	return out
}

// Forget drops an object.
func (p *fakeProber) Forget(key prober.Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.specs, key)
	delete(p.results, key)
}

// set says what a probe of a target found.
func (p *fakeProber) set(key prober.Key, id string, verdict prober.Verdict, report *mcpprobe.Report) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.results[key] == nil {
		p.results[key] = map[string]result{}
	}
	for _, target := range p.specs[key].Targets {
		if target.ID == id {
			p.results[key][id] = result{target.Identity, verdict, report, time.Now()}
		}
	}
}

// spec that the operator wants for key.
func (p *fakeProber) spec(key prober.Key) (prober.Spec, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	spec, ok := p.specs[key]
	return spec, ok
}

// pass is the number of passes over key so far.
func (p *fakeProber) pass(key prober.Key) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.passes[key]
}

// tell wakes the operator for key.
func (p *fakeProber) tell(key prober.Key) {
	p.wake <- event.TypedGenericEvent[prober.Key]{Object: key}
}

// lag says whether the prober is behind.
func (p *fakeProber) lag(is bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lagging = is
}
