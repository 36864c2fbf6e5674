// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"crypto/sha256"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-dev/espalier/internal/catalog"
)

// memory is what the operator remembers of its servers beyond what the API
// server keeps. All of it may be lost: after a restart conditions are held
// until it is known again.
type memory struct {
	mu      sync.Mutex
	servers map[types.NamespacedName]*serverMemory
	// compiled registrations by UID.
	compiled map[types.UID]compiledVersion
}

type compiledVersion struct {
	generation int64
	compiled   *catalog.Compiled
}

// serverMemory is only touched by the worker that reconciles the server.
type serverMemory struct {
	// digest of the catalog that was rendered last, and since when.
	digest string
	since  time.Time
	// history holds for the last catalogs which version of each entry they
	// serve.
	history []served
	// arrived is the catalog that was last seen in the operator's cache, and
	// arrivedAt when that was.
	arrived   string
	arrivedAt time.Time
	// pokes by pod.
	pokes map[types.UID]*poke
	// refs is the version of the mounted references that pods were told of.
	refs string
	// covered holds, for each child, the fingerprint of what was desired and
	// of the live object that had all of it.
	covered map[childKey][sha256.Size]byte
	// dial is what the probe needs from Secrets, with its version.
	dial dialMaterial
	// unsaid is since when progress waits to be written; zero when none does.
	unsaid time.Time
	// endpointSince is since when the endpoint of an External server is dialled.
	endpoint      string
	endpointSince time.Time
}

// served is which version of each registration a catalog serves.
type served struct {
	digest  string
	entries map[catalog.ID]string
}

// maxHistory of catalogs per server: enough for pods that lag some edits behind.
const maxHistory = 16

func newMemory() *memory {
	return &memory{servers: map[types.NamespacedName]*serverMemory{}, compiled: map[types.UID]compiledVersion{}}
}

// server gives the memory of key.
func (m *memory) server(key types.NamespacedName) *serverMemory {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.servers[key]
	if s == nil {
		s = &serverMemory{pokes: map[types.UID]*poke{}, covered: map[childKey][sha256.Size]byte{}}
		m.servers[key] = s
	}
	return s
}

// forget drops the memory of key.
func (m *memory) forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.servers, key)
}

// compile gives the compiled form of a registration, made once per generation.
func (m *memory) compile(uid types.UID, generation int64, compile func() *catalog.Compiled) *catalog.Compiled {
	m.mu.Lock()
	c, ok := m.compiled[uid]
	m.mu.Unlock()
	if ok && c.generation == generation {
		return c.compiled
	}
	compiled := compile()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.compiled[uid] = compiledVersion{generation, compiled}
	return compiled
}

// forgetRegistration drops the compiled form of a registration.
func (m *memory) forgetRegistration(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.compiled, uid)
}

// rendered notes that c is the catalog now.
func (s *serverMemory) rendered(digest string, c *catalog.Catalog, now time.Time) {
	if s.digest == digest {
		return
	}
	s.digest, s.since = digest, now
	versions := make(map[catalog.ID]string, len(c.Served))
	for id, entry := range c.Served {
		versions[id] = entry.EntryDigest
	}
	s.history = append(s.history, served{digest, versions})
	if len(s.history) > maxHistory {
		s.history = s.history[len(s.history)-maxHistory:]
	}
}

// version of the registration that the catalog of this digest serves; known is false
// for a catalog that is not remembered.
func (s *serverMemory) version(digest string, id catalog.ID) (version string, known bool) {
	for _, h := range s.history {
		if h.digest == digest {
			return h.entries[id], true
		}
	}
	return "", false
}
