// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/espalier-dev/espalier/test/apiserver"
)

// operatorAccount is the ServiceAccount of config/rbac.
const operatorAccount = "manager"

// auditPolicy logs the operator's writes, Leases aside, and nothing else.
var auditPolicy = fmt.Sprintf(`apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  resources: [{group: coordination.k8s.io}]
- level: Metadata
  users: ["system:serviceaccount:%s:%s"]
  verbs: [create, update, patch, delete, deletecollection]
- level: None
`, apiserver.OperatorNamespace, operatorAccount)

// controllers that make pods of Deployments and endpoints of Services, and
// remove what is orphaned.
var controllers = []string{
	"deployment-controller", "replicaset-controller", "endpointslice-controller", "garbage-collector-controller",
}

// cluster is a control plane without nodes.
type cluster struct {
	api     *apiserver.Server
	manager *process
	audit   *auditLog
	// operator is the kubeconfig of the operator.
	operator string
}

// startCluster starts one, with its files in dir.
func startCluster(ctx context.Context, dir string) (_ *cluster, err error) {
	policy, log := filepath.Join(dir, "audit-policy.yaml"), filepath.Join(dir, "audit.log")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return nil, err
	}
	api, err := apiserver.Start(
		apiserver.Flag{Name: "audit-policy-file", Value: policy},
		apiserver.Flag{Name: "audit-log-path", Value: log},
		// Room for thousands of Services.
		apiserver.Flag{Name: "service-cluster-ip-range", Value: "10.96.0.0/16"},
	)
	if err != nil {
		return nil, err
	}
	c := &cluster{api: api, audit: &auditLog{path: log}}
	if err := c.complete(ctx, dir); err != nil {
		return nil, errors.Join(err, c.stop())
	}
	return c, nil
}

func (c *cluster) complete(ctx context.Context, dir string) error {
	admin := filepath.Join(dir, "admin.kubeconfig")
	if err := writeKubeconfig(admin, c.api.Config); err != nil {
		return err
	}
	access, err := c.operatorAccess(ctx)
	if err != nil {
		return err
	}
	c.operator = filepath.Join(dir, "operator.kubeconfig")
	if err := writeKubeconfig(c.operator, access); err != nil {
		return err
	}
	c.manager, err = start(ctx, filepath.Join(dir, "controller-manager.log"),
		filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kube-controller-manager"),
		"--kubeconfig="+admin,
		"--controllers="+strings.Join(controllers, ","),
		"--leader-elect=false",
		"--secure-port=0",
		// The default would make it, and not the operator, what is measured.
		"--kube-api-qps=500", "--kube-api-burst=1000",
	)
	return err
}

// operatorAccess is that of the operator's ServiceAccount, by a token.
func (c *cluster) operatorAccess(ctx context.Context) (*rest.Config, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: apiserver.OperatorNamespace, Name: operatorAccount}}
	token := &authenticationv1.TokenRequest{}
	if err := c.api.Client.SubResource("token").Create(ctx, account, token); err != nil {
		return nil, fmt.Errorf("a token for the operator: %w", err)
	}
	return &rest.Config{
		Host: c.api.Config.Host, BearerToken: token.Status.Token,
		TLSClientConfig: rest.TLSClientConfig{CAData: c.api.Config.CAData},
	}, nil
}

func (c *cluster) stop() error {
	var err error
	if c.manager != nil {
		err = c.manager.stop()
	}
	return errors.Join(err, c.api.Stop())
}

func writeKubeconfig(path string, config *rest.Config) error {
	const name = "scale"
	return clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{name: {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{name: {
			Token: config.BearerToken, ClientCertificateData: config.CertData, ClientKeyData: config.KeyData,
		}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	}, path)
}
