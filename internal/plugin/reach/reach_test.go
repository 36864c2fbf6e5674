// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"context"
	"crypto/tls"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/mcpprobe/fakemcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/serving/servingtest"
	"github.com/espalier-dev/espalier/internal/plugin/env"
	"github.com/espalier-dev/espalier/internal/setup"
)

func serverOf(t *testing.T, spec string) *mcpv1.MCPServer {
	t.Helper()
	server := &mcpv1.MCPServer{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"}}
	if err := yaml.UnmarshalStrict([]byte(spec), &server.Spec); err != nil {
		t.Fatal(err)
	}
	return server
}

// podOf server s; ready is PodReady, and the containers are ready either way.
func podOf(name string, ready corev1.ConditionStatus) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{mcpv1.LabelServer: "s"}},
		Status: corev1.PodStatus{PodIP: "10.0.0.1", Conditions: []corev1.PodCondition{
			{Type: corev1.ContainersReady, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: ready},
		}},
	}
}

func clusterWith(t *testing.T, api *fakeAPI, objects ...client.Object) *cluster {
	t.Helper()
	c := &cluster{client: fake.NewClientBuilder().WithScheme(setup.Scheme()).WithObjects(objects...).Build()}
	if api != nil {
		c.forward = forwardBy(api.config())
	}
	return c
}

// serve starts a fake MCP server and gives its address.
func serve(t *testing.T, modern bool, name string) (*fakemcp.Server, string) {
	t.Helper()
	s := fakemcp.New()
	s.Settings.Name, s.Settings.Modern, s.Settings.Legacy = name, modern, !modern
	s.Settings.Tools = append(s.Settings.Tools, fakemcp.Tool(name))
	web := httptest.NewServer(s)
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
	})
	return s, web.Listener.Addr().String()
}

func listed(t *testing.T, p *Endpoint) string {
	t.Helper()
	ctx := deadline(t)
	session, err := Session(ctx, p, nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, env.HintOf(err))
	}
	defer session.Close(ctx)
	lists, err := session.Lists(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range lists.Tools {
		names = append(names, tool.Name)
	}
	return strings.Join(names, ",")
}

