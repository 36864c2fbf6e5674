// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import "testing"

func TestURL(t *testing.T) {
	for spec, want := range map[string]string{
		`{}`: "http://weather-mcp.team-a.svc:8080/mcp",
		`transports: [{type: StreamableHTTP, path: /x}]`:                                       "http://weather-mcp.team-a.svc:8080/x",
		`transports: [{type: WebSocket}, {type: SSE, path: /events}]`:                          "http://weather-mcp.team-a.svc:8080/events",
		`transports: [{type: WebSocket}]`:                                                      "ws://weather-mcp.team-a.svc:8080/ws",
		`tls: {secretRef: {name: s}}`:                                                          "https://weather-mcp.team-a.svc:8080/mcp",
		`{transports: [{type: WebSocket}], tls: {secretRef: {name: s}}}`:                       "wss://weather-mcp.team-a.svc:8080/ws",
		`{type: Container, container: {image: i, port: 3000, path: /v1}}`:                      "http://weather-mcp.team-a.svc:8080/v1",
		`{type: External, external: {url: "https://mcp.example.com/mcp?token=s3cr3t"}}`:        "https://mcp.example.com/mcp",
		`{type: External, external: {url: "https://user:s3cr3t@mcp.example.com:8443/mcp#s3"}}`: "https://mcp.example.com:8443/mcp",
		`{type: External, external: {url: "https://%"}}`:                                       "",
	} {
		if got := URL(server(t, spec)); got != want {
			t.Errorf("URL of %s is %s, want %s", spec, got, want)
		}
	}
}

func TestTransports(t *testing.T) {
	for spec, want := range map[string]string{
		`{}`: "StreamableHTTP",
		`transports: [{type: WebSocket}, {type: SSE}, {type: StreamableHTTP}]`: "StreamableHTTP,SSE,WebSocket",
		`transports: [{type: SSE}]`:                        "SSE",
		`{type: Container, container: {image: i}}`:         "",
		`{type: External, external: {url: "https://a/b"}}`: "",
	} {
		if got := Transports(server(t, spec)); got != want {
			t.Errorf("transports of %s are %q, want %q", spec, got, want)
		}
	}
}

func TestReplicas(t *testing.T) {
	for spec, want := range map[string]int32{
		`{}`:                            1,
		`replicas: 0`:                   0,
		`replicas: 3`:                   3,
		`{replicas: 3, suspend: true}`:  0,
		`{replicas: 3, suspend: false}`: 3,
	} {
		s := server(t, spec)
		if got := Replicas(s); got != want {
			t.Errorf("replicas of %s: %d, want %d", spec, got, want)
		}
		if pdb := PodDisruptionBudget(s); (pdb != nil) != (want >= 2) {
			t.Errorf("disruption budget of %s: %v", spec, pdb)
		}
	}
}
