// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// Backend is a pod of test/fixtures/backend behind a Service.
type Backend struct {
	// URL of the Service, for pods.
	URL string
	pod string
}

// Recorded is a request that the backend got.
type Recorded struct {
	Method  string              `json:"method"`
	Path    string              `json:"path"`
	Query   map[string][]string `json:"query"`
	Headers map[string]string   `json:"headers"`
	Body    string              `json:"body"`
}

// Backend starts one of name and waits until it takes traffic.
func (n *Namespace) Backend(ctx context.Context, name string) *Backend {
	GinkgoHelper()
	deployment, service := Workload(name, BackendImage, 8080)
	n.Create(ctx, deployment, service)
	n.AwaitRollout(ctx, name, ReadyTimeout)
	n.AwaitService(ctx, name)
	return &Backend{
		URL: fmt.Sprintf("http://%s.%s.svc", name, n.Name),
		pod: "http://" + n.PodsOfApp(ctx, name)[0].Status.PodIP + ":8080",
	}
}

// Requests are those that the backend got, oldest first.
func (b *Backend) Requests(ctx context.Context) []Recorded {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.pod+"/requests", nil)
	Expect(err).NotTo(HaveOccurred())
	resp, err := http.DefaultClient.Do(req)
	Expect(err).NotTo(HaveOccurred())
	defer resp.Body.Close()
	var out []Recorded
	Expect(json.NewDecoder(resp.Body).Decode(&out)).To(Succeed())
	return out
}

// Echoed is what a tool that calls the backend's /echo answers with.
func Echoed(answer *Answer) (Recorded, error) {
	var out Recorded
	err := json.Unmarshal(answer.Structured, &out)
	return out, err
}