// TestReplicas: each one is talked to by itself, in both eras, under the host
// of the Service; what does not run is left out.
func TestReplicas(t *testing.T) {
	api := newFakeAPI(t)
	gone := podOf("b", corev1.ConditionTrue)
	gone.Status.Conditions[0].Status = corev1.ConditionFalse
	c := clusterWith(t, api, podOf("c", corev1.ConditionFalse), podOf("a", corev1.ConditionTrue), gone)
	replicas, err := c.replicas(t.Context(), serverOf(t, `{type: Container, container: {image: x, port: 9000, path: /x}, probe: {headers: [{name: X, value: "operator's"}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	if len(replicas) != 2 || replicas[0].Pod != "a" || replicas[1].Pod != "c" || replicas[0].URL != "http://s-mcp.ns.svc:8080/x" {
		t.Fatalf("got %+v", replicas)
	}
	for i, p := range replicas {
		s, address := serve(t, i == 0, p.Pod)
		api.set("ns/"+p.Pod+":9000", address)
		if got := listed(t, p); got != "alpha,"+p.Pod {
			t.Errorf("%s lists %q", p.Pod, got)
		}
		for _, r := range s.Requests() {
			if r.Host != "s-mcp.ns.svc:8080" || r.Path != "/x" || r.Header.Get("X") != "" {
				t.Errorf("%s got host %q, path %q, header %q", p.Pod, r.Host, r.Path, r.Header)
			}
		}
	}
}

// TestNoReplica says why there is none.
func TestNoReplica(t *testing.T) {
	tests := map[string]struct{ spec, want, hint string }{
		"none":      {`{}`, "has no pods", "kubectl mcp why s -n ns"},
		"zero":      {`{replicas: 0}`, "scaled to zero", "kubectl scale mcpserver s -n ns --replicas=1"},
		"suspended": {`{suspend: true}`, "suspended", "spec.suspend"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := clusterWith(t, nil).replicas(t.Context(), serverOf(t, test.spec))
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(env.HintOf(err), test.hint) {
				t.Errorf("got %v, hint %q", err, env.HintOf(err))
			}
		})
	}
}

// TestAny: a server as a whole keeps to one replica while that is ready, goes
// on at another, and waits for one that comes.
func TestAny(t *testing.T) {
	api := newFakeAPI(t)
	a, b := podOf("a", corev1.ConditionTrue), podOf("b", corev1.ConditionTrue)
	c := clusterWith(t, api, a)
	for _, pod := range []string{"a", "b"} {
		_, address := serve(t, pod == "a", pod)
		api.set("ns/"+pod+":8080", address)
	}
	p, err := c.whole(t.Context(), serverOf(t, `{}`))
	if err != nil {
		t.Fatal(err)
	}
	expect := func(want string) {
		t.Helper()
		if got := listed(t, p); got != "alpha,"+want {
			t.Errorf("got %q, want %s", got, want)
		}
	}
	ctx := deadline(t)
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	expect("a")
	do(c.client.Create(ctx, b))
	do(c.client.Delete(ctx, a))
	expect("b")
	do(c.client.Create(ctx, podOf("a", corev1.ConditionTrue)))
	expect("b")
	do(c.client.Delete(ctx, b))
	expect("a")
}

// TestAnyWaits: for a replica that is not there when the dial begins.
func TestAnyWaits(t *testing.T) {
	api := newFakeAPI(t)
	_, address := serve(t, true, "late")
	api.set("ns/late:8080", address)
	c := clusterWith(t, api)
	watched := make(chan struct{}, 64)
	c.client = interceptor.NewClient(c.client, interceptor.Funcs{
		Watch: func(ctx context.Context, w client.WithWatch, list client.ObjectList, opts ...client.ListOption) (watchInterface, error) {
			out, err := w.Watch(ctx, list, opts...)
			watched <- struct{}{}
			return out, err
		},
	})
	p, err := c.whole(t.Context(), serverOf(t, `{}`))
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		<-watched
		_ = c.client.Create(context.Background(), podOf("late", corev1.ConditionTrue))
	}()
	if got := listed(t, p); got != "alpha,late" {
		t.Errorf("got %q", got)
	}
}

// TestAnyGivesUp: with what to do, when the time is over.
func TestAnyGivesUp(t *testing.T) {
	p, err := clusterWith(t, newFakeAPI(t), podOf("a", corev1.ConditionFalse)).whole(t.Context(), serverOf(t, `{}`))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithDeadline(t.Context(), timeZero)
	defer cancel()
	if _, err := p.DialContext(ctx, "tcp", ""); err == nil || !strings.Contains(env.HintOf(err), "kubectl mcp why s -n ns") {
		t.Errorf("got %v", err)
	}
}

// TestExternal: with the headers that the spec names, as far as the user may
// read them, dialled from here.
func TestExternal(t *testing.T) {
	s, address := serve(t, true, "far")
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "k"}, Data: map[string][]byte{"t": []byte("sesame\n")}}
	server := serverOf(t, `{type: External, external: {url: "http://`+address+`/mcp?key=q", headers: [{name: Authorization, prefix: "Bearer ", secretKeyRef: {name: k, key: t}}, {name: X-Other, secretKeyRef: {name: none, key: t}}]}}`)
	replicas, err := clusterWith(t, nil, secret).replicas(t.Context(), server)
	if err != nil || len(replicas) != 1 {
		t.Fatal(replicas, err)
	}
	p := replicas[0]
	if got := listed(t, p); got != "alpha,far" {
		t.Errorf("got %q", got)
	}
	if r := s.Requests()[0]; r.Header.Get("Authorization") != "Bearer sesame" || !p.Credential {
		t.Errorf("sent %q", r.Header)
	}
	if p.Name() != "http://"+address+"/mcp" {
		t.Errorf("named %s", p.Name())
	}
	if want := []string{"Secret none does not exist"}; !slices.Equal(p.unread, want) {
		t.Errorf("unread %q", p.unread)
	}
}

// TestExternalInside: one that is a Service of the cluster is reached as pods
// are.
func TestExternalInside(t *testing.T) {
	api := newFakeAPI(t)
	s, address := serve(t, true, "inside")
	api.set("other/p-2:9000", address)
	meta := metav1.ObjectMeta{Namespace: "other", Name: "web", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}}
	yes, no, name, port := true, false, "mcp", int32(9000)
	pod := func(name string, ready *bool) discoveryv1.Endpoint {
		return discoveryv1.Endpoint{TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: name}, Conditions: discoveryv1.EndpointConditions{Ready: ready}}
	}
	c := clusterWith(t, api,
		&corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "other", Port: 81}, {Name: "mcp", Port: 80}}}},
		&discoveryv1.EndpointSlice{ObjectMeta: meta, Ports: []discoveryv1.EndpointPort{{Name: &name, Port: &port}},
			Endpoints: []discoveryv1.Endpoint{pod("p-1", &no), pod("p-2", &yes)}})
	p, err := c.whole(t.Context(), serverOf(t, `{type: External, external: {url: "http://web.other.svc.cluster.local/mcp"}}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := listed(t, p); got != "alpha,inside" || s.Requests()[0].Host != "web.other.svc.cluster.local" {
		t.Errorf("got %q", got)
	}
	for url, want := range map[string]string{
		"http://none.other.svc/mcp": "no such Service", "http://web.other.svc:82/mcp": "no port 82", "http://web.other.svc:81/mcp": "no pod behind Service other/web",
	} {
		p, err := c.whole(t.Context(), serverOf(t, `{type: External, external: {url: "`+url+`"}}`))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.DialContext(deadline(t), "tcp", ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// TestTLS: the certificate is verified by what the spec names, for the name of
// the Service, or by what the user gives.
func TestTLS(t *testing.T) {
	authority, err := servingtest.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	cert, key, err := authority.Issue("s-mcp.ns.svc", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewUnstartedServer(fakemcp.New())
	web.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	web.StartTLS()
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
	})
	api := newFakeAPI(t)
	api.set("ns/a:8080", web.Listener.Addr().String())
	secret := func(data map[string][]byte) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web-tls"}, Data: data}
	}
	server := serverOf(t, `{tls: {secretRef: {name: web-tls}}}`)
	pod := podOf("a", corev1.ConditionTrue)
	p, err := clusterWith(t, api, pod, secret(map[string][]byte{"ca.crt": authority.PEM})).whole(t.Context(), server)
	if err != nil {
		t.Fatal(err)
	}
	if got := listed(t, p); got != "alpha" || !strings.HasPrefix(p.URL, "https://") {
		t.Errorf("%s lists %q", p.URL, got)
	}
	if p, err = clusterWith(t, api, pod).whole(t.Context(), server); err != nil {
		t.Fatal(err)
	}
	if _, err := Session(deadline(t), p, nil); err == nil || !strings.Contains(env.HintOf(err), "--server-ca FILE") || !strings.Contains(env.HintOf(err), "Secret web-tls does not exist") {
		t.Errorf("got %v, hint %q", err, env.HintOf(err))
	}
	file := filepath.Join(t.TempDir(), "ca")
	if err := os.WriteFile(file, authority.PEM, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := parsed(t, "--server-ca", file).Apply(nil, p); err != nil {
		t.Fatal(err)
	}
	if got := listed(t, p); got != "alpha" {
		t.Errorf("lists %q", got)
	}
	if _, err := clusterWith(t, api, pod, secret(map[string][]byte{"ca.crt": []byte("no")})).whole(t.Context(), server); err == nil || !strings.Contains(err.Error(), "cannot be used") {
		t.Errorf("got %v", err)
	}
}

// TestExplain: errors have names, what to try, and no control characters.
func TestExplain(t *testing.T) {
	refusing, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refused := refusing.Addr().String()
	refusing.Close()
	s, address := serve(t, false, "x")
	tests := map[string]struct{ mode, address, want, hint string }{
		"refused": {"ok", refused, "nothing listens at the address (ConnectionRefused)", "kubectl mcp why"},
		"auth":    {"auth", address, "wants a credential (AuthRequired (HTTP 401))", "--token-file"},
		"html":    {"html", address, "no MCP message (NotMCP (HTTP 200))", "kubectl mcp probe"},
		"refuse":  {"refuse", address, "refused the handshake (HandshakeRejected (HTTP 200)): error -32603: no", "kubectl mcp probe"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if err := s.SetMode(test.mode); err != nil {
				t.Fatal(err)
			}
			_, err := Session(deadline(t), Direct("http://"+test.address+"/mcp?key=secret", mcpprobe.TransportAuto), nil)
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(env.HintOf(err), test.hint) || strings.Contains(err.Error(), "secret") {
				t.Errorf("got %v\nhint %q", err, env.HintOf(err))
			}
		})
	}
}
