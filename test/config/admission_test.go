// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// policies of config/samples/admission, and what each takes and refuses: an
// object's kind and spec. A refusal holds the text.
var policies = map[string]struct {
	good []string
	bad  map[string]string
}{
	"mcp-allowed-images": {
		good: []string{
			`MCPServer {}`,
			`MCPServer {type: Container, container: {image: registry.example.com/mcp/weather:1}}`,
			`Pod {containers: [{name: a, image: ghcr.io/espalier-dev/server:1}]}`,
		},
		bad: map[string]string{
			`MCPServer {type: Container, container: {image: docker.io/evil/a}}`:                                                   "docker.io/evil/a",
			`MCPServer {type: Container, container: {image: "registry.example.com.evil.example/mcp/a"}}`:                          "not from an allowed registry",
			`MCPServer {type: Stdio, stdio: {image: node, command: [node]}}`:                                                      "these images are not from an allowed registry: node.",
			`Pod {containers: [{name: a, image: node}]}`:                                                                          "node",
			`Pod {containers: [{name: a, image: ghcr.io/espalier-dev/server:1}], initContainers: [{name: b, image: node}]}`:       "node",
			`Pod {containers: [{name: a, image: ghcr.io/espalier-dev/server:1}], volumes: [{name: v, image: {reference: node}}]}`: "node",
		},
	},
	"mcp-egress-hosts": {
		good: []string{
			`MCPServer {}`,
			`MCPServer {type: External, external: {url: "https://eu.api.example.com/mcp", auth: {oauthClientCredentials: {tokenURL: "https://LOGIN.example.com/t", clientID: a, clientSecretRef: {name: a, key: a}}}}}`,
			`MCPServer {upstreams: [{name: a, serverRef: {name: other}}, {name: b, url: "http://weather:8080/mcp"}, {name: c, openAPI: {document: {configMapKeyRef: {name: a, key: a}}, url: "http://api"}}]}`,
			`MCPTool {serverRefs: [{name: a}], http: {method: GET, url: "https://api.example.com/{city}"}, inputSchema: {type: object, properties: {city: {type: string}}}}`,
		},
		bad: map[string]string{
			`MCPServer {auth: {jwt: {issuer: "https://evil.example", audiences: [a]}}}`:                                                                                                                                           "evil.example",
			`MCPServer {auth: {jwt: {issuer: "https://login.example.com", audiences: [a], jwksURI: "https://evil.example"}}}`:                                                                                                     "evil.example",
			`MCPServer {type: External, external: {url: "https://evil.example"}}`:                                                                                                                                                 "evil.example",
			`MCPServer {type: External, external: {url: "https://api.example.com.evil.example"}}`:                                                                                                                                 "evil.example",
			`MCPServer {type: External, external: {url: "https://notapi.example.com"}}`:                                                                                                                                           "notapi.example.com",
			`MCPServer {type: External, external: {url: "http://169.254.169.254/"}}`:                                                                                                                                              "169.254.169.254",
			`MCPServer {type: External, external: {url: "http://[fd00::1]:80/"}}`:                                                                                                                                                 "fd00::1",
			`MCPServer {type: External, external: {url: "http://2130706433/"}}`:                                                                                                                                                   "2130706433",
			`MCPServer {type: External, external: {url: "http://db.other-team.svc/"}}`:                                                                                                                                            "db.other-team.svc",
			`MCPServer {type: External, external: {url: "http://api", auth: {oauthClientCredentials: {tokenURL: "http://evil.example", clientID: a, clientSecretRef: {name: a, key: a}}}}}`:                                       "evil.example",
			`MCPServer {upstreams: [{name: a, url: "http://api"}, {name: b, url: "http://evil.example"}]}`:                                                                                                                        "evil.example",
			`MCPServer {upstreams: [{name: a, url: "http://api", auth: {oauthClientCredentials: {tokenURL: "http://evil.example", clientID: a, clientSecretRef: {name: a, key: a}}}}]}`:                                           "evil.example",
			`MCPServer {upstreams: [{name: a, openAPI: {document: {url: "http://evil.example"}, url: "http://api"}}]}`:                                                                                                            "evil.example",
			`MCPServer {upstreams: [{name: a, openAPI: {document: {url: "http://api"}, url: "http://evil.example"}}]}`:                                                                                                            "evil.example",
			`MCPServer {upstreams: [{name: a, openAPI: {document: {url: "http://api"}}}]}`:                                                                                                                                        "openAPI needs url",
			`MCPServer {upstreams: [{name: a, openAPI: {document: {url: "http://api"}, url: "http://api", auth: {oauthClientCredentials: {tokenURL: "http://evil.example", clientID: a, clientSecretRef: {name: a, key: a}}}}}]}`: "evil.example",
			`MCPTool {serverRefs: [{name: a}], http: {method: GET, url: "http://evil.example"}}`:                                                                                                                                  "evil.example",
			`MCPTool {serverRefs: [{name: a}], http: {method: GET, url: "http://api", auth: {oauthClientCredentials: {tokenURL: "http://evil.example", clientID: a, clientSecretRef: {name: a, key: a}}}}}`:                       "evil.example",
			`MCPResource {serverRefs: [{name: a}], uri: "docs://a", http: {url: "http://evil.example"}}`:                                                                                                                          "evil.example",
			`MCPResource {serverRefs: [{name: a}], uri: "docs://a", http: {url: "http://api", auth: {oauthClientCredentials: {tokenURL: "http://evil.example", clientID: a, clientSecretRef: {name: a, key: a}}}}}`:               "evil.example",
		},
	},
	"mcp-required-limits": {
		good: []string{
			`MCPServer {workload: {resources: {limits: {memory: 512Mi}}}, replicas: 10}`,
			`MCPServer {workload: {resources: {limits: {memory: 2Gi}}}}`,
			`MCPServer {type: External, external: {url: "http://api"}}`,
		},
		bad: map[string]string{
			`MCPServer {}`: "set spec.workload.resources.limits.memory",
			`MCPServer {workload: {resources: {requests: {memory: 1Gi}}}}`:             "set spec.workload.resources.limits.memory",
			`MCPServer {workload: {resources: {limits: {memory: 3Gi}}}}`:               "at most 2Gi",
			`MCPServer {workload: {resources: {limits: {memory: 1Gi}}}, replicas: 11}`: "spec.replicas is at most 10",
		},
	},
	"mcp-untrusted-pods": {
		good: []string{`MCPServer {}`, `MCPServer {workload: {volumes: [{name: a, emptyDir: {}}]}}`},
		bad: map[string]string{
			`MCPServer {workload: {serviceAccountName: admin}}`:                                   "serviceAccountName is for trusted teams",
			`MCPServer {workload: {podTemplate: {spec: {hostNetwork: true}}}}`:                    "podTemplate is for trusted teams",
			`MCPServer {workload: {volumes: [{name: a, persistentVolumeClaim: {claimName: a}}]}}`: "persistentVolumeClaim",
		},
	},
}

