// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// podRange holds the addresses of pods. All of it is made local, so that what
// listens on 0.0.0.0 answers for each of them and nothing leaves the machine.
const podRange = "10.250.0.0/16"

// Addresses end in 1 to perThird, so that none looks like a broadcast's.
const (
	perThird = 250
	maxPods  = 250 * perThird
)

// podIP is the address of the n-th pod, from 0.
func podIP(n int) string { return fmt.Sprintf("10.250.%d.%d", 1+n/perThird, 1+n%perThird) }

// takeNetwork makes podRange local until release is called. A second run on
// the machine is refused: they would spoil each other's figures. What a killed
// run left is taken over.
func takeNetwork(ctx context.Context) (release func() error, err error) {
	lock, err := os.OpenFile(filepath.Join(os.TempDir(), "espalier-scale.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(errors.New("another run of scale is under way on this machine"), lock.Close())
	}
	if err := route(ctx, "replace"); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		return errors.Join(route(ctx, "delete"), lock.Close())
	}, nil
}

func route(ctx context.Context, verb string) error {
	out, err := exec.CommandContext(ctx, "ip", "route", verb, "local", podRange, "dev", "lo").CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip route %s local %s (it needs root): %w: %s", verb, podRange, err, out)
	}
	return nil
}

// freePort is a port that nobody listens on now.
func freePort(ctx context.Context) (int, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
