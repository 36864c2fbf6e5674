// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/coder/websocket"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/test/e2e/harness"
)

const (
	allowedOrigin = "https://app.example.com"
	foreignOrigin = "https://evil.example.com"
)

func over(types ...v1alpha1.TransportType) func(*v1alpha1.MCPServer) {
	return func(s *v1alpha1.MCPServer) {
		for _, t := range types {
			s.Spec.Transports = append(s.Spec.Transports, v1alpha1.Transport{Type: t})
		}
	}
}

// callSSE calls the tool echo by a client that knows HTTP with SSE.
func callSSE(ctx context.Context, base, word string) string {
	GinkgoHelper()
	client := sdk.NewClient(&sdk.Implementation{Name: "espalier-e2e", Version: "0"}, nil)
	session, err := client.Connect(ctx, &sdk.SSEClientTransport{Endpoint: base + "/sse"}, nil)
	Expect(err).NotTo(HaveOccurred(), base)
	defer session.Close()
	result, err := session.CallTool(ctx, &sdk.CallToolParams{Name: "echo", Arguments: map[string]any{"word": word}})
	Expect(err).NotTo(HaveOccurred(), base)
	return result.Content[0].(*sdk.TextContent).Text
}

// callWebSocket calls the tool echo in a message of the modern era.
func callWebSocket(ctx context.Context, base, word string) string {
	GinkgoHelper()
	socket, _, err := websocket.Dial(ctx, strings.Replace(base, "http:", "ws:", 1)+"/ws", &websocket.DialOptions{
		Subprotocols: []string{"mcp"}, HTTPHeader: http.Header{"Origin": {allowedOrigin}},
	})
	Expect(err).NotTo(HaveOccurred(), base)
	defer socket.CloseNow() //nolint:errcheck // The test is over then.
	call, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": mcp.MethodToolsCall, "params": map[string]any{
		"name": "echo", "arguments": map[string]any{"word": word},
		"_meta": map[string]any{mcp.MetaProtocolVersion: mcp.Version20260728, mcp.MetaClientCapabilities: map[string]any{}},
	}})
	Expect(err).NotTo(HaveOccurred())
	Expect(socket.Write(ctx, websocket.MessageText, call)).To(Succeed())
	_, raw, err := socket.Read(ctx)
	Expect(err).NotTo(HaveOccurred(), base)
	var answer struct {
		Result harness.Answer `json:"result"`
	}
	Expect(json.Unmarshal(raw, &answer)).To(Succeed())
	return answer.Result.Text()
}

