// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/espalier-dev/espalier/test/apiserver"
)

// buildOperator builds the operator as it is released.
func buildOperator(ctx context.Context, dir string) (string, error) {
	path := filepath.Join(dir, "manager")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", path, "./cmd/manager")
	cmd.Dir, cmd.Env, cmd.Stderr = apiserver.Path(), append(os.Environ(), "CGO_ENABLED=0"), os.Stderr
	return path, cmd.Run()
}

// operator is the operator's process.
type operator struct {
	*process
	metrics, health, pprof string
}

// startOperator starts the operator with its default flags, but for where it
// listens; profiled adds profiles, which cost memory of their own. It does not
// elect a leader: the Lease would be a write by design.
func startOperator(ctx context.Context, dir, binary string, c *cluster, profiled bool) (*operator, error) {
	var addresses [3]string
	for i := range addresses {
		port, err := freePort(ctx)
		if err != nil {
			return nil, err
		}
		addresses[i] = fmt.Sprintf("127.0.0.1:%d", port)
	}
	args := []string{
		"--kubeconfig=" + c.operator,
		"--namespace=" + apiserver.OperatorNamespace,
		"--server-image=example.test/espalier/server:none",
		"--metrics-secure=false",
		"--metrics-bind-address=" + addresses[0],
		"--health-probe-bind-address=" + addresses[1],
	}
	if profiled {
		args = append(args, "--pprof-bind-address="+addresses[2])
	}
	p, err := start(ctx, filepath.Join(dir, "operator.log"), binary, args...)
	if err != nil {
		return nil, err
	}
	return &operator{process: p, metrics: addresses[0], health: addresses[1], pprof: addresses[2]}, nil
}

// started reports whether the operator serves its health check and its metrics.
func (o *operator) started(ctx context.Context) bool {
	for _, url := range []string{"http://" + o.health + "/healthz", "http://" + o.metrics + "/metrics"} {
		if _, err := fetch(ctx, url); err != nil {
			return false
		}
	}
	return true
}

// save writes profiles of the operator, and its metrics, as DIR/NAME.KIND.
func (o *operator) save(ctx context.Context, dir, name string) error {
	if dir == "" {
		return nil
	}
	var errs error
	for kind, url := range map[string]string{
		"heap": o.pprof + "/debug/pprof/heap", "allocs": o.pprof + "/debug/pprof/allocs", "metrics": o.metrics + "/metrics",
	} {
		profile, err := fetch(ctx, "http://"+url)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name+"."+kind), profile, 0o600)
		}
		errs = errors.Join(errs, err)
	}
	return errs
}

// saveCPU profiles the CPU for some seconds, from now on; done waits for it.
func (o *operator) saveCPU(ctx context.Context, dir, name string, seconds int) (done func() error) {
	if dir == "" {
		return func() error { return nil }
	}
	result := make(chan error, 1)
	go func() {
		profile, err := fetch(ctx, fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", o.pprof, seconds))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name+".cpu"), profile, 0o600)
		}
		result <- err
	}()
	return func() error { return <-result }
}

// sum adds up the series of a metric whose labels contain text.
func (o *operator) sum(ctx context.Context, metric, text string) (float64, error) {
	sum := 0.0
	err := o.each(ctx, metric, func(labels string, value float64) {
		if strings.Contains(labels, text) {
			sum += value
		}
	})
	return sum, err
}

// each calls do for each series of a metric.
func (o *operator) each(ctx context.Context, metric string, do func(labels string, value float64)) error {
	body, err := fetch(ctx, "http://"+o.metrics+"/metrics")
	if err != nil {
		return err
	}
	scanner := bufio.NewScanner(strings.NewReader(string(body)))
	for scanner.Scan() {
		rest, ok := strings.CutPrefix(scanner.Text(), metric)
		if !ok || rest == "" || (rest[0] != '{' && rest[0] != ' ') {
			continue
		}
		value, err := strconv.ParseFloat(rest[strings.LastIndexByte(rest, ' ')+1:], 64)
		if err != nil {
			return err
		}
		do(rest, value)
	}
	return scanner.Err()
}

// local dials nobody through a proxy, and lets nobody compress for it.
var local = &http.Client{Transport: &http.Transport{DisableCompression: true}}

func fetch(ctx context.Context, url string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := local.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answers %d", url, resp.StatusCode)
	}
	return body, err
}
