// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/test/e2e/harness"
)

const (
	// lieAfter: interval + failureThreshold x timeout + 6 s by default, and
	// 20 s for a machine that has much to do.
	lieAfter = (30 + 3*10 + 6 + 20) * time.Second
	// askEvery and askFor: how the test itself finds out whether a server
	// lives. One that answers within askFor does.
	askEvery = 2 * time.Second
	askFor   = 5 * time.Second
)

// truth compares what status says with what the test itself sees.
type truth struct {
	ns    *harness.Namespace
	names []string

	mu sync.Mutex
	// dead is since when a server has not answered.
	dead map[string]time.Time
	// operator is when the operator's present pod started; zero while there
	// is none. away is how long the API server was away, with the time.
	operator time.Time
	away     []absence
	// suspects are samples that were lies, unless the server lived again
	// already: the next look at it says so.
	suspects map[string]suspect
	lies     map[string]string
	samples  int
}

type suspect struct {
	at   time.Time
	text string
}

type absence struct{ from, to time.Time }

// watchTruth begins; the function that it gives ends it.
func watchTruth(ctx context.Context, ns *harness.Namespace, names []string) func() (lies []string, samples int) {
	t := &truth{ns: ns, names: names, dead: map[string]time.Time{}, suspects: map[string]suspect{}, lies: map[string]string{}}
	ctx, cancel := context.WithCancel(ctx)
	DeferCleanup(cancel)
	var running sync.WaitGroup
	for _, name := range names {
		running.Go(func() { t.ask(ctx, name) })
	}
	running.Go(func() { t.sample(ctx) })
	return func() ([]string, int) {
		cancel()
		running.Wait()
		var lies []string
		for _, lie := range t.lies {
			lies = append(lies, lie)
		}
		return lies, t.samples
	}
}

// ask finds out whether a server lives, from its pods as they were seen last.
func (t *truth) ask(ctx context.Context, name string) {
	var pods corev1.PodList
	for ctx.Err() == nil {
		var fresh corev1.PodList
		if t.ns.Client.List(ctx, &fresh, client.InNamespace(t.ns.Name), client.MatchingLabels{v1alpha1.LabelServer: name}) == nil {
			pods = fresh
		}
		alive, began := false, time.Now()
		for i := range pods.Items {
			alive = alive || t.answers(ctx, &pods.Items[i], name)
		}
		t.mu.Lock()
		if since := t.dead[name]; alive {
			delete(t.dead, name)
			delete(t.suspects, name)
		} else if since.IsZero() {
			t.dead[name] = time.Now()
		}
		if s, ok := t.suspects[name]; ok && began.After(s.at) {
			t.lies[name] = s.text
			delete(t.suspects, name)
		}
		t.mu.Unlock()
		sleep(ctx, askEvery)
	}
}

func (t *truth) answers(ctx context.Context, pod *corev1.Pod, name string) bool {
	if pod.Status.PodIP == "" {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	_, err := harness.PodPeer(pod, t.ns.Host(name)).Tools(ctx)
	return err == nil
}

// sample looks at all statuses once a second.
func (t *truth) sample(ctx context.Context) {
	for ; ctx.Err() == nil; sleep(ctx, time.Second) {
		began := time.Now()
		listing, cancel := context.WithTimeout(ctx, askFor)
		var servers v1alpha1.MCPServerList
		err := t.ns.Client.List(listing, &servers, client.InNamespace(t.ns.Name))
		var operators corev1.PodList
		if err == nil {
			err = t.ns.Client.List(listing, &operators, client.InNamespace(harness.OperatorNamespace))
		}
		cancel()
		if err != nil {
			sleep(ctx, 200*time.Millisecond)
			t.note(absence{began, time.Now()})
			continue
		}
		t.judge(servers.Items, startOf(operators.Items))
	}
}

func (t *truth) note(a absence) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.away); n > 0 && a.from.Sub(t.away[n-1].to) < 2*time.Second {
		t.away[n-1].to = a.to
		return
	}
	t.away = append(t.away, a)
}

// startOf is when the operator's container that runs started; zero for none.
func startOf(pods []corev1.Pod) time.Time {
	for _, pod := range pods {
		for _, c := range pod.Status.ContainerStatuses {
			if pod.DeletionTimestamp == nil && c.State.Running != nil {
				return c.State.Running.StartedAt.Time
			}
		}
	}
	return time.Time{}
}

func (t *truth) judge(servers []v1alpha1.MCPServer, operator time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.samples++
	t.operator = operator
	now := time.Now()
	for i := range servers {
		ready := harness.Condition(&servers[i], v1alpha1.ConditionReady)
		since, dead := t.dead[servers[i].Name]
		if !dead || operator.IsZero() || ready == nil || ready.Status != metav1.ConditionTrue {
			continue
		}
		if operator.After(since) {
			since = operator
		}
		lasted := now.Sub(since)
		for _, a := range t.away {
			if a.to.After(since) {
				lasted -= a.to.Sub(later(a.from, since))
			}
		}
		if _, known := t.suspects[servers[i].Name]; lasted > lieAfter && !known {
			t.suspects[servers[i].Name] = suspect{now, fmt.Sprintf("%s at %s: Ready %s for %s", servers[i].Name, now.Format(time.TimeOnly), ready.Reason, lasted.Round(time.Second))}
		}
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
