// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/api/v1alpha1"
)

// Wanted is a condition that a test waits for. Empty parts match anything.
type Wanted struct {
	Type    string
	Status  metav1.ConditionStatus
	Reasons []string
	// Says are texts that the message holds.
	Says []string
}

// Is wants condition kind to have status for one of reasons.
func Is(kind string, status metav1.ConditionStatus, reasons ...string) Wanted {
	return Wanted{Type: kind, Status: status, Reasons: reasons}
}

// Saying wants the message to hold each of texts, too.
func (w Wanted) Saying(texts ...string) Wanted {
	w.Says = append(w.Says, texts...)
	return w
}

// Ready and Served are the two conditions that tests want most.
var (
	Ready  = Is(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonProved)
	Served = Is(v1alpha1.ConditionServed, metav1.ConditionTrue)
)

// check returns what keeps conditions of an object of generation from w.
func (w Wanted) check(conditions []metav1.Condition, generation int64) error {
	c := meta.FindStatusCondition(conditions, w.Type)
	switch {
	case c == nil:
		return fmt.Errorf("no condition %s", w.Type)
	case c.ObservedGeneration != generation:
		return fmt.Errorf("condition %s is of generation %d, the object of %d", w.Type, c.ObservedGeneration, generation)
	case c.Status != w.Status:
		return fmt.Errorf("%s is %s %s, not %s %v: %s", w.Type, c.Status, c.Reason, w.Status, w.Reasons, c.Message)
	case len(w.Reasons) > 0 && !contains(w.Reasons, c.Reason):
		return fmt.Errorf("%s is %s for %s, not for %v: %s", w.Type, c.Status, c.Reason, w.Reasons, c.Message)
	}
	for _, text := range w.Says {
		if !strings.Contains(c.Message, text) {
			return fmt.Errorf("%s %s does not say %q: %s", w.Type, c.Reason, text, c.Message)
		}
	}
	return nil
}

func contains(list []string, s string) bool {
	for _, l := range list {
		if l == s {
			return true
		}
	}
	return false
}

// conditionsOf reads the conditions of one of our kinds.
func conditionsOf(obj client.Object) []metav1.Condition {
	switch o := obj.(type) {
	case *v1alpha1.MCPServer:
		return o.Status.Conditions
	case v1alpha1.Registration:
		return o.GetRegistrationStatus().Conditions
	default:
		panic(fmt.Sprintf("%T has no conditions that the tests know", obj))
	}
}

// Has returns what keeps obj from having all of wanted, or nil.
func Has(obj client.Object, wanted ...Wanted) error {
	for _, w := range wanted {
		if err := w.check(conditionsOf(obj), obj.GetGeneration()); err != nil {
			return fmt.Errorf("%s: %w", obj.GetName(), err)
		}
	}
	return nil
}

// await waits until the object of name has all of wanted and returns it, and
// how long that took.
func await[T client.Object](ctx context.Context, n *Namespace, obj T, name string, timeout time.Duration, wanted []Wanted) (T, time.Duration) {
	GinkgoHelper()
	start := time.Now()
	Eventually(ctx, func() error {
		if err := n.Client.Get(ctx, client.ObjectKey{Namespace: n.Name, Name: name}, obj); err != nil {
			return err
		}
		return Has(obj, wanted...)
	}).WithTimeout(timeout).WithPolling(Poll).Should(Succeed())
	return obj, time.Since(start)
}

// AwaitServer waits until the MCPServer has all of wanted.
func (n *Namespace) AwaitServer(ctx context.Context, name string, timeout time.Duration, wanted ...Wanted) *v1alpha1.MCPServer {
	GinkgoHelper()
	s, _ := await(ctx, n, &v1alpha1.MCPServer{}, name, timeout, wanted)
	return s
}

// AwaitServerFor is AwaitServer, and says how long it took.
func (n *Namespace) AwaitServerFor(ctx context.Context, name string, timeout time.Duration, wanted ...Wanted) (*v1alpha1.MCPServer, time.Duration) {
	GinkgoHelper()
	return await(ctx, n, &v1alpha1.MCPServer{}, name, timeout, wanted)
}

// AwaitTool waits until the MCPTool has all of wanted.
func (n *Namespace) AwaitTool(ctx context.Context, name string, timeout time.Duration, wanted ...Wanted) *v1alpha1.MCPTool {
	GinkgoHelper()
	t, _ := await(ctx, n, &v1alpha1.MCPTool{}, name, timeout, wanted)
	return t
}

// Condition is the condition of kind of obj, or nil.
func Condition(obj client.Object, kind string) *metav1.Condition {
	return meta.FindStatusCondition(conditionsOf(obj), kind)
}
