// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clusterkeys reads by which public keys this cluster signs the tokens
// of its service accounts, as the API server publishes them. Shared servers
// get the keys in their catalogs and verify by themselves: no TokenReview, no
// API token in a pod.
package clusterkeys

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/espalier-dev/espalier/internal/jwks"
)

// Paths of the API server that are read.
const (
	PathDiscovery = "/.well-known/openid-configuration"
	PathKeys      = "/openid/v1/jwks"
)

// Refresh is how long what was read is used: a rotation is known after that.
const Refresh = time.Minute

// Keys of the cluster.
type Keys struct {
	// Issuer is the claim iss of its tokens.
	Issuer string
	// JWKS is the key set, the same bytes for the same keys.
	JWKS json.RawMessage
	// Why says, in words of ours, why there are none; empty when there are.
	Why string
}

// Reader reads and keeps them. It is safe for concurrent use.
type Reader struct {
	get   func(ctx context.Context, path string) ([]byte, error)
	clock clock.PassiveClock

	mu   sync.Mutex
	keys Keys
	read time.Time
}

// New gives a Reader over the API server's REST client.
func New(client rest.Interface, c clock.PassiveClock) *Reader {
	return newReader(func(ctx context.Context, path string) ([]byte, error) {
		return client.Get().AbsPath(path).Do(ctx).Raw()
	}, c)
}

func newReader(get func(context.Context, string) ([]byte, error), c clock.PassiveClock) *Reader {
	return &Reader{get: get, clock: c}
}

// Current gives the keys, at most Refresh old. An error is transient and
// leaves nothing known; what the API server refuses for good is Keys.Why.
// Keys that were read once are given while it does not answer.
func (r *Reader) Current(ctx context.Context) (Keys, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock.Now()
	if !r.read.IsZero() && now.Sub(r.read) < Refresh {
		return r.keys, nil
	}
	keys, err := r.fetch(ctx)
	switch {
	case err != nil && r.keys.JWKS != nil:
		return r.keys, nil
	case err != nil:
		return Keys{}, err
	}
	r.keys, r.read = keys, now
	return keys, nil
}

func (r *Reader) fetch(ctx context.Context) (Keys, error) {
	raw, why, err := r.document(ctx, PathDiscovery)
	if why != "" || err != nil {
		return Keys{Why: why}, err
	}
	issuer := issuerOf(raw)
	if issuer == "" {
		return Keys{Why: "its discovery document names no issuer"}, nil
	}
	raw, why, err = r.document(ctx, PathKeys)
	if why != "" || err != nil {
		return Keys{Why: why}, err
	}
	set, ok := jwks.Canonical(raw)
	if !ok {
		return Keys{Why: "its key set holds no usable key"}, nil
	}
	return Keys{Issuer: issuer, JWKS: set}, nil
}

func issuerOf(raw []byte) string {
	var discovery struct {
		Issuer string `json:"issuer"`
	}
	if json.Unmarshal(raw, &discovery) != nil {
		return ""
	}
	return discovery.Issuer
}

func (r *Reader) document(ctx context.Context, path string) (raw []byte, why string, err error) {
	raw, err = r.get(ctx, path)
	switch {
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return nil, "the operator may not get " + path, nil
	case apierrors.IsNotFound(err):
		return nil, "the API server has no " + path, nil
	}
	return raw, "", err
}