var _ = Describe("Transports", func() {
	// knock makes a request as a browser does, and gives status and CORS header.
	knock := func(ctx context.Context, method, url, host, origin string, upgrade bool) (int, string) {
		GinkgoHelper()
		r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader("{}"))
		Expect(err).NotTo(HaveOccurred())
		r.Host = host
		r.Header.Set("Origin", origin)
		r.Header.Set("Content-Type", "application/json")
		if upgrade {
			for name, value := range map[string]string{"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="} {
				r.Header.Set(name, value)
			}
		}
		resp, err := http.DefaultTransport.RoundTrip(r)
		Expect(err).NotTo(HaveOccurred())
		defer resp.Body.Close()
		return resp.StatusCode, resp.Header.Get("Access-Control-Allow-Origin")
	}

	It("lead to one server on one port, and none lets a foreign page in", func(ctx SpecContext) {
		ns := cluster.Namespace(ctx, "transports")
		ns.Create(ctx, harness.Server("ways", 2, over(v1alpha1.TransportWebSocket, v1alpha1.TransportSSE, v1alpha1.TransportStreamableHTTP), func(s *v1alpha1.MCPServer) {
			s.Spec.CORS = &v1alpha1.CORS{AllowedOrigins: []string{allowedOrigin}}
		}), harness.Tool("echo", "ways", harness.Says("args.word")))
		server := ns.AwaitServer(ctx, "ways", harness.ReadyTimeout, harness.Ready)
		Expect(server.Status.Transports).To(Equal("StreamableHTTP,SSE,WebSocket"))
		Expect(server.Status.URL).To(Equal("http://" + ns.Host("ways") + "/mcp"))
		ns.AwaitTool(ctx, "echo", harness.ServedTimeout, harness.Served)

		peers := append(ns.Peers(ctx, "ways"), ns.ServicePeer(ctx, "ways"))
		Expect(peers).To(HaveLen(3))
		for _, p := range peers {
			base := strings.TrimSuffix(p.URL, "/mcp")
			By("a client of each transport at " + p.Name)
			answer, err := p.Call(ctx, "echo", map[string]any{"word": "http"})
			Expect(err).NotTo(HaveOccurred())
			Expect(answer.Text()).To(Equal("http"))
			Expect(callSSE(ctx, base, "sse")).To(Equal("sse"))
			Expect(callWebSocket(ctx, base, "ws")).To(Equal("ws"))

			By("a page at " + p.Name)
			for _, host := range []string{p.Host, strings.TrimPrefix(base, "http://"), "evil.example.com"} {
				for _, origin := range []string{foreignOrigin, "http://" + p.Host, base, "null"} {
					for _, k := range []struct {
						method, path string
						upgrade      bool
					}{
						{http.MethodPost, "/mcp", false}, {http.MethodGet, "/mcp", false}, {http.MethodDelete, "/mcp", false}, {http.MethodOptions, "/mcp", false},
						{http.MethodGet, "/sse", false}, {http.MethodPost, "/sse?sessionId=x", false}, {http.MethodOptions, "/sse", false},
						{http.MethodGet, "/ws", true}, {http.MethodGet, "/ws", false}, {http.MethodOptions, "/ws", false},
					} {
						status, cors := knock(ctx, k.method, base+k.path, host, origin, k.upgrade)
						Expect([]any{status, cors}).To(Equal([]any{http.StatusForbidden, ""}), "%s %s of %s from %s", k.method, k.path, host, origin)
					}
				}
				for _, path := range []string{"/mcp", "/sse", "/ws"} {
					status, cors := knock(ctx, http.MethodOptions, base+path, host, allowedOrigin, false)
					Expect([]any{status, cors}).To(Equal([]any{http.StatusNoContent, allowedOrigin}), "preflight of %s", path)
				}
			}
		}
		ns.Show(ctx, "One server over three transports")
	}, SpecTimeout(4*time.Minute))

	It("are proved where they are all that a server offers", func(ctx SpecContext) {
		ns := cluster.Namespace(ctx, "transports")
		older := harness.Container("older", 1, harness.EverythingImage, "sse")
		older.Spec.Container.Port, older.Spec.Container.Path = harness.To(int32(3001)), "/sse"
		older.Spec.Workload.Env = []corev1.EnvVar{{Name: "PORT", Value: "3001"}}
		front := harness.Server("front", 1, func(s *v1alpha1.MCPServer) {
			for _, name := range []string{"by-sse", "by-ws"} {
				s.Spec.Upstreams = append(s.Spec.Upstreams, v1alpha1.Upstream{Name: name, Prefix: strings.TrimPrefix(name, "by-") + "_", ServerRef: &v1alpha1.UpstreamServerRef{Name: name}})
			}
		})
		ns.Create(ctx, older, front,
			harness.Server("by-sse", 2, over(v1alpha1.TransportSSE)), harness.Server("by-ws", 1, over(v1alpha1.TransportWebSocket)),
			harness.Tool("echo", "by-sse", harness.Says("args.word")), harness.Tool("echo-ws", "by-ws", harness.Says("args.word")))
		for name, want := range map[string][]any{
			"by-sse": {"SSE", "http://" + ns.Host("by-sse") + "/sse", 1},
			"by-ws":  {"WebSocket", "ws://" + ns.Host("by-ws") + "/ws", 1},
			"older":  {"SSE", "http://" + ns.Host("older") + "/sse", everythingTools},
		} {
			server := ns.AwaitServer(ctx, name, harness.ImageTimeout, harness.Ready)
			Expect([]any{server.Status.Transports, server.Status.URL}).To(Equal(want[:2]), name)
			Expect(server.Status.ToolCount).To(HaveValue(BeEquivalentTo(want[2])), name)
		}
		By("they are upstreams of another")
		ns.AwaitServer(ctx, "front", harness.ReadyTimeout, harness.Ready, harness.Is(v1alpha1.ConditionUpstreamsReady, "True"))
		for _, tool := range []string{"sse_echo", "ws_echo-ws"} {
			answer, err := ns.ServicePeer(ctx, "front").Call(ctx, tool, map[string]any{"word": tool})
			Expect(err).NotTo(HaveOccurred())
			Expect(answer.Text()).To(Equal(tool))
		}
		ns.Show(ctx, "Servers over SSE and WebSocket, and one in front of them")
	}, SpecTimeout(6*time.Minute))
})
