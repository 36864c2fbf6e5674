// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package mcpserver is the shared server: it serves the tools,
// resources and prompts of one catalog over MCP, in both eras of the protocol, and reports on itself. It knows
// nothing of Kubernetes but that its catalog and credentials are mounted.
package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/espalier-dev/espalier/internal/mcpserver/admin"
	"github.com/espalier-dev/espalier/internal/mcpserver/audit"
	"github.com/espalier-dev/espalier/internal/mcpserver/auth"
	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/mcpserver/catalogfile"
	"github.com/espalier-dev/espalier/internal/mcpserver/credentials"
	"github.com/espalier-dev/espalier/internal/mcpserver/engine"
	"github.com/espalier-dev/espalier/internal/mcpserver/handlers"
	"github.com/espalier-dev/espalier/internal/mcpserver/httpgate"
	"github.com/espalier-dev/espalier/internal/mcpserver/metrics"
	"github.com/espalier-dev/espalier/internal/mcpserver/peers"
	"github.com/espalier-dev/espalier/internal/mcpserver/registry"
	"github.com/espalier-dev/espalier/internal/mcpserver/serving"
	"github.com/espalier-dev/espalier/internal/mcpserver/session"
	"github.com/espalier-dev/espalier/internal/mcpserver/ssehttp"
	"github.com/espalier-dev/espalier/internal/mcpserver/stdio"
	"github.com/espalier-dev/espalier/internal/mcpserver/streamhttp"
	"github.com/espalier-dev/espalier/internal/mcpserver/transport"
	"github.com/espalier-dev/espalier/internal/mcpserver/upstream"
	"github.com/espalier-dev/espalier/internal/mcpserver/upstream/process"
	"github.com/espalier-dev/espalier/internal/mcpserver/websocket"
	"github.com/espalier-dev/espalier/internal/podreport"
	"github.com/espalier-dev/espalier/internal/serverconfig"
	"github.com/espalier-dev/espalier/internal/tracing"
)

// Options of a server. The zero value of each but the folders is usable.
type Options struct {
	// CatalogDir and CredentialsDir are the mounted folders.
	CatalogDir, CredentialsDir string
	// APIKeysDir holds a folder for each mounted Secret of API keys.
	APIKeysDir string
	// Listen and InternalListen are addresses of the two ports. One that is
	// empty is not opened.
	Listen, InternalListen string
	// DrainDelay is how long a stopping server still takes requests, until
	// all that send them have heard of it.
	DrainDelay time.Duration
	// ShutdownTimeout is how long running calls may take to finish after
	// that; then they are cancelled.
	ShutdownTimeout time.Duration
	Version         string
	Log             *slog.Logger
	// Transports beside those of HTTP that the catalog names.
	Transports []transport.Transport
	// Stdio, if set, is a client that started the server as its child.
	Stdio *Stdio
	// Extensions that this program declares beside those of the catalog.
	Extensions []serverconfig.Extension
	// Middleware wraps calls, inside of the limits, the first outermost.
	Middleware []call.Middleware
	// Peers resolves the internal addresses of this server's replicas; nil
	// means that there is one. Address is this one's among them, without the
	// port.
	Peers   peers.Resolver
	Address string
	// Reap takes in the processes that children leave behind.
	Reap bool
	// Upstreams is the timing of upstreams; the default when zero.
	Upstreams upstream.Timing
	// Audit has a line for each call; nil has none.
	Audit *audit.Log
	// Tracer makes a span of each call and of what it does; nil makes none.
	Tracer *tracing.Tracer
}

// Stdio is the pair of streams to a client.
type Stdio struct {
	In  io.Reader
	Out io.Writer
	// Token is the client's credential, for servers that want one.
	Token string
}

// Server is one server. It is started and stopped once.
type Server struct {
	options     Options
	log         *slog.Logger
	metrics     *metrics.Metrics
	registry    *registry.Registry
	engine      *engine.Engine
	credentials *credentials.Store
	factory     *handlers.Factory
	auth        *auth.Keeper
	gate        *httpgate.Gate
	serving     *serving.Keeper
	hidden      []string // extensions, as they were logged last
	watcher     *catalogfile.Watcher
	upstreams   *upstream.Manager
	peers       *peers.Peers
	loader      loader
	transports  []transport.Transport
	stdio       *stdio.Transport
	// settled is closed when there is something to serve over stdio.
	settled chan struct{}

	main, internal          *http.Server
	mainListen, adminListen net.Listener
	// composed: a snapshot is in place that has what upstreams brought at
	// their first answer.
	composed                 atomic.Bool
	draining                 atomic.Bool
	started                  atomic.Bool
	stop                     sync.Once
	stopErr                  error
	background               sync.WaitGroup
	cancelAll, cancelWatcher context.CancelFunc
	failed                   chan error
}

