// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package peers finds the other replicas of this server and passes requests on
// to them. A replica is named by a short hash of its address, which stands in
// the ids that it gives out. An address never comes from an id: the hash is
// compared with those of the addresses that the server's headless Service has.
package peers

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base32"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

var (
	// ErrGone says that no replica has that hash (any more), or that it cannot
	// be connected: it has not seen the request.
	ErrGone = errors.New("the replica is gone")
	// ErrUnknown says that the replicas could not be looked up.
	ErrUnknown = errors.New("the replicas cannot be looked up")
	// ErrBroken says that the connection to the replica broke before it
	// answered.
	ErrBroken = errors.New("the replica broke off")
)

const (
	// fresh is how long a lookup holds, pause how long it is not repeated for a
	// hash that it did not have.
	fresh = 5 * time.Second
	pause = 250 * time.Millisecond
	// looks for a hash that was never known before: name servers keep what
	// they said of a Service for 5 s, and a new replica takes traffic sooner.
	looks = 26
	// maxWaiting requests wait for such looks; others are told at once that
	// there is nobody.
	maxWaiting = 64
	// maxPast hashes are remembered to be gone.
	maxPast = 1024
	// lookupTime bounds a lookup, dialTime a connection.
	lookupTime = 5 * time.Second
	dialTime   = 2 * time.Second
	// joinTime is how long a replica waits at most to find itself among its
	// peers.
	joinTime = 10 * time.Second
	// idlePerPeer connections are kept to each replica.
	idlePerPeer = 64
)

// Resolver gives the addresses of all replicas, HOST:PORT each, this one among
// them. None and no error: there is no Service for them.
type Resolver func(ctx context.Context) ([]string, error)

// DNS resolves the name of a headless Service.
func DNS(name, port string) Resolver {
	return func(ctx context.Context) ([]string, error) {
		hosts, err := net.DefaultResolver.LookupHost(ctx, name)
		var failure *net.DNSError
		if errors.As(err, &failure) && failure.IsNotFound {
			return nil, nil
		}
		for i := range hosts {
			hosts[i] = net.JoinHostPort(hosts[i], port)
		}
		return hosts, err
	}
}

// Peers are the replicas of one server.
type Peers struct {
	log     *slog.Logger
	resolve Resolver
	hash    string // of the own address
	client  *http.Transport
	// encrypted says whether replicas are called over TLS, by config.
	encrypted func() bool
	config    *tls.Config
	settled   atomic.Bool
	pause     time.Duration
	waiting   chan struct{}

	mu      sync.Mutex // one lookup at a time
	at      time.Time
	known   map[string]string   // address by hash
	past    map[string]struct{} // hashes that are known to be gone
	unknown bool                // the last lookup failed
}

// New gives peers of a replica whose address is not known yet. A nil resolver
// means that there are none.
func New(resolve Resolver, log *slog.Logger) *Peers {
	p := &Peers{log: log, resolve: resolve, pause: pause, waiting: make(chan struct{}, maxWaiting), past: map[string]struct{}{}}
	p.settled.Store(resolve == nil)
	return p
}

// Encrypt makes requests go over TLS by config while wanted. It must be called
// before At.
func (p *Peers) Encrypt(wanted func() bool, config *tls.Config) {
	p.encrypted, p.config = wanted, config
}

// scheme of requests to other replicas.
func (p *Peers) scheme() string {
	if p.encrypted != nil && p.encrypted() {
		return "https"
	}
	return "http"
}

// At says where this replica is: HOST:PORT of its internal port, as its peers
// resolve it. It must be called before all else, or there are no peers.
func (p *Peers) At(self string) {
	if p.resolve == nil {
		return
	}
	p.hash = Hash(self)
	dialer := &net.Dialer{Timeout: dialTime}
	p.client = &http.Transport{
		// No proxy of the environment: this never leaves the cluster.
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			connection, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, errors.Join(ErrGone, err)
			}
			return connection, nil
		},
		TLSClientConfig:     p.config,
		MaxIdleConnsPerHost: idlePerPeer, IdleConnTimeout: time.Minute, DisableCompression: true,
	}
}

