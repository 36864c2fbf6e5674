// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

// TestObserved runs the program with the variables that a pod would have: a
// call over stdio reaches a collector as a span, and a file as a line.
func TestObserved(t *testing.T) {
	received := make(chan []string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		request := &collector.ExportTraceServiceRequest{}
		if err != nil || proto.Unmarshal(body, request) != nil {
			t.Errorf("received what is no request for export: %v", err)
		}
		for _, resource := range request.ResourceSpans {
			names := []string{}
			for _, a := range resource.Resource.Attributes {
				if a.Key == "service.name" {
					names = append(names, a.Value.GetStringValue())
				}
			}
			for _, scope := range resource.ScopeSpans {
				for _, span := range scope.Spans {
					names = append(names, span.Name)
				}
			}
			received <- names
		}
	}))
	defer server.Close()
	book := filepath.Join(t.TempDir(), "audit.log")
	command := overStdio(t)
	command.Env = append(command.Env, "OTEL_EXPORTER_OTLP_ENDPOINT="+server.URL, "ESPALIER_AUDIT_LOG="+book, "ESPALIER_AUDIT_ARGUMENTS=true")
	stdout, stderr := observedCall(t, command)
	if got := strings.Join(<-received, ","); got != "espalier-server,execute_tool ping,tools/call ping" {
		t.Errorf("the collector got %s; the log is %s", got, stderr)
	}
	raw, err := os.ReadFile(book)
	var line struct {
		Tool, Outcome, Server, TraceID string
		Params                         json.RawMessage
	}
	if err != nil || json.Unmarshal(raw, &line) != nil || line.Tool != "ping" || line.Outcome != "ok" || line.Server != "desk" || len(line.TraceID) != 32 || string(line.Params) != `{"n":1}` {
		t.Errorf("the audit log is %q, %v", raw, err)
	}
	if strings.Count(stdout, "\n") != 1 || !strings.Contains(stdout, `"pong"`) {
		t.Errorf("the client got %q", stdout)
	}
}

// TestTracingStaysOff: what cannot be understood is named, and the server
// serves.
func TestTracingStaysOff(t *testing.T) {
	command := overStdio(t)
	command.Env = append(command.Env, "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc")
	if stdout, stderr := observedCall(t, command); !strings.Contains(stdout, `"pong"`) || !strings.Contains(stderr, "Tracing stays off") || !strings.Contains(stderr, "OTEL_EXPORTER_OTLP_PROTOCOL") {
		t.Errorf("answered %q; the log is %s", stdout, stderr)
	}
}

// observedCall has command answer one call.
func observedCall(t *testing.T, command *exec.Cmd) (stdout, stderr string) {
	t.Helper()
	command.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ping","arguments":{"n":1},` +
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}` + "\n")
	var out, log bytes.Buffer
	command.Stdout, command.Stderr = &out, &log
	if err := command.Run(); err != nil {
		t.Fatalf("%v: %s", err, log.String())
	}
	return out.String(), log.String()
}