// New gives a server that is not started.
func New(options Options) *Server {
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{
		options: options, log: options.Log, metrics: metrics.New(options.Version), registry: registry.New(),
		credentials: credentials.New(options.CredentialsDir), failed: make(chan error, 2),
	}
	s.factory = handlers.NewFactory(s.credentials, "espalier/"+options.Version)
	s.factory.Tokens = s.metrics.Token
	s.auth = auth.NewKeeper(auth.Options{KeysDir: options.APIKeysDir, Client: s.factory.Client, Log: s.log})
	s.gate = httpgate.New(s.metrics)
	s.serving = serving.New(s.credentials, s.servingTLS, s.log)
	s.loader.changed = make(chan struct{}, 1)
	s.upstreams = upstream.New(upstream.Options{
		Client: s.factory.Client, Authorizer: s.factory.Authorizer, Operation: s.factory.Operation, Credentials: s.credentials,
		Changed: s.loader.wake, Updated: s.registry.ContentChanged,
		Version: options.Version, Log: s.log, Timing: options.Upstreams,
		Self: func() string { return s.peers.Self() },
	})
	s.factory.Upstreams = s.upstreams
	s.metrics.Register(s.upstreams.Collectors()...)
	s.peers = peers.New(options.Peers, s.log)
	s.peers.Encrypt(s.serving.Wanted, s.serving.Client())
	s.engine = engine.New(s.registry, s.metrics, s.log, options.Middleware...)
	s.engine.Trace(options.Tracer)
	s.engine.Audit(s.audited(options.Audit))
	s.metrics.Sessions(s.engine.Sessions().Len)
	s.engine.Sessions().OnEnd(func(ended *session.Session) { s.upstreams.SessionEnded(ended.ID) })
	s.engine.Sessions().OnRoots(func(told *session.Session) { s.upstreams.RootsChanged(told.ID) })
	s.watcher = catalogfile.New(options.CatalogDir, s.log, s.load, func(state podreport.CatalogState) { s.metrics.Reload(string(state)) })
	s.transports = append([]transport.Transport{streamhttp.New(s.metrics, s.peers, s.log), ssehttp.New(s.metrics, s.peers, s.log), websocket.New(s.metrics, s.log)}, options.Transports...)
	if options.Stdio != nil {
		s.settled = make(chan struct{})
		s.stdio = stdio.New(options.Stdio.In, options.Stdio.Out, options.Stdio.Token, s.settled, s.metrics, s.log)
		s.transports = append(s.transports, s.stdio)
	}
	return s
}

const (
	headerTimeout = 10 * time.Second
	idleTimeout   = 120 * time.Second
	maxHeader     = 64 << 10
	// grace is what cancelled calls get to end at a forced stop.
	grace = 2 * time.Second
)

// Start opens the ports and begins to watch the catalog. A second Start gives
// transport.ErrStarted.
func (s *Server) Start() error {
	if !s.started.CompareAndSwap(false, true) {
		return transport.ErrStarted
	}
	for _, t := range s.transports {
		if err := t.Start(s.engine); err != nil {
			return fmt.Errorf("start transport: %w", err)
		}
	}
	base, cancelAll := context.WithCancel(context.Background())
	if err := s.listen(base); err != nil {
		cancelAll()
		return err
	}
	s.join()
	watch, cancelWatcher := context.WithCancel(base)
	s.cancelAll, s.cancelWatcher = cancelAll, cancelWatcher
	s.main = s.newHTTP(base, http.HandlerFunc(s.encrypted))
	s.internal = s.newHTTP(base, admin.Handler(s, s.metrics.Handler(), peers.Receive(http.HandlerFunc(s.route))))
	s.background.Go(func() { s.watcher.Run(watch) })
	s.background.Go(func() { s.recompose(watch) })
	s.background.Go(func() { s.watchSources(watch) })
	s.background.Go(func() { s.engine.TellSessions(watch) })
	s.background.Go(func() { s.peers.Join(watch) })
	s.background.Go(func() { s.engine.Sessions().Run(watch) })
	if s.options.Reap {
		s.background.Go(func() { process.Reap(base) })
	}
	if s.stdio != nil {
		s.background.Go(func() { s.settle(watch) })
	}
	if s.mainListen != nil {
		s.serve(s.main, s.serving.Listen(s.mainListen))
	}
	if s.adminListen != nil {
		s.serve(s.internal, s.serving.ListenEither(s.adminListen))
	}
	return nil
}

const (
	// settleWithin is how long a client over stdio waits for a catalog and the
	// first answers of its upstreams.
	settleWithin = 10 * time.Second
	settleLook   = 20 * time.Millisecond
)

