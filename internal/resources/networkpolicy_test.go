// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// TestNetworkPolicy: what each setting comes to, in short.
func TestNetworkPolicy(t *testing.T) {
	const (
		peersIn    = "from pods mcp.espalier.dev/server=weather port 8081"
		operatorIn = "from namespaces kubernetes.io/metadata.name=espalier-system pods control-plane=controller-manager port 8080 8081"
		peersOut   = "to pods mcp.espalier.dev/server=weather port 8081"
		dns        = "to anything port 53/UDP 53"
		openShift  = "to namespaces kubernetes.io/metadata.name=openshift-dns port 5353/UDP 5353"
	)
	tests := map[string]struct {
		policy string
		want   []string
	}{
		"who is let in by default": {`{ingress: {}}`, []string{"Ingress", peersIn, operatorIn, "from pods any port 8080"}},
		"nobody but the operator":  {`{ingress: {sameNamespace: false}}`, []string{"Ingress", peersIn, operatorIn}},
		"chosen namespaces": {
			`{ingress: {sameNamespace: false, namespaces: [{matchLabels: {team: a}}, {}]}}`,
			[]string{"Ingress", peersIn, operatorIn, "from namespaces team=a or namespaces any port 8080"},
		},
		"chosen networks": {
			`{ingress: {cidrs: [192.0.2.0/24]}}`,
			[]string{"Ingress", peersIn, operatorIn, "from pods any or 192.0.2.0/24 port 8080"},
		},
		"where to by default": {`{egress: {}}`, []string{"Egress", peersOut, dns, openShift}},
		"to nowhere":          {`{egress: {dns: false, upstreams: false}}`, []string{"Egress", peersOut}},
		"to namespaces and networks": {
			`{egress: {dns: false, namespaces: [{matchLabels: {db: "1"}}], cidrs: [0.0.0.0/0, "2001:db8::/32"], exceptCIDRs: [10.0.0.0/8, "2001:db8:1::/48"], ports: [443, 8443]}}`,
			[]string{
				"Egress", peersOut, "to namespaces db=1",
				"to 0.0.0.0/0 but 10.0.0.0/8 or 2001:db8::/32 but 2001:db8:1::/48 port 443 8443",
			},
		},
		"both": {`{ingress: {sameNamespace: false}, egress: {dns: false}}`, []string{"Ingress", "Egress", peersIn, operatorIn, peersOut}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := server(t, "networkPolicy: "+test.policy)
			policy := options().NetworkPolicy(s, &serverconfig.Config{})
			if policy.Name != "weather-mcp" || policy.Namespace != "team-a" || !cmp.Equal(policy.Spec.PodSelector.MatchLabels, Selector(s)) {
				t.Errorf("it is %s/%s for the pods %v", policy.Namespace, policy.Name, policy.Spec.PodSelector.MatchLabels)
			}
			if diff := cmp.Diff(test.want, short(policy)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	for _, spec := range []string{`{}`, `{type: External, external: {url: "http://a"}, networkPolicy: {ingress: {}}}`} {
		if policy := options().NetworkPolicy(server(t, spec), nil); policy != nil {
			t.Errorf("%s: got %v", spec, short(policy))
		}
	}
}

// TestNetworkPolicyOfAContainer: it has one port, and names nothing.
func TestNetworkPolicyOfAContainer(t *testing.T) {
	s := server(t, `{type: Container, container: {image: a, port: 3000}, networkPolicy: {ingress: {}, egress: {dns: false}}}`)
	want := []string{
		"Ingress", "Egress",
		"from namespaces kubernetes.io/metadata.name=espalier-system pods control-plane=controller-manager port 3000", "from pods any port 3000",
	}
	if diff := cmp.Diff(want, short(options().NetworkPolicy(s, nil))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// short writes a policy in words.
func short(policy *networkingv1.NetworkPolicy) []string {
	var out []string
	for _, t := range policy.Spec.PolicyTypes {
		out = append(out, string(t))
	}
	for _, r := range policy.Spec.Ingress {
		out = append(out, "from "+peersText(r.From)+portsText(r.Ports))
	}
	for _, r := range policy.Spec.Egress {
		out = append(out, "to "+peersText(r.To)+portsText(r.Ports))
	}
	return out
}

func peersText(peers []networkingv1.NetworkPolicyPeer) string {
	var all []string
	for _, p := range peers {
		var parts []string
		if p.NamespaceSelector != nil {
			parts = append(parts, "namespaces "+selectorText(p.NamespaceSelector))
		}
		if p.PodSelector != nil {
			parts = append(parts, "pods "+selectorText(p.PodSelector))
		}
		if b := p.IPBlock; b != nil {
			parts = append(parts, strings.Join(append([]string{b.CIDR}, b.Except...), " but "))
		}
		all = append(all, strings.Join(parts, " "))
	}
	if len(all) == 0 {
		return "anything"
	}
	return strings.Join(all, " or ")
}

func selectorText(s *metav1.LabelSelector) string {
	if text := metav1.FormatLabelSelector(s); text != "<none>" {
		return text
	}
	return "any"
}

func portsText(ports []networkingv1.NetworkPolicyPort) string {
	var all []string
	for _, p := range ports {
		text := p.Port.String()
		if *p.Protocol != "TCP" {
			text += "/" + string(*p.Protocol)
		}
		all = append(all, text)
	}
	if len(all) == 0 {
		return ""
	}
	return " port " + strings.Join(all, " ")
}

// TestDestinations: what a catalog names within the cluster.
func TestDestinations(t *testing.T) {
	s := server(t, `
  upstreams:
  - {name: own, serverRef: {name: orders}}
  - {name: elsewhere, serverRef: {name: vendor}}`)
	at := func(url string) serverconfig.Connection { return serverconfig.Connection{URL: url} }
	calls := func(url string) *serverconfig.HTTP { return &serverconfig.HTTP{Connection: at(url)} }
	client := func(url string) serverconfig.OAuthClient { return serverconfig.OAuthClient{TokenURL: url} }
	cc, exchange := client("http://idp.identity.svc/token"), serverconfig.TokenExchange{OAuthClient: client("http://sts.tokens.svc:8080/token")}
	config := &serverconfig.Config{
		Upstreams: []serverconfig.Upstream{
			{Name: "own", Connection: at("http://orders-mcp.team-a.svc:8080/mcp")},
			{Name: "elsewhere", Connection: at("https://mcp.partner.svc.cluster.local/mcp")},
			{Name: "api", OpenAPI: &serverconfig.OpenAPI{DocumentURL: "http://docs.apis.svc/openapi.json"}},
			{Name: "Stdio", Stdio: &serverconfig.Stdio{}},
		},
		Tools: []serverconfig.Tool{
			{Name: "a", HTTP: calls("http://Backend:9000/items/{id}")},
			{Name: "b", HTTP: calls("https://api.example.com/x")},
			{Name: "c", HTTP: calls("http://example.com")},
			{Name: "d", HTTP: calls("https://192.0.2.7/x")},
			{Name: "e", HTTP: calls("http://[2001:db8::1]:8080/x")},
			{Name: "f", HTTP: calls("http://192.0.2.7/x")},
			{Name: "g", HTTP: &serverconfig.HTTP{Connection: serverconfig.Connection{
				URL: "http://backend.shop.svc.:80/x", Auth: &serverconfig.OutboundAuth{ClientCredentials: &cc, Exchange: &exchange},
			}}},
			{Name: "h", HTTP: calls("http://localhost:1")},
			{Name: "i"},
			// What no policy can hold, though the CRD lets it through.
			{Name: "j", HTTP: calls("http://a." + strings.Repeat("x", 64) + ".svc/x")},
			{Name: "k", HTTP: calls("http://a.-b.svc/x")},
			{Name: "l", HTTP: calls("http://192.0.2.7:0/x")},
			{Name: "m", HTTP: calls("https://192.0.2.7:99999/x")},
		},
		Resources: []serverconfig.Resource{{HTTP: calls("http://pod-0.files.store.svc/a")}, {}},
		Templates: []serverconfig.Resource{{HTTP: calls("http://files.archive.svc/{a}")}},
		Auth:      &serverconfig.Auth{JWT: &serverconfig.JWT{Issuer: "https://login.realm.svc"}},
	}
	want := destinations{
		servers:    []string{"orders"},
		namespaces: []string{"apis", "archive", "identity", "partner", "realm", "shop", "store", "team-a", "tokens"},
		addresses:  []netip.AddrPort{netip.MustParseAddrPort("192.0.2.7:80"), netip.MustParseAddrPort("192.0.2.7:443"), netip.MustParseAddrPort("[2001:db8::1]:8080")},
	}
	got := destinationsOf(s, config)
	if text, wanted := fmt.Sprint(got), fmt.Sprint(want); text != wanted {
		t.Errorf("got  %s\nwant %s", text, wanted)
	}
	config.Auth.JWT.JWKSURI = "https://keys.jwks.svc/keys"
	if got := destinationsOf(s, config).namespaces; !slices.Contains(got, "jwks") || slices.Contains(got, "realm") {
		t.Errorf("with jwksURI: got %v", got)
	}
	s.Spec.NetworkPolicy = &mcpv1.NetworkPolicy{Egress: &mcpv1.NetworkPolicyEgress{}}
	rules := strings.Join(short(options().NetworkPolicy(s, config)), "\n")
	for _, rule := range []string{
		"to pods mcp.espalier.dev/server=orders or namespaces kubernetes.io/metadata.name=apis or",
		"to 192.0.2.7/32 port 443", "to 2001:db8::1/128 port 8080",
	} {
		if !strings.Contains(rules, rule) {
			t.Errorf("no rule %q in\n%s", rule, rules)
		}
	}
}
