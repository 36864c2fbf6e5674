// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestPeersService(t *testing.T) {
	for spec, want := range map[string]bool{
		`{}`: false, `{replicas: 1}`: false, `{replicas: 2}`: true, `{replicas: 2, suspend: true}`: false,
		`{type: Stdio, stdio: {image: a, command: [b]}, replicas: 3}`: true,
		`{type: Container, container: {image: a}, replicas: 3}`:       false,
	} {
		got := PeersService(server(t, spec))
		if (got != nil) != want {
			t.Errorf("%s: %v", spec, got)
		}
		if got != nil && (got.Spec.ClusterIP != corev1.ClusterIPNone || !got.Spec.PublishNotReadyAddresses || got.Spec.Ports[0].Port != PortInternal) {
			t.Errorf("%s: %+v", spec, got.Spec)
		}
	}
}

// TestAppProtocol: meshes and gateways are told what the port speaks.
func TestAppProtocol(t *testing.T) {
	for spec, want := range map[string]string{`{}`: "http", `tls: {secretRef: {name: s}}`: "https"} {
		if got := *Service(server(t, spec)).Spec.Ports[0].AppProtocol; got != want {
			t.Errorf("%s: got %s", spec, got)
		}
	}
}

// TestScalingRollsNothingOut: pods do not know how many they are.
func TestScalingRollsNothingOut(t *testing.T) {
	hash := func(spec string) string {
		template, err := options().template(TemplateInput{Server: server(t, spec)})
		if err != nil {
			t.Fatal(err)
		}
		return Hash(template.Spec.Containers)
	}
	if hash(`{replicas: 1}`) != hash(`{replicas: 3}`) {
		t.Error("one replica and three have other containers")
	}
}

// TestOwnVariables: a variable of ours is ours.
func TestOwnVariables(t *testing.T) {
	template, err := options().template(TemplateInput{Server: server(t, `workload: {env: [{name: ESPALIER_PEERS, value: other}, {name: A, value: a}]}`)})
	if err != nil {
		t.Fatal(err)
	}
	env := template.Spec.Containers[0].Env
	if len(env) != 3 || env[1].Name != "ESPALIER_PEERS" || env[1].Value != "weather-mcp-peers" || env[2].Name != "A" {
		t.Errorf("got %v", env)
	}
}
