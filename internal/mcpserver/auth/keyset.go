// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/espalier-dev/espalier/internal/jwks"
)

const (
	// refreshAfter is how old keys get before they are fetched again: a key
	// that its issuer withdraws is refused after that at the latest.
	refreshAfter = 5 * time.Minute
	// refreshPause lies between two fetches, however many tokens name keys
	// that are not known.
	refreshPause = 10 * time.Second
	// maxStale is how long keys are used while the issuer cannot be reached.
	maxStale = 24 * time.Hour
	// fetchLimit bounds one fetch of metadata and keys.
	fetchLimit = 10 * time.Second
)

// errUnavailable: there are no keys to verify by.
var errUnavailable = errors.New("the issuer's keys are not available")

// keySet gives the keys that may have made a token's signature; none is no
// error.
type keySet interface {
	find(ctx context.Context, kid, algorithm string) ([]jose.JSONWebKey, error)
}

// fixedKeys were declared.
type fixedKeys []jose.JSONWebKey

func newFixedKeys(raw json.RawMessage) fixedKeys {
	keys, err := jwks.Parse(raw)
	if err != nil {
		return nil // The operator says so; here it means that no token is good.
	}
	return keys
}

func (k fixedKeys) find(_ context.Context, kid, algorithm string) ([]jose.JSONWebKey, error) {
	return jwks.Pick(k, kid, algorithm), nil
}

// remoteKeys are fetched, kept, and fetched again.
type remoteKeys struct {
	fetch func(ctx context.Context) ([]jose.JSONWebKey, error)
	now   func() time.Time
	log   *slog.Logger
	name  string

	mu      sync.Mutex
	keys    []jose.JSONWebKey
	fetched time.Time // of keys
	tried   time.Time
	failing bool
	running chan struct{} // closed when the fetch that runs is over
	closed  bool
	stop    context.CancelFunc
	base    context.Context //nolint:containedctx // It ends fetches, which belong to no request.
	active  sync.WaitGroup
}

func newRemoteKeys(name string, log *slog.Logger, now func() time.Time, fetch func(context.Context) ([]jose.JSONWebKey, error)) *remoteKeys {
	r := &remoteKeys{fetch: fetch, now: now, log: log, name: name}
	r.base, r.stop = context.WithCancel(context.Background())
	return r
}

// prepare begins the first fetch, so that the first caller need not wait.
func (r *remoteKeys) prepare() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refresh()
}

func (r *remoteKeys) find(ctx context.Context, kid, algorithm string) ([]jose.JSONWebKey, error) {
	r.mu.Lock()
	keys, age := r.usable()
	found := jwks.Pick(keys, kid, algorithm)
	var wait chan struct{}
	if len(found) == 0 || age > refreshAfter {
		wait = r.refresh()
	}
	r.mu.Unlock()
	if len(found) > 0 || wait == nil {
		return found, available(keys)
	}
	select {
	case <-wait:
	case <-ctx.Done():
		return nil, errUnavailable
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	keys, _ = r.usable()
	return jwks.Pick(keys, kid, algorithm), available(keys)
}

func available(keys []jose.JSONWebKey) error {
	if len(keys) == 0 {
		return errUnavailable
	}
	return nil
}

// usable gives the keys and their age, under mu.
func (r *remoteKeys) usable() ([]jose.JSONWebKey, time.Duration) {
	age := r.now().Sub(r.fetched)
	if age > maxStale {
		return nil, age
	}
	return r.keys, age
}

// refresh begins a fetch, or gives the one that runs; nil when it is too soon
// for one. Under mu.
func (r *remoteKeys) refresh() chan struct{} {
	if r.running != nil {
		return r.running
	}
	now := r.now()
	if r.closed || !r.tried.IsZero() && now.Sub(r.tried) < refreshPause {
		return nil
	}
	r.tried = now
	done := make(chan struct{})
	r.running = done
	r.active.Go(func() {
		ctx, cancel := context.WithTimeout(r.base, fetchLimit)
		defer cancel()
		keys, err := r.fetch(ctx)
		r.store(keys, err)
		close(done)
	})
	return done
}

func (r *remoteKeys) store(keys []jose.JSONWebKey, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running = nil
	if err == nil {
		r.keys, r.fetched = keys, r.now()
		if r.failing {
			r.log.Info("Keys of the issuer can be fetched again", "issuer", r.name)
		}
		r.failing = false
		return
	}
	if !r.failing && !r.closed {
		r.log.Warn("Keys of the issuer cannot be fetched", "issuer", r.name, "error", err.Error(), "known", len(r.keys))
	}
	r.failing = true
}

// close ends a fetch that runs and waits for it.
func (r *remoteKeys) close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.stop()
	r.active.Wait()
}