// enforced is the label of namespaces that the policies are bound to.
const enforced = "example.com/mcp-policies"

// TestAdmission applies each policy and what it is about: to a namespace that is
// marked for it, and to one that is not.
func TestAdmission(t *testing.T) {
	free := admissionNamespace(t, nil)
	for _, object := range build(t, "samples/admission") {
		name := object.GetName()
		if _, ok := policies[name]; !ok {
			t.Errorf("nothing is tried on %s", name)
		}
		if object.GetKind() == "ValidatingAdmissionPolicyBinding" {
			labels := []string{"spec", "matchResources", "namespaceSelector", "matchLabels"}
			if value, _, _ := unstructured.NestedString(object.Object, append(labels, enforced)...); value != "enforced" {
				t.Errorf("%s is bound to namespaces with %q", name, value)
			}
			// One policy each, so that another's refusal is not taken for it.
			if err := unstructured.SetNestedStringMap(object.Object, map[string]string{enforced: name}, labels...); err != nil {
				t.Fatal(err)
			}
		}
		apply(t, object)
	}
	for name, policy := range policies {
		t.Run(name, func(t *testing.T) {
			bound := admissionNamespace(t, map[string]string{enforced: name})
			for text, want := range policy.bad {
				inForce(t, bound, text, want)
				if err := dryRun(t, free, text); err != nil {
					t.Errorf("%s is refused where no policy is bound: %v", text, err)
				}
			}
			for _, text := range policy.good {
				if err := dryRun(t, bound, text); err != nil {
					t.Errorf("%s: %v", text, err)
				}
			}
		})
	}
}

