// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/espalier-dev/espalier/internal/mcp"
)

// Stream is an open subscriptions/listen stream.
type Stream struct {
	cancel  context.CancelFunc
	changes atomic.Int64
	ended   atomic.Bool

	mu   sync.Mutex
	last time.Time
	err  error
}

// Listen opens a stream that asks for changes of the list of tools, and
// returns when the server has acknowledged it.
func (p *Peer) Listen(ctx context.Context) *Stream {
	GinkgoHelper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	DeferCleanup(cancel)
	s := &Stream{cancel: cancel}
	resp, err := p.send(ctx, mcp.MethodSubscriptionsListen, "",
		map[string]any{"notifications": map[string]any{"toolsListChanged": true}})
	Expect(err).NotTo(HaveOccurred())
	Expect(resp.StatusCode).To(Equal(200), "subscriptions/listen of %s", p.Name)
	acknowledged := make(chan struct{})
	go func() {
		defer resp.Body.Close()
		err := events(resp.Body, func(m *message) bool {
			s.heard(m, acknowledged)
			return true
		})
		s.mu.Lock()
		s.err = err
		s.mu.Unlock()
		s.ended.Store(true)
	}()
	Eventually(ctx, acknowledged).WithTimeout(CallTimeout).Should(BeClosed(), "acknowledgement of subscriptions/listen")
	return s
}

func (s *Stream) heard(m *message, acknowledged chan struct{}) {
	switch m.Method {
	case mcp.NotificationAcknowledged:
		close(acknowledged)
	case mcp.NotificationToolsChanged:
		s.changes.Add(1)
		s.mu.Lock()
		s.last = time.Now()
		s.mu.Unlock()
	}
}

// Changes is how many list changes the stream told of.
func (s *Stream) Changes() int64 { return s.changes.Load() }

// Alive reports whether the stream is still open.
func (s *Stream) Alive() bool { return !s.ended.Load() }

// Close ends the stream.
func (s *Stream) Close() { s.cancel() }
