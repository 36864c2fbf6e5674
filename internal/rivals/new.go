// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rivals

import (
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"
)

// requestTimeout is shorter than the time within which a leader must renew:
// one request that hangs does not lose the lead.
const requestTimeout = 5 * time.Second

// New makes the lock of an operator whose Lease is in namespace and that works
// on namespaces; none is all.
func New(config *rest.Config, namespace string, namespaces []string) (*Lock, error) {
	config = rest.AddUserAgent(config, "leader-election")
	config.Timeout = requestTimeout
	leases, err := coordinationclient.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	lock := &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: namespace, Name: LeaseName},
		Client:     leases,
		LockConfig: resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())},
		Labels:     Labels(namespaces),
	}
	out := NewLock(lock, leases, namespace, namespaces, clock.RealClock{})
	out.pod = host // A pod's hostname is its name.
	return out, nil
}

// Record has who leads told by events, and that an operator stands back. It is
// called before the lock is used.
func (l *Lock) Record(events resourcelock.EventRecorder) {
	l.events = events
	if lease, ok := l.Interface.(*resourcelock.LeaseLock); ok {
		lease.LockConfig.EventRecorder = events
	}
}

// tell says by an event of the operator's pod that it stands back.
func (l *Lock) tell(why error) {
	if l.events == nil || l.pod == "" {
		return
	}
	pod := &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: l.namespace, Name: l.pod}
	l.events.Eventf(pod, corev1.EventTypeWarning, ReasonAnotherOperator, "%s", why.Error())
}
