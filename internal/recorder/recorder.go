// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package recorder writes events. It is client-go's recorder but for two
// answers, which that one logs as errors with the whole event and a stack trace,
// each time: an event about what goes with its namespace is nobody's loss, and
// a right that lacks is told once, until it is there again.
package recorder

import (
	"context"
	"sync"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	typedeventsv1 "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
)

// Recorder records events. It is a Runnable: what is recorded before Start is
// lost.
type Recorder struct {
	events.EventRecorder
	broadcaster events.EventBroadcaster
	logger      logr.Logger
}

// New gives a Recorder that reports as controller.
func New(client typedeventsv1.EventsV1Interface, scheme *runtime.Scheme, controller string, logger logr.Logger) *Recorder {
	broadcaster := events.NewBroadcaster(&sink{EventSink: &events.EventSinkImpl{Interface: client}, logger: logger})
	return &Recorder{EventRecorder: broadcaster.NewRecorder(scheme, controller), broadcaster: broadcaster, logger: logger}
}

// Start writes events until ctx ends, and begins to write what is queued then.
func (r *Recorder) Start(ctx context.Context) error {
	// Requests of the last events are not cut off by the end that they tell of.
	sinking, stop := context.WithCancel(klog.NewContext(context.WithoutCancel(ctx), r.logger))
	defer stop()
	if err := r.broadcaster.StartRecordingToSinkWithContext(sinking); err != nil {
		return err
	}
	stopLogging, err := r.broadcaster.StartLogging(r.logger.V(1))
	if err != nil {
		return err
	}
	defer stopLogging()
	<-ctx.Done()
	r.broadcaster.Shutdown()
	return nil
}

// NeedLeaderElection makes a manager start it before what records.
func (r *Recorder) NeedLeaderElection() bool { return false }

// sink drops and tells what the API server refuses.
type sink struct {
	events.EventSink
	logger logr.Logger

	mu sync.Mutex
	// refused are verbs that lack.
	refused map[string]bool
}

// Create creates an event.
func (s *sink) Create(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	created, err := s.EventSink.Create(ctx, event)
	return s.judge("create", event, created, err)
}

// Patch tells that an event happened again.
func (s *sink) Patch(ctx context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
	patched, err := s.EventSink.Patch(ctx, event, data)
	return s.judge("patch", event, patched, err)
}

func (s *sink) judge(verb string, sent, written *eventsv1.Event, err error) (*eventsv1.Event, error) {
	switch {
	case err == nil:
		s.tell(verb, false)
		return written, nil
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause), verb == "create" && apierrors.IsNotFound(err):
		// The namespace goes or is gone, and its events with it.
		return sent, nil
	case apierrors.IsForbidden(err):
		s.tell(verb, true)
		return sent, nil
	}
	return written, err
}

// tell logs that a verb is refused, or allowed again, when that is news.
func (s *sink) tell(verb string, refused bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refused[verb] == refused {
		return
	}
	if s.refused == nil {
		s.refused = map[string]bool{}
	}
	s.refused[verb] = refused
	if refused {
		s.logger.Error(nil, "The operator may not "+verb+" events.events.k8s.io, so that events are lost; grant it by its ClusterRole (docs/rbac.md)", "verb", verb)
		return
	}
	s.logger.Info("The operator may "+verb+" events.events.k8s.io again", "verb", verb)
}