// Hash of an address.
func Hash(address string) string {
	sum := sha256.Sum256([]byte("espalier replica " + address))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:5]))
}

const hashLength = 8

func isHash(text string) bool {
	return len(text) == hashLength && strings.Trim(text, "abcdefghijklmnopqrstuvwxyz234567") == ""
}

// Self is this replica's own hash; empty when there are no peers.
func (p *Peers) Self() string { return p.hash }

// Find gives the address of the replica with a hash. It looks for one that it
// never knew for some seconds. The error is ErrGone, ErrUnknown or ctx's cause.
func (p *Peers) Find(ctx context.Context, hash string) (string, error) {
	if p.hash == "" || !isHash(hash) {
		return "", ErrGone
	}
	address, past, err := p.find(ctx, hash)
	if past || !errors.Is(err, ErrGone) {
		return address, err
	}
	select {
	case p.waiting <- struct{}{}:
		defer func() { <-p.waiting }()
	default:
		return "", ErrGone
	}
	timer := time.NewTimer(p.pause)
	defer timer.Stop()
	for range looks {
		select {
		case <-ctx.Done():
			return "", context.Cause(ctx)
		case <-timer.C:
			timer.Reset(p.pause)
		}
		if address, past, err = p.find(ctx, hash); past || !errors.Is(err, ErrGone) {
			return address, err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bury(hash)
	return "", ErrGone
}

// find looks once; past says that a hash is known to be gone.
func (p *Peers) find(ctx context.Context, hash string) (address string, past bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	age := time.Since(p.at)
	address, ok := p.known[hash]
	if age >= fresh || !ok && age >= p.pause {
		p.look(ctx)
		address, ok = p.known[hash]
	}
	_, past = p.past[hash]
	switch {
	case ok:
		return address, false, nil
	case p.unknown:
		return "", past, ErrUnknown
	}
	return "", past, ErrGone
}

// bury remembers that a hash is gone. The lock is held.
func (p *Peers) bury(hash string) {
	if len(p.past) >= maxPast {
		clear(p.past)
	}
	p.past[hash] = struct{}{}
}

// look looks the replicas up. What was known stays when that fails. The lock
// is held.
func (p *Peers) look(ctx context.Context) {
	// Others wait for it as well: one caller who leaves must not spoil it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookupTime)
	defer cancel()
	addresses, err := p.resolve(ctx)
	p.at, p.unknown = time.Now(), err != nil
	if err != nil {
		p.log.WarnContext(ctx, "Replicas cannot be looked up", "error", err.Error())
		return
	}
	known := make(map[string]string, len(addresses))
	for _, address := range addresses {
		known[Hash(address)] = address
	}
	for hash := range p.known {
		if _, still := known[hash]; !still {
			p.bury(hash)
		}
	}
	p.known = known
}

// Join waits until this replica finds itself among its peers, there is no
// Service for them, or ten seconds have passed: what it gives out before that,
// others may not find. It returns early when ctx ends.
func (p *Peers) Join(ctx context.Context) {
	deadline := time.Now().Add(joinTime)
	for p.hash != "" && !p.settled.Load() {
		p.mu.Lock()
		p.look(ctx)
		_, found := p.known[p.hash]
		found = found || !p.unknown && len(p.known) == 0
		p.mu.Unlock()
		if found || time.Now().After(deadline) {
			p.settled.Store(true)
			return
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// Settled reports whether Join is done.
func (p *Peers) Settled() bool { return p.hash == "" || p.settled.Load() }

// Close closes the connections that are idle.
func (p *Peers) Close() {
	if p.client != nil {
		p.client.CloseIdleConnections()
	}
}
