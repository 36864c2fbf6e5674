// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/tracing"
)

// Options of a Prober. The zero value of each but Probe has a default.
type Options struct {
	// Probe makes one exchange; mcpprobe.Client.Probe.
	Probe func(context.Context, mcpprobe.Target) mcpprobe.Report
	// Drain is called once when Start ends, after the last probe returned;
	// mcpprobe.Client.Close.
	Drain func()
	// Workers is how many probes run at once that have not proved slow; 32.
	Workers int
	// SlowWorkers is how many slow probes run at once; 256.
	SlowWorkers int
	// Rate of probe starts per second; 300. Polls of reports have the same
	// again for themselves.
	Rate float64
	// Clock; the real one when nil.
	Clock clock.WithTicker
	// Jitter gives numbers in [0, 1).
	Jitter func() float64
	// Registerer of the metrics; nil for none.
	Registerer prometheus.Registerer
	// Tracer makes a span of each probe; nil makes none.
	Tracer *tracing.Tracer
}

// Prober is a leader-only Runnable. Ensure, Result and Forget are cheap, safe
// for concurrent use, and may be called before Start.
type Prober struct {
	opts    Options
	clock   clock.WithTicker
	metrics *metrics
	wake    *wakeups
	kick    chan struct{}
	running sync.WaitGroup

	mu      sync.Mutex
	objects map[Key]*object
	lanes   [laneCount]*lane
	beat    time.Time // of the scheduling loop; zero when not started
}

// object is one ensured object.
type object struct {
	key     Key
	spec    Spec
	targets map[string]*target
	lagging bool
}

// New makes a Prober. It panics without Options.Probe.
func New(opts Options) *Prober {
	if opts.Probe == nil {
		panic("prober: Options.Probe is missing")
	}
	opts.Workers = cmp.Or(opts.Workers, 32)
	opts.SlowWorkers = cmp.Or(opts.SlowWorkers, 256)
	opts.Rate = cmp.Or(opts.Rate, 300)
	if opts.Clock == nil {
		opts.Clock = clock.RealClock{}
	}
	if opts.Jitter == nil {
		opts.Jitter = rand.Float64
	}
	p := &Prober{
		opts:    opts,
		clock:   opts.Clock,
		wake:    newWakeups(),
		kick:    make(chan struct{}, 1),
		objects: map[Key]*object{},
	}
	p.lanes[laneMain] = newLane(opts.Workers, opts.Rate)
	p.lanes[laneSlow] = newLane(opts.SlowWorkers, opts.Rate)
	p.lanes[laneReport] = newLane(opts.Workers, opts.Rate)
	p.metrics = newMetrics(opts.Registerer, p)
	return p
}

