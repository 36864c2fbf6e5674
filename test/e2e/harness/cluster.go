// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/api/v1alpha1"
)

// KubeconfigVariable names the environment variable that says which cluster
// to test on. KUBECONFIG alone is not enough: the tests delete pods, stop the
// operator and create cluster roles.
const KubeconfigVariable = "E2E_KUBECONFIG"

// Cluster is a cluster with the operator installed, seen as an administrator.
type Cluster struct {
	Kubeconfig string
	Config     *rest.Config
	Client     client.WithWatch
	Clientset  kubernetes.Interface
}

// Connect opens the cluster that E2E_KUBECONFIG names.
func Connect(ctx context.Context) (*Cluster, error) {
	path := os.Getenv(KubeconfigVariable)
	if path == "" {
		return nil, errors.New(KubeconfigVariable + " is not set: run 'make test-e2e'")
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	// The tests must not be what makes an edit slow.
	config.QPS, config.Burst = 500, 1000
	c := &Cluster{Kubeconfig: path, Config: config}
	if c.Client, err = client.NewWithWatch(config, client.Options{Scheme: scheme()}); err != nil {
		return nil, err
	}
	if c.Clientset, err = kubernetes.NewForConfig(config); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if err := c.Client.List(ctx, &v1alpha1.MCPServerList{}, client.Limit(1)); err != nil {
		return nil, fmt.Errorf("the cluster of %s does not know MCPServers (is Espalier installed?): %w", path, err)
	}
	return c, nil
}

func scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(s))
	utilruntime.Must(v1alpha1.AddToScheme(s))
	return s
}
