// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
)

const (
	// loadPause is between two calls of one server.
	loadPause = 100 * time.Millisecond
	// maxFailures that are kept.
	maxFailures = 20
)

// fresh makes a connection for each call, so that each takes the way that the
// Service gives at its moment.
var fresh = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// Load calls a tool of its server's name of each of some servers all the time,
// through their Services.
type Load struct {
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu       sync.Mutex
	calls    int
	failures []string
}

// StartLoad begins to call.
func (n *Namespace) StartLoad(ctx context.Context, servers []string) *Load {
	GinkgoHelper()
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	l := &Load{cancel: cancel}
	for _, server := range servers {
		peer := n.ServicePeer(ctx, server)
		peer.Client = fresh
		l.done.Go(func() { l.call(running, peer, server) })
	}
	return l
}

func (l *Load) call(ctx context.Context, peer *Peer, server string) {
	ticker := time.NewTicker(loadPause)
	defer ticker.Stop()
	for {
		answer, err := peer.Call(ctx, server, nil)
		if ctx.Err() != nil {
			return
		}
		if err == nil && (answer.IsError || answer.Text() != "x") {
			err = fmt.Errorf("it answers %q, an error: %t", answer.Text(), answer.IsError)
		}
		l.note(server, err)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (l *Load) note(server string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls++
	if err != nil && len(l.failures) < maxFailures {
		l.failures = append(l.failures, fmt.Sprintf("%s %s: %v", time.Now().Format(time.TimeOnly), server, err))
	}
}

// Failures are the calls that failed so far, the first of them.
func (l *Load) Failures() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.failures...)
}

// Stop ends the calls and says how many there were.
func (l *Load) Stop() int {
	l.cancel()
	l.done.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls
}