// TestEgressFields: every field of the CRDs that says where a request goes is
// among what the policy refuses.
func TestEgressFields(t *testing.T) {
	var refused []string
	for text := range policies["mcp-egress-hosts"].bad {
		kind, spec, _ := strings.Cut(text, " ")
		var tree any
		if err := yaml.Unmarshal([]byte(spec), &tree); err != nil {
			t.Fatal(err)
		}
		refused = append(refused, evil(tree, kind+" spec")...)
	}
	crds := &apiextensionsv1.CustomResourceDefinitionList{}
	if err := server.Client.List(t.Context(), crds); err != nil {
		t.Fatal(err)
	}
	fields := 0
	for _, crd := range crds.Items {
		schema := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
		for _, field := range dialled(schema, crd.Spec.Names.Kind+" spec") {
			fields++
			if !slices.Contains(refused, field) {
				t.Errorf("no example of a refused host in %s", field)
			}
		}
	}
	if fields < 13 {
		t.Errorf("only %d fields of URLs were found", fields)
	}
}

// evil are the paths in tree that hold a URL of the refused host.
func evil(tree any, path string) []string {
	switch v := tree.(type) {
	case map[string]any:
		var out []string
		for key, value := range v {
			out = append(out, evil(value, path+"."+key)...)
		}
		return out
	case []any:
		var out []string
		for _, item := range v {
			out = append(out, evil(item, path+"[]")...)
		}
		return out
	case string:
		if strings.Contains(v, "://evil.example") {
			return []string{path}
		}
	}
	return nil
}

// dialled are the fields below schema that hold a URL which somebody dials.
func dialled(schema apiextensionsv1.JSONSchemaProps, path string) []string {
	var out []string
	for name, property := range schema.Properties {
		lower := strings.ToLower(name)
		switch {
		case name == "publicURL", name == "uri":
			// What clients use, and names of resources.
		case strings.HasSuffix(lower, "url"), strings.HasSuffix(lower, "uri"), name == "issuer":
			out = append(out, path+"."+name)
		}
		out = append(out, dialled(property, path+"."+name)...)
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		out = append(out, dialled(*schema.Items.Schema, path+"[]")...)
	}
	return out
}

func admissionNamespace(t *testing.T, labels map[string]string) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "admission-", Labels: labels}}
	if err := server.Client.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	return namespace.Name
}

// inForce waits until an object is refused with these words: the API server
// takes a moment to know a policy.
func inForce(t *testing.T, namespace, text, want string) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
		last = dryRun(t, namespace, text)
		return last != nil, nil
	})
	if err != nil || !strings.Contains(last.Error(), want) {
		t.Errorf("%s: refused with %v, want: %s", text, last, want)
	}
}

// dryRun creates an object, KIND SPEC, without keeping it.
func dryRun(t *testing.T, namespace, text string) error {
	t.Helper()
	kind, spec, _ := strings.Cut(text, " ")
	version, labels := "mcp.espalier.dev/v1alpha1", ""
	if kind == "Pod" {
		version, labels = "v1", `, labels: {mcp.espalier.dev/server: a}`
	}
	object := &unstructured.Unstructured{}
	document := fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {name: try, namespace: %s%s}, spec: %s}", version, kind, namespace, labels, spec)
	if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return server.Client.Create(t.Context(), object, client.DryRunAll, client.FieldValidation("Strict"))
}
