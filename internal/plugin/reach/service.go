// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/plugin/env"
)

// service is what a URL in the cluster leads to.
type service struct {
	namespace, name string
	port            int32
}

// serviceOf gives the Service that the host of a URL names, as NAME.NAMESPACE.svc
// with or without the cluster's domain; ok is false for every other host, which
// means the same to this machine or nothing.
func serviceOf(raw string) (service, bool) {
	u, err := url.Parse(raw)
	if err != nil {
		return service{}, false
	}
	parts := strings.Split(strings.TrimSuffix(strings.ToLower(u.Hostname()), "."), ".")
	if len(parts) < 3 || parts[2] != "svc" {
		return service{}, false
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "ws": "80", "https": "443", "wss": "443"}[u.Scheme]
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return service{parts[1], parts[0], int32(n)}, err == nil
}

// toService dials a ready pod behind s, another one when the first is gone.
func (c *cluster) toService(s service) dialer {
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		backends, err := c.backends(ctx, s)
		if err != nil {
			return nil, err
		}
		for _, b := range backends {
			var conn net.Conn
			conn, err = c.forward(ctx, s.namespace, b.pod, b.port)
			if err == nil {
				return conn, nil
			}
			if apierrors.IsForbidden(err) || ctx.Err() != nil {
				break
			}
		}
		return nil, err
	}
}

// backend is a pod behind a Service, and the port there.
type backend struct {
	pod  string
	port int32
}

// backends that are ready, sorted by name. There is one at least.
func (c *cluster) backends(ctx context.Context, s service) ([]backend, error) {
	var object corev1.Service
	err := c.client.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: s.name}, &object)
	if apierrors.IsNotFound(err) {
		return nil, &net.DNSError{Err: "there is no such Service", Name: s.name + "." + s.namespace + ".svc", IsNotFound: true}
	}
	if err != nil {
		return nil, env.ClusterError(err)
	}
	i := slices.IndexFunc(object.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == s.port })
	if i < 0 {
		return nil, env.Hint(fmt.Errorf("Service %s/%s has no port %d", s.namespace, s.name, s.port), "Correct the URL of the MCPServer.")
	}
	var list discoveryv1.EndpointSliceList
	if err := c.client.List(ctx, &list, client.InNamespace(s.namespace), client.MatchingLabels{discoveryv1.LabelServiceName: s.name}); err != nil {
		return nil, env.ClusterError(err)
	}
	var out []backend
	for j := range list.Items {
		out = append(out, readyOf(&list.Items[j], object.Spec.Ports[i].Name)...)
	}
	if out == nil {
		return nil, env.Hint(fmt.Errorf("no pod behind Service %s/%s is ready", s.namespace, s.name),
			fmt.Sprintf("Look at it: kubectl get endpointslices,pods -n %s", s.namespace))
	}
	slices.SortFunc(out, func(a, b backend) int { return strings.Compare(a.pod, b.pod) })
	return out, nil
}

// readyOf gives the ready pods of a slice, at the port of that name.
func readyOf(slice *discoveryv1.EndpointSlice, port string) []backend {
	var out []backend
	for _, p := range slice.Ports {
		if p.Port == nil || (p.Name == nil && port != "") || (p.Name != nil && *p.Name != port) {
			continue
		}
		for _, e := range slice.Endpoints {
			if e.TargetRef != nil && e.TargetRef.Kind == "Pod" && (e.Conditions.Ready == nil || *e.Conditions.Ready) {
				out = append(out, backend{e.TargetRef.Name, *p.Port})
			}
		}
	}
	return out
}