// settle lets the client over stdio in once the server is ready, or late.
func (s *Server) settle(ctx context.Context) {
	defer close(s.settled)
	ctx, cancel := context.WithTimeout(ctx, settleWithin)
	defer cancel()
	ticker := time.NewTicker(settleLook)
	defer ticker.Stop()
	for {
		if ready, _ := s.Ready(); ready {
			return
		}
		select {
		case <-ctx.Done():
			s.log.Warn("A client over stdio is let in although the server is not ready")
			return
		case <-ticker.C:
		}
	}
}

// Ended is closed when a client over stdio sends no more and all is answered;
// nil without one.
func (s *Server) Ended() <-chan struct{} {
	if s.stdio == nil {
		return nil
	}
	return s.stdio.Ended()
}

func (s *Server) listen(ctx context.Context) (err error) {
	var config net.ListenConfig
	if s.options.Listen != "" {
		if s.mainListen, err = config.Listen(ctx, "tcp", s.options.Listen); err != nil {
			return fmt.Errorf("listen: %w", err)
		}
	}
	if s.options.InternalListen != "" {
		if s.adminListen, err = config.Listen(ctx, "tcp", s.options.InternalListen); err != nil {
			if s.mainListen != nil {
				_ = s.mainListen.Close()
			}
			return fmt.Errorf("listen on the internal port: %w", err)
		}
	}
	return nil
}

// join says where this replica is. Ids of sessions tell whose they are.
func (s *Server) join() {
	if s.adminListen == nil {
		return // The others could not reach it.
	}
	if _, port, err := net.SplitHostPort(s.InternalAddr().String()); err == nil && s.options.Address != "" {
		s.peers.At(net.JoinHostPort(s.options.Address, port))
	}
	s.engine.Sessions().OwnedBy(s.peers.Self())
}

func (s *Server) newHTTP(base context.Context, h http.Handler) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		BaseContext: func(net.Listener) context.Context { return base },
		ErrorLog:    slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
}

func (s *Server) serve(server *http.Server, listener net.Listener) {
	s.background.Go(func() {
		if err := server.Serve(listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
			s.failed <- err
		}
	})
}

// Collectors are those of the server's metrics, for who describes them.
func (s *Server) Collectors() []prometheus.Collector { return s.metrics.Collectors() }

// Addr and InternalAddr are where a started server listens; a port that is not
// opened has none.
func (s *Server) Addr() net.Addr { return address(s.mainListen) }

// InternalAddr is the address of the internal port.
func (s *Server) InternalAddr() net.Addr { return address(s.adminListen) }

func address(l net.Listener) net.Addr {
	if l == nil {
		return nil
	}
	return l.Addr()
}

// Failed gives an error if a port stops serving by itself.
func (s *Server) Failed() <-chan error { return s.failed }

// Stop drains: not ready, a delay, streams end with their result, calls
// finish. When ctx ends, or after ShutdownTimeout, what still runs is
// cancelled. It is idempotent and may be called without Start.
func (s *Server) Stop(ctx context.Context) error {
	s.stop.Do(func() { s.stopErr = s.drain(ctx) })
	return s.stopErr
}

func (s *Server) drain(ctx context.Context) error {
	s.draining.Store(true)
	if !s.started.Swap(true) || s.main == nil {
		return nil
	}
	s.log.Info("Draining", "delay", s.options.DrainDelay.String())
	wait(ctx, s.options.DrainDelay)
	ctx, cancel := context.WithTimeout(ctx, s.options.ShutdownTimeout)
	defer cancel()
	s.cancelWatcher()
	s.registry.Close()
	s.engine.Sessions().Close()
	err := s.stopTransports(ctx)
	s.cancelAll()
	if err != nil {
		s.log.Warn("Calls were still running and are cancelled", "error", err.Error())
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
		defer cancel()
		_ = s.main.Shutdown(last)
	}
	_ = s.main.Close()
	// What other replicas passed on to here was answered: let it arrive.
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	_ = s.internal.Shutdown(last)
	_ = s.internal.Close()
	s.peers.Close()
	s.upstreams.Close()
	s.background.Wait()
	s.auth.Close()
	s.factory.Close()
	s.log.Info("Stopped")
	return err
}

// stopTransports stops all at once: the port waits for requests that end only
// with their transport.
func (s *Server) stopTransports(ctx context.Context) error {
	ended := make(chan error, len(s.transports))
	for _, t := range s.transports {
		go func() { ended <- t.Stop(ctx) }()
	}
	err := s.main.Shutdown(ctx)
	for range s.transports {
		err = errors.Join(err, <-ended)
	}
	return err
}

func wait(ctx context.Context, delay time.Duration) {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
