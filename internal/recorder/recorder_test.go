// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
)

// lines is a log.
type lines struct {
	mu   sync.Mutex
	list []string
}

func (l *lines) logger() logr.Logger {
	return funcr.New(func(prefix, args string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.list = append(l.list, prefix+args)
	}, funcr.Options{})
}

func (l *lines) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.list)
}

func status(code int, reason metav1.StatusReason, causes ...metav1.CauseType) error {
	details := &metav1.StatusDetails{}
	for _, c := range causes {
		details.Causes = append(details.Causes, metav1.StatusCause{Type: c})
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Details: details, Message: "refused"}}
}

var (
	terminating = status(http.StatusForbidden, metav1.StatusReasonForbidden, corev1.NamespaceTerminatingCause)
	gone        = status(http.StatusNotFound, metav1.StatusReasonNotFound)
	forbidden   = status(http.StatusForbidden, metav1.StatusReasonForbidden)
	invalid     = status(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)
)

// TestSink: what is dropped, what is told once, and what client-go is left to
// deal with.
func TestSink(t *testing.T) {
	log := &lines{}
	inner := &scripted{}
	s := &sink{EventSink: inner, logger: log.logger()}
	event := &eventsv1.Event{}
	for _, step := range []struct {
		name     string
		patch    bool
		err      error
		passes   bool
		newLines int
	}{
		{"terminating", false, terminating, false, 0},
		{"terminating, again", true, terminating, false, 0},
		{"gone", false, gone, false, 0},
		{"no such event, so that it is created", true, gone, true, 0},
		{"invalid", false, invalid, true, 0},
		{"forbidden", false, forbidden, false, 1},
		{"still forbidden", false, forbidden, false, 0},
		{"another verb", true, forbidden, false, 1},
		{"allowed", false, nil, false, 1},
		{"forbidden anew", false, forbidden, false, 1},
	} {
		t.Run(step.name, func(t *testing.T) {
			inner.err = step.err
			before := len(log.all())
			var err error
			if step.patch {
				_, err = s.Patch(t.Context(), event, nil)
			} else {
				_, err = s.Create(t.Context(), event)
			}
			if passes := err != nil; passes != step.passes || (passes && !errors.Is(err, step.err)) {
				t.Errorf("error %v", err)
			}
			if n := len(log.all()) - before; n != step.newLines {
				t.Errorf("%d lines logged: %v", n, log.all())
			}
		})
	}
}

// scripted answers with err.
type scripted struct {
	events.EventSink
	err error
}

func (s *scripted) Create(_ context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	return event, s.err
}

func (s *scripted) Patch(_ context.Context, event *eventsv1.Event, _ []byte) (*eventsv1.Event, error) {
	return event, s.err
}

// TestQuiet: a whole recorder logs nothing of events whose namespace goes, and
// writes the others.
func TestQuiet(t *testing.T) {
	client := fake.NewClientset()
	tried := make(chan string, 10)
	client.PrependReactor("create", "events", func(action clienttesting.Action) (bool, runtime.Object, error) {
		tried <- action.GetNamespace()
		if action.GetNamespace() == "going" {
			return true, nil, terminating
		}
		return false, nil, nil
	})
	log := &lines{}
	r := New(client.EventsV1(), clientgoscheme.Scheme, "espalier", log.logger())
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := r.Start(ctx); err != nil {
			t.Error(err)
		}
	})
	for _, namespace := range []string{"going", "staying"} {
		regarding := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: namespace}}
		for seen := ""; seen != namespace; {
			// Until Start has begun, events are lost.
			r.Eventf(regarding, nil, corev1.EventTypeNormal, "Reason", "Action", "note")
			select {
			case seen = <-tried:
			default:
			}
		}
	}
	cancel()
	running.Wait()
	for _, line := range log.all() {
		if strings.Contains(line, "error") || strings.Contains(line, "rejected") {
			t.Error(line)
		}
	}
}
