// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apiserver gives tests a real API server: etcd and kube-apiserver
// from KUBEBUILDER_ASSETS, with Espalier's CRDs and the operator's RBAC in
// place. There are no controllers and no kubelet: a Deployment stays an object.
//
// A package that imports it is an integration test: "make test-integration"
// finds it by that import and sets KUBEBUILDER_ASSETS.
package apiserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/espalier-dev/espalier/api/v1alpha1"
)

// OperatorNamespace is where the operator lives.
const OperatorNamespace = "espalier-system"

// operatorUser is the ServiceAccount that config/rbac binds.
const operatorUser = "system:serviceaccount:" + OperatorNamespace + ":manager"

const (
	startTimeout = 2 * time.Minute
	stopTimeout  = time.Minute
)

// Server is a running API server.
type Server struct {
	// Config is that of a cluster administrator.
	Config *rest.Config
	// Client is a cluster administrator's, without a cache.
	Client client.WithWatch

	environment *envtest.Environment
	watcher     *watcher
}

// Main starts a server, hands it to use, runs the package's tests and stops
// the server. It is the whole of a TestMain. Flags are as Start takes them.
func Main(m *testing.M, use func(*Server), flags ...Flag) {
	os.Exit(Run(m, use, flags...))
}

// Run is Main without the exit.
func Run(m *testing.M, use func(*Server), flags ...Flag) (code int) {
	server, err := Start(flags...)
	if err != nil {
		fmt.Fprintln(os.Stderr, "apiserver:", err)
		return 1
	}
	defer func() {
		if err := server.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "apiserver:", err)
			code = 1
		}
	}()
	use(server)
	return m.Run()
}

// Flag is one flag of kube-apiserver, without its dashes.
type Flag struct{ Name, Value string }

// Start starts a server with the CRDs of config/crd and the roles of
// config/rbac. Flags are added to the usual ones, or replace them. The caller
// stops it.
func Start(flags ...Flag) (*Server, error) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		return nil, errors.New("KUBEBUILDER_ASSETS is not set: run 'make test-integration', or " +
			"'export KUBEBUILDER_ASSETS=$(go run -C hack/cluster . assets)' first")
	}
	environment := &envtest.Environment{
		Scheme:                   Scheme(),
		CRDDirectoryPaths:        []string{Path("config", "crd", "bases")},
		ErrorIfCRDPathMissing:    true,
		ControlPlaneStartTimeout: startTimeout,
		ControlPlaneStopTimeout:  stopTimeout,
	}
	// As OpenShift has it: who sets blockOwnerDeletion needs update on the
	// owner's finalizers.
	environment.ControlPlane.GetAPIServer().Configure().Set("enable-admission-plugins", "OwnerReferencesPermissionEnforcement")
	for _, flag := range flags {
		environment.ControlPlane.GetAPIServer().Configure().Set(flag.Name, flag.Value)
	}
	config, err := environment.Start()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start: %w", err), environment.Stop())
	}
	config.QPS, config.Burst = 1000, 1000
	watcher, err := watch(environment.ControlPlane.Etcd.DataDir, environment.ControlPlane.APIServer.CertDir)
	if err != nil {
		return nil, errors.Join(err, environment.Stop())
	}
	server := &Server{Config: config, environment: environment, watcher: watcher}
	if err := server.prepare(); err != nil {
		return nil, errors.Join(err, server.Stop())
	}
	return server, nil
}

func (s *Server) prepare() error {
	c, err := client.NewWithWatch(s.Config, client.Options{Scheme: s.environment.Scheme})
	if err != nil {
		return err
	}
	s.Client = c
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	return s.installRBAC(ctx)
}

// Stop stops the server and etcd.
func (s *Server) Stop() error {
	if err := s.environment.Stop(); err != nil {
		return err // The watcher ends them with this process.
	}
	return s.watcher.stopped()
}

// Operator is the operator's access: the ServiceAccount that config/rbac
// binds, and nothing more. A test that passes with it passes under the
// operator's own RBAC.
func (s *Server) Operator() *rest.Config {
	config := rest.CopyConfig(s.Config)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: operatorUser,
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + OperatorNamespace, "system:authenticated"},
	}
	return config
}

// User is the access of a user who authenticates by a certificate of its own: in
// the API server's audit log it is the user, where Operator is an administrator
// who impersonates one.
func (s *Server) User(name string) (*rest.Config, error) {
	user, err := s.environment.AddUser(envtest.User{Name: name}, nil)
	if err != nil {
		return nil, err
	}
	return user.Config(), nil
}

// Scheme knows Kubernetes' kinds, CRDs and Espalier's kinds.
func Scheme() *apiruntime.Scheme {
	scheme := apiruntime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(apiextensionsv1.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	return scheme
}

// Path is a path in the repository.
func Path(elements ...string) string {
	_, file, _, ok := runtime.Caller(0)
	if !ok {
		panic("apiserver: no caller information")
	}
	root := filepath.Join(filepath.Dir(file), "..", "..")
	return filepath.Join(append([]string{root}, elements...)...)
}
