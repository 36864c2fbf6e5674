// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Command server is the program of the shared server image.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/espalier-dev/espalier/internal/mcpserver"
	"github.com/espalier-dev/espalier/internal/mcpserver/audit"
	"github.com/espalier-dev/espalier/internal/mcpserver/peers"
	"github.com/espalier-dev/espalier/internal/memorylimit"
	"github.com/espalier-dev/espalier/internal/tracing/otlp"
	"github.com/espalier-dev/espalier/internal/version"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run is main with its surroundings given. It returns the exit status.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) > 0 && args[0] == "install" {
		return install(args[1:], stderr)
	}
	flags := flag.NewFlagSet("server", flag.ContinueOnError)
	flags.SetOutput(stderr)
	options := mcpserver.Options{Version: version.Version}
	flags.StringVar(&options.CatalogDir, "catalog", "/etc/espalier/catalog", "folder of the mounted catalog")
	flags.StringVar(&options.CredentialsDir, "credentials", "/etc/espalier/credentials", "folder of the mounted credentials")
	flags.StringVar(&options.APIKeysDir, "api-keys", "/etc/espalier/api-keys", "folder of the mounted Secrets of API keys")
	flags.StringVar(&options.Listen, "listen", ":8080", "address that clients call")
	flags.StringVar(&options.InternalListen, "internal-listen", ":8081", "address of report, health, readiness and metrics")
	flags.StringVar(&options.Address, "pod-ip", os.Getenv("ESPALIER_POD_IP"), "this replica's address among its peers")
	service := flags.String("peers", os.Getenv("ESPALIER_PEERS"), "name of the headless Service of this server's replicas")
	flags.DurationVar(&options.DrainDelay, "drain-delay", 5*time.Second, "how long a stopping server still takes new requests")
	flags.DurationVar(&options.ShutdownTimeout, "shutdown-timeout", 50*time.Second, "how long running calls may take after that")
	var level slog.Level
	flags.TextVar(&level, "log-level", slog.LevelInfo, "DEBUG, INFO, WARN or ERROR")
	flags.BoolVar(&options.Reap, "reap", false, "take in the processes that children leave behind, as the first of a container must")
	transports := flags.String("transport", transportHTTP, transportHTTP+": the transports that the catalog names, on ports; "+
		transportStdio+": stdin and stdout alone, for a client that starts the server as its child")
	auditTarget := flags.String("audit-log", os.Getenv("ESPALIER_AUDIT_LOG"), "where a line of JSON for each call goes: stdout, or the absolute path of a file; empty is nowhere")
	auditParams := flags.String("audit-arguments", os.Getenv("ESPALIER_AUDIT_ARGUMENTS"), "true: those lines have the arguments of calls")
	showVersion := flags.Bool("version", false, "print the version and exit")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if *showVersion {
		_, _ = fmt.Fprintln(stdout, version.Version)
		return 0
	}
	if flags.NArg() > 0 {
		_, _ = fmt.Fprintf(stderr, "unexpected argument %q\n", flags.Arg(0))
		return 2
	}
	if err := choose(*transports, flags, &options, stdin, stdout); err != nil {
		_, _ = fmt.Fprintln(stderr, err)
		return 2
	}
	var err error
	if options.Audit, err = openAudit(*auditTarget, *auditParams, *transports, stdout); err != nil {
		_, _ = fmt.Fprintln(stderr, err)
		return 2
	}
	defer func() { _ = options.Audit.Close() }()
	if _, port, err := net.SplitHostPort(options.InternalListen); err == nil && *service != "" {
		options.Peers = peers.DNS(*service, port)
	}
	options.Log = slog.New(slog.NewJSONHandler(stderr, &slog.HandlerOptions{Level: level}))
	traces := trace(options.Log)
	defer traces.Close()
	options.Tracer = traces.Tracer()
	return serve(options)
}

// openAudit opens the audit log. A server that is to keep one and cannot does
// not start.
func openAudit(target, params, transports string, stdout io.Writer) (*audit.Log, error) {
	if transports == transportStdio {
		stdout = nil // It is the client's.
	}
	return audit.Open(target, params, stdout)
}

// trace has spans sent as OTEL_* says; nil when it does not want them. What
// cannot be understood there is no reason not to serve.
func trace(log *slog.Logger) *otlp.Provider {
	instance, _ := os.Hostname() // The pod's name. Empty says nothing.
	provider, err := otlp.Start(context.Background(), otlp.Options{
		Getenv: os.Getenv, Service: "espalier-server", Version: version.Version, Instance: instance,
		Undelivered: func(cause string) { log.Warn("Spans could not be delivered", "cause", cause) },
	})
	switch {
	case err != nil:
		log.Error("Tracing stays off", "error", err.Error())
	case provider != nil:
		log.Info("Tracing is on")
	}
	return provider
}

// tokenVariable holds the credential of a client over stdio.
const tokenVariable = "ESPALIER_TOKEN"

// Values of --transport.
const (
	transportHTTP  = "http"
	transportStdio = "stdio"
)

// choose turns --transport into options. With stdio no port is opened but
// those that are asked for, and nobody has to hear of the end.
func choose(transports string, flags *flag.FlagSet, options *mcpserver.Options, stdin io.Reader, stdout io.Writer) error {
	switch transports {
	case transportHTTP:
		return nil
	case transportStdio:
	default:
		return fmt.Errorf("--transport is %s or %s, not %q", transportHTTP, transportStdio, transports)
	}
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if !given["listen"] {
		options.Listen = ""
	}
	if !given["internal-listen"] {
		options.InternalListen = ""
	}
	if !given["drain-delay"] {
		options.DrainDelay = 0
	}
	options.Stdio = &mcpserver.Stdio{In: stdin, Out: stdout, Token: os.Getenv(tokenVariable)}
	return nil
}

// serve runs the server until SIGTERM, SIGINT or the end of stdin where that
// is a client; a second signal ends the drain at once.
func serve(options mcpserver.Options) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	memorylimit.Follow(ctx, options.Log)
	stop := make(chan os.Signal, 2)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	defer signal.Stop(stop)
	server := mcpserver.New(options)
	if err := server.Start(); err != nil {
		options.Log.Error("Server cannot start", "error", err.Error())
		return 1
	}
	options.Log.Info("Server started", "version", options.Version, "listen", text(server.Addr()), "internalListen", text(server.InternalAddr()))
	code := 0
	select {
	case <-stop:
	case <-server.Ended():
	case err := <-server.Failed():
		options.Log.Error("Port stopped serving", "error", err.Error())
		code = 1
	}
	go func() {
		select {
		case <-stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	// Calls that outlast the grace were cancelled and logged: what was asked
	// for has happened.
	_ = server.Stop(ctx)
	return code
}

// text of an address, empty for a port that is not opened.
func text(a net.Addr) string {
	if a == nil {
		return ""
	}
	return a.String()
}