// Ensure says what should be probed for key. It is cheap when nothing
// changed. Targets that are no longer named are forgotten, and their probes
// cancelled.
func (p *Prober) Ensure(key Key, spec Spec) {
	spec.Interval = max(spec.Interval, time.Second)
	spec.FailureThreshold = max(spec.FailureThreshold, 1)
	if spec.Timeout <= 0 {
		spec.Timeout = mcpprobe.DefaultTimeout
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	o := p.objects[key]
	if o == nil {
		o = &object{key: key, targets: map[string]*target{}}
		p.objects[key] = o
	}
	changed := p.ensureTargets(o, spec, now)
	o.spec = spec
	if changed {
		p.nudge()
	}
}

// ensureTargets brings o's targets in line with spec.
func (p *Prober) ensureTargets(o *object, spec Spec, now time.Time) (changed bool) {
	wanted := make(map[string]bool, len(spec.Targets))
	for _, want := range spec.Targets {
		if wanted[want.ID] {
			continue // IDs are distinct; two of one would replace each other for ever
		}
		wanted[want.ID] = true
		t := o.targets[want.ID]
		if t != nil && t.spec.Identity != want.Identity {
			p.drop(o, t)
			t = nil
		}
		if t == nil {
			t = newTarget(o.key, want, now)
			o.targets[want.ID] = t
			p.schedule(t)
			changed = true
			continue
		}
		shorter := spec.Interval < o.spec.Interval && t.fullDue.After(now.Add(spec.Interval))
		if shorter {
			t.fullDue = now.Add(spec.Interval)
		}
		poll := t.setSpec(want, now)
		if shorter || poll {
			p.schedule(t)
			changed = true
		}
	}
	for id, t := range o.targets {
		if !wanted[id] {
			p.drop(o, t)
			changed = true
		}
	}
	return changed
}

// drop forgets t and cancels its probe.
func (p *Prober) drop(o *object, t *target) {
	t.dropped = true
	if t.cancel != nil {
		t.cancel()
	}
	p.unschedule(t)
	delete(o.targets, t.spec.ID)
}

// Result is what is known of key's targets now.
func (p *Prober) Result(key Key) Observation {
	p.mu.Lock()
	defer p.mu.Unlock()
	o := p.objects[key]
	if o == nil {
		return Observation{}
	}
	now := p.clock.Now()
	obs := Observation{Known: true, Targets: make([]TargetObservation, 0, len(o.targets))}
	for _, t := range o.targets {
		seen := t.observe(o.spec, now)
		obs.Lagging = obs.Lagging || seen.Lagging
		obs.Targets = append(obs.Targets, seen)
	}
	slices.SortFunc(obs.Targets, func(a, b TargetObservation) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	return obs
}

// Forget drops key: its probes are cancelled, its metric series vanish.
func (p *Prober) Forget(key Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	o := p.objects[key]
	if o == nil {
		return
	}
	for _, t := range o.targets {
		p.drop(o, t)
	}
	delete(p.objects, key)
	p.wake.forget(key)
}

// Wake tells of objects whose facts changed. One reader; an object that
// changes again before it was read is told once. It never holds up a probe.
func (p *Prober) Wake() <-chan event.TypedGenericEvent[Key] { return p.wake.out }

// NeedLeaderElection makes a manager start the prober on the leader only.
func (p *Prober) NeedLeaderElection() bool { return true }

// Start probes until ctx ends, then cancels what runs and waits for it.
func (p *Prober) Start(ctx context.Context) error {
	forwarded := make(chan struct{})
	go func() {
		defer close(forwarded)
		p.wake.forward(ctx)
	}()
	p.loop(ctx)
	p.running.Wait()
	if p.opts.Drain != nil {
		p.opts.Drain()
	}
	<-forwarded
	return nil
}

// Lag is by how much the most overdue probe of a target that is not slow is
// late; 0 when none is, or when the prober was not started.
func (p *Prober) Lag() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	lag, _ := p.lag(p.clock.Now())
	return lag
}

// lag gives the largest lag, absolute, and in intervals of its target for
// those that were probed before: a fleet that is seen for the first time takes
// its time, and nothing said of it can be stale.
func (p *Prober) lag(now time.Time) (lag time.Duration, intervals float64) {
	if p.beat.IsZero() {
		return 0, 0
	}
	for _, t := range p.lanes[laneMain].queue {
		late := now.Sub(t.fullDue)
		if late <= 0 {
			continue
		}
		lag = max(lag, late)
		if o := p.objects[t.key]; o != nil && !t.lastProbe.IsZero() {
			intervals = max(intervals, float64(late)/float64(o.spec.Interval))
		}
	}
	return lag, intervals
}

// maxBeat is the age of the scheduling loop's last round at which the prober
// counts as stuck. A round is due each scanPeriod.
const maxBeat = 30 * time.Second

// Check is a health check: it fails when the prober lags two intervals behind
// or its loop is stuck. Before Start (on a replica that does not lead) it passes.
func (p *Prober) Check(*http.Request) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.beat.IsZero() {
		return nil
	}
	now := p.clock.Now()
	if now.Sub(p.beat) > maxBeat {
		return errors.New("the prober's loop is stuck")
	}
	if lag, intervals := p.lag(now); intervals > lagIntervals {
		return fmt.Errorf("probes lag %s behind", lag.Round(time.Second))
	}
	return nil
}

// nudge makes the loop look again.
func (p *Prober) nudge() {
	select {
	case p.kick <- struct{}{}:
	default:
	}
}
