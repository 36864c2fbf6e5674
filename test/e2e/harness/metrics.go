// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Scraper reads the operator's metrics as Prometheus would: as a
// ServiceAccount that the ClusterRole espalier-metrics-reader is bound to.
type Scraper struct {
	cluster *Cluster
	token   string
}

// Scraper makes one, with a ServiceAccount in the namespace.
func (n *Namespace) Scraper(ctx context.Context) *Scraper {
	GinkgoHelper()
	n.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "scraper"}})
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: n.Name + "-scraper"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "espalier-metrics-reader"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: n.Name, Name: "scraper"}},
	}
	Expect(n.Client.Create(ctx, binding)).To(Succeed())
	DeferCleanup(func(ctx context.Context) { Expect(n.Client.Delete(ctx, binding)).To(Succeed()) })
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: To(int64(3600))}}
	answer, err := n.Clientset.CoreV1().ServiceAccounts(n.Name).CreateToken(ctx, "scraper", request, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	return &Scraper{cluster: n.Cluster, token: answer.Status.Token}
}

// Count is how many series of the metric have each of labels, over all pods of
// the operator.
func (s *Scraper) Count(ctx context.Context, metric string, labels ...string) float64 {
	GinkgoHelper()
	n := 0.0
	for _, pod := range s.cluster.OperatorPods(ctx) {
		s.each(ctx, &pod, metric, labels, func(float64) { n++ })
	}
	return n
}

// Sum adds up the series of the metric whose labels hold each of labels
// (written as name="value"), over all pods of the operator.
func (s *Scraper) Sum(ctx context.Context, metric string, labels ...string) float64 {
	GinkgoHelper()
	sum := 0.0
	for _, pod := range s.cluster.OperatorPods(ctx) {
		s.each(ctx, &pod, metric, labels, func(value float64) { sum += value })
	}
	return sum
}

func (s *Scraper) each(ctx context.Context, pod *corev1.Pod, metric string, labels []string, do func(float64)) {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("https://%s:8443/metrics", pod.Status.PodIP), nil)
	Expect(err).NotTo(HaveOccurred())
	req.Header.Set("Authorization", "Bearer "+s.token)
	// The operator's certificate for metrics is self-signed unless one is given to it.
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Do(req)
	Expect(err).NotTo(HaveOccurred())
	defer resp.Body.Close()
	Expect(resp.StatusCode).To(Equal(http.StatusOK), "metrics of the operator")
	scanner := bufio.NewScanner(resp.Body)
	for scanner.Scan() {
		if value, ok := sample(scanner.Text(), metric, labels); ok {
			do(value)
		}
	}
	Expect(scanner.Err()).NotTo(HaveOccurred())
}

// sample reads a line of the Prometheus text format, if it is of metric.
func sample(line, metric string, labels []string) (float64, bool) {
	rest, ok := strings.CutPrefix(line, metric)
	if !ok || (!strings.HasPrefix(rest, "{") && !strings.HasPrefix(rest, " ")) {
		return 0, false
	}
	for _, label := range labels {
		if !strings.Contains(rest, label) {
			return 0, false
		}
	}
	value, err := strconv.ParseFloat(rest[strings.LastIndexByte(rest, ' ')+1:], 64)
	return value, err == nil
}
