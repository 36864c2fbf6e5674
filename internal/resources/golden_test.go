// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/espalier-dev/espalier/internal/catalog"
)

var update = flag.Bool("update", false, "write the golden files anew")

const maximalWorkload = `
  workload:
    resources: {requests: {cpu: 1000m, memory: 0.5Gi}, limits: {memory: 1024Mi}}
    env:
    - {name: ZONE, value: z}
    - {name: HOME, value: /data}
    - {name: TOKEN, valueFrom: {secretKeyRef: {name: env, key: token}}}
    envFrom: [{configMapRef: {name: settings}}]
    serviceAccountName: tools
    imagePullSecrets: [{name: regcred}]
    nodeSelector: {disk: ssd, arch: amd64}
    tolerations: [{key: dedicated, operator: Equal, value: mcp, effect: NoSchedule}]
    topologySpreadConstraints: [{maxSkew: 2, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]
    priorityClassName: high
    volumes:
    - {name: docs, persistentVolumeClaim: {claimName: docs}}
    - {name: scratch, emptyDir: {sizeLimit: 1Gi}}
    volumeMounts:
    - {name: docs, mountPath: /docs, readOnly: true}
    - {name: scratch, mountPath: /tmp}
    labels: {cost-center: "42"}
    annotations: {example.com/owner: team-a}
    podTemplate:
      metadata: {labels: {extra: label}}
      spec:
        hostname: one
        containers:
        - {name: server, env: [{name: MORE, value: m}]}
        - name: sidecar
          image: sidecar:1
          securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
`

var goldens = map[string]struct {
	spec    string
	refs    []catalog.Ref
	env     string
	options func(*Options)
}{
	"tools-minimal": {spec: `{}`},
	"tools-maximal": {
		spec: `
  replicas: 3
  transports: [{type: StreamableHTTP, path: /tools}]
  probe: {gateReadiness: true}
  startupTimeoutSeconds: 30
  terminationGracePeriodSeconds: 90
  networkPolicy:
    ingress: {sameNamespace: false, namespaces: [{matchLabels: {team: agents}}], cidrs: [192.0.2.0/24]}
    egress: {namespaces: [{matchLabels: {kubernetes.io/metadata.name: db}}], cidrs: [0.0.0.0/0, "2001:db8::/32"], exceptCIDRs: [10.0.0.0/8], ports: [443]}` + maximalWorkload,
		refs: []catalog.Ref{configMap("ca", "ca.crt"), secret("api", "key"), secret("api", "token"), secret("clients", ""), secret("other", "token")},
		env:  "0123456789abcdef",
		options: func(o *Options) {
			o.ImagePullSecrets = []string{"org-cred", "regcred"}
		},
	},
	"stdio-minimal": {spec: `{type: Stdio, stdio: {image: "node:22", command: [npx, -y, "@acme/files"]}}`},
	"stdio-maximal": {
		spec: `
  type: Stdio
  stdio: {image: "node:22", command: [npx], args: [-y, "@acme/files"], workingDir: /docs, env: [{name: ZONE, value: own}, {name: KEY, valueFrom: {secretKeyRef: {name: env, key: key}}}]}
  replicas: 2` + maximalWorkload,
		refs: []catalog.Ref{secret("api", "key")},
		env:  "0123456789abcdef",
	},
	"container-minimal": {spec: `{type: Container, container: {image: "ghcr.io/acme/orders:1"}}`},
	"container-maximal": {
		spec: `
  type: Container
  container: {image: "ghcr.io/acme/orders:1", port: 3000, path: /v1/mcp, command: [orders], args: [--mcp, "--log=info"]}
  replicas: 2
  networkPolicy: {ingress: {}, egress: {}}
  probe: {gateReadiness: true}` + maximalWorkload,
		env: "0123456789abcdef",
	},
}

func golden(t *testing.T, name string) []byte {
	t.Helper()
	g := goldens[name]
	o := options()
	if g.options != nil {
		g.options(&o)
	}
	return rendered(t, children(t, o, TemplateInput{Server: server(t, g.spec), Refs: g.refs, EnvDigest: g.env}))
}

// TestGolden compares all children with testdata. Run it with -update after a
// change that is meant.
func TestGolden(t *testing.T) {
	for name := range goldens {
		t.Run(name, func(t *testing.T) {
			got := golden(t, name)
			file := filepath.Join("testdata", name+".yaml")
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("children (-%s +rendered); 'go test ./internal/resources -update' writes it anew:\n%s", file, diff)
			}
		})
	}
}

// TestDeterminism: the same input gives the same bytes each time (A08).
func TestDeterminism(t *testing.T) {
	for name := range goldens {
		first := golden(t, name)
		for range 10 {
			if again := golden(t, name); !bytes.Equal(first, again) {
				t.Fatalf("%s, rendered again (-first +again):\n%s", name, cmp.Diff(string(first), string(again)))
			}
		}
	}
}

// TestNothingIsCopied: neither labels nor annotations of the MCPServer reach a
// child or a pod (C08).
func TestNothingIsCopied(t *testing.T) {
	for _, name := range []string{"tools-minimal", "container-minimal"} {
		text := string(golden(t, name))
		for _, mark := range []string{"team-apps", "Helm", "kustomize", "argocd", "cost-center", "last-applied"} {
			if strings.Contains(text, mark) {
				t.Errorf("%s has %q:\n%s", name, mark, text)
			}
		}
	}
}
