// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package integration tests the operator's controllers on a real API server
// and under the operator's own RBAC. There are no controllers of Kubernetes
// and no kubelet: tests make the pods of a Deployment and say what a probe
// would find.
//
// Each test has a namespace and an operator of its own, which serves that
// namespace alone, and runs beside the others.
package integration

import (
	"flag"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/espalier-dev/espalier/test/apiserver"
)

var api *apiserver.Server

func TestMain(m *testing.M) {
	// Tests wait more than they work.
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	ctrl.SetLogger(logr.Discard()) // Each operator has a log of its own.
	folder, err := os.MkdirTemp("", "integration-")
	if err != nil {
		panic(err)
	}
	audit, err := auditFlags(folder)
	if err != nil {
		panic(err)
	}
	code := apiserver.Run(m, func(s *apiserver.Server) { api = s }, audit...)
	if err := os.RemoveAll(folder); err != nil {
		panic(err)
	}
	os.Exit(code)
}

const (
	// soon is by when the operator has acted upon an event.
	soon = time.Minute
	// healed is by when it has noticed that a permission came back: it looks
	// every 30 s.
	healed = 2 * time.Minute
	// at is how often a test looks.
	at = 20 * time.Millisecond
)
