// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"
)

// api is a minimal client of the API server, as the administrator.
type api struct{ http http.Client }

func (c *Cluster) api() (*api, error) {
	pair, err := tls.LoadX509KeyPair(c.pki("admin.crt"), c.pki("admin.key"))
	if err != nil {
		return nil, err
	}
	pem, err := os.ReadFile(c.pki("ca.crt"))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, errors.New("no certificate in ca.crt")
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: pool}}
	return &api{http: http.Client{Transport: transport, Timeout: 5 * time.Second}}, nil
}

// get reads a path; with a nil target only the answer's status matters.
func (a *api) get(ctx context.Context, path string, target any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, apiServerURL+path, nil)
	if err != nil {
		return err
	}
	response, err := a.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", path, response.Status)
	}
	if target == nil {
		return nil
	}
	return json.NewDecoder(response.Body).Decode(target)
}

// conditioned is any object with conditions in its status.
type conditioned struct {
	Status struct {
		Conditions []struct{ Type, Status, Message string } `json:"conditions"`
	} `json:"status"`
}

// isTrue returns nil if the object at path has the condition.
func (a *api) isTrue(ctx context.Context, path, condition string) error {
	var object conditioned
	if err := a.get(ctx, path, &object); err != nil {
		return err
	}
	for _, c := range object.Status.Conditions {
		if c.Type == condition && c.Status == "True" {
			return nil
		}
		if c.Type == condition {
			return fmt.Errorf("%s is not %s: %s", path, condition, c.Message)
		}
	}
	return fmt.Errorf("%s has no condition %s yet", path, condition)
}

func (a *api) serverReady(ctx context.Context) error { return a.get(ctx, "/readyz", nil) }

func (a *api) nodeReady(ctx context.Context) error {
	return a.isTrue(ctx, "/api/v1/nodes/"+nodeName, "Ready")
}

func (a *api) dnsReady(ctx context.Context) error {
	return a.isTrue(ctx, "/apis/apps/v1/namespaces/kube-system/deployments/coredns", "Available")
}

func (a *api) metricsReady(ctx context.Context) error {
	return a.isTrue(ctx, "/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.metrics.k8s.io", "Available")
}
