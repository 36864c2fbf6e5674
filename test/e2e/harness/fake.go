// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
)

// SetMode makes a pod of test/fixtures/fakemcp behave as mode says.
func SetMode(ctx context.Context, pod *corev1.Pod, mode string) {
	GinkgoHelper()
	Expect(post(ctx, pod, "/mode/"+mode)).To(Succeed())
}

// SetTools makes a pod of fakemcp list n tools.
func SetTools(ctx context.Context, pod *corev1.Pod, n int) error {
	return post(ctx, pod, fmt.Sprintf("/tools/%d", n))
}

// Crashing makes the process in a pod of fakemcp exit soon after each start,
// until stop is called.
func Crashing(ctx context.Context, pod *corev1.Pod) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	DeferCleanup(cancel)
	go func() {
		for ctx.Err() == nil {
			// An exit breaks the connection; while it is down nobody listens.
			_ = post(ctx, pod, "/exit/3")
			select {
			case <-time.After(50 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	}()
	return cancel
}

func post(ctx context.Context, pod *corev1.Pod, path string) error {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, fmt.Sprintf("http://%s:8081%s", pod.Status.PodIP, path), nil)
	if err != nil {
		return err
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("%s of pod %s answers %s", path, pod.Name, resp.Status)
	}
	return nil
}

// TrySetMode is SetMode of a pod that may be gone.
func TrySetMode(ctx context.Context, pod *corev1.Pod, mode string) error {
	return post(context.WithoutCancel(ctx), pod, "/mode/"+mode)
}

// OpenSessions is how many sessions a pod of fakemcp has open.
func OpenSessions(ctx context.Context, pod *corev1.Pod) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://%s:8081/sessions", pod.Status.PodIP), nil)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64))
	return strings.TrimSpace(string(body)), err
}
