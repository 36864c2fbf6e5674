// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"net/url"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// Defaults of an MCPServer's catalog; API.md and the CRD's field docs state them.
const (
	defaultVersion         = "0.0.0"
	defaultPath            = "/mcp"
	defaultPathSSE         = "/sse"
	defaultPathWebSocket   = "/ws"
	defaultCacheSeconds    = 5
	defaultConcurrency     = 64
	defaultStreams         = 1024
	defaultCallTimeout     = 60
	defaultMaxMessageBytes = 10 << 20
)

// Selects reports whether r names server: by name, or by label.
func Selects(r mcpv1.Registration, server *mcpv1.MCPServer) bool {
	if r.GetNamespace() != server.Namespace {
		return false
	}
	spec := r.GetRegistrationSpec()
	if spec.ServerSelector == nil {
		return slices.ContainsFunc(spec.ServerRefs, func(ref mcpv1.ServerRef) bool { return ref.Name == server.Name })
	}
	selector, err := metav1.LabelSelectorAsSelector(spec.ServerSelector)
	return err == nil && !selector.Empty() && selector.Matches(labels.Set(server.Labels))
}

// Endpoint is where and how a server's clients call it. Of several transports
// it is the one that most clients know: StreamableHTTP, then SSE, then
// WebSocket, whatever order they are named in.
func Endpoint(server *mcpv1.MCPServer) (mcpv1.TransportType, string) {
	if c := server.Spec.Container; c != nil {
		if c.Path != "" {
			return mcpv1.TransportStreamableHTTP, c.Path
		}
		return mcpv1.TransportStreamableHTTP, defaultPath
	}
	first := Transports(server)[0]
	return mcpv1.TransportType(first.Type), first.Path
}

// known are the transports, the most common first.
var known = []struct {
	kind mcpv1.TransportType
	path string
}{
	{mcpv1.TransportStreamableHTTP, defaultPath},
	{mcpv1.TransportSSE, defaultPathSSE},
	{mcpv1.TransportWebSocket, defaultPathWebSocket},
}

// Transports of a server that Espalier stands in front of, in the order of
// Endpoint: the catalog does not change when the list is written in another.
func Transports(server *mcpv1.MCPServer) []serverconfig.Transport {
	var out []serverconfig.Transport
	for _, k := range known {
		for _, t := range server.Spec.Transports {
			if t.Type != k.kind {
				continue
			}
			out = append(out, serverconfig.Transport{Type: serverconfig.TransportType(t.Type), Path: cmp.Or(t.Path, k.path)})
		}
	}
	if out == nil {
		out = []serverconfig.Transport{{Type: serverconfig.TransportStreamableHTTP, Path: defaultPath}}
	}
	return out
}

func serverInfo(server *mcpv1.MCPServer) serverconfig.ServerInfo {
	out := serverconfig.ServerInfo{Name: server.Name, Version: defaultVersion}
	if in := server.Spec.ServerInfo; in != nil {
		out.Title, out.Instructions = in.Title, in.Instructions
		if in.Name != "" {
			out.Name = in.Name
		}
		if in.Version != "" {
			out.Version = in.Version
		}
	}
	return out
}

// allowedOrigins are those of cors and that of publicURL, sorted.
func allowedOrigins(server *mcpv1.MCPServer) []string {
	var out []string
	if server.Spec.CORS != nil {
		out = slices.Clone(server.Spec.CORS.AllowedOrigins)
	}
	if u, err := url.Parse(server.Spec.PublicURL); err == nil && u.Host != "" {
		out = append(out, u.Scheme+"://"+u.Host)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func limits(server *mcpv1.MCPServer) serverconfig.Limits {
	out := serverconfig.Limits{
		Concurrency: defaultConcurrency, Streams: defaultStreams,
		CallTimeoutSeconds: defaultCallTimeout, MaxMessageBytes: defaultMaxMessageBytes,
	}
	in := server.Spec.Limits
	if in == nil {
		return out
	}
	set(&out.Concurrency, in.Concurrency)
	set(&out.Streams, in.Streams)
	set(&out.CallTimeoutSeconds, in.CallTimeoutSeconds)
	set(&out.MaxMessageBytes, in.MaxMessageBytes)
	set(&out.RequestsPerSecond, in.RequestsPerSecond)
	out.Burst = 2 * out.RequestsPerSecond
	set(&out.Burst, in.Burst)
	return out
}

// sessions are left out when nothing is said of them: the server has defaults.
func sessions(server *mcpv1.MCPServer) *serverconfig.Sessions {
	in := server.Spec.Sessions
	if in == nil {
		return nil
	}
	out := new(serverconfig.Sessions)
	set(&out.Max, in.Max)
	set(&out.IdleSeconds, in.IdleSeconds)
	return out
}

func set[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}
