// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package keys

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

const namespace = "espalier-system"

// TestLoad: the keys are made once and are the same afterwards.
func TestLoad(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	first, err := Load(t.Context(), c, namespace)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Load(t.Context(), c, namespace)
	if err != nil {
		t.Fatal(err)
	}
	if !first.Probe.Equal(again.Probe) || first.Digest([]byte("v")) != again.Digest([]byte("v")) {
		t.Error("loaded twice, two keys")
	}
	public, err := base64.StdEncoding.DecodeString(first.Public())
	if err != nil || !ed25519.Verify(public, []byte("m"), ed25519.Sign(first.Probe, []byte("m"))) {
		t.Errorf("the public key %s does not fit: %v", first.Public(), err)
	}
}

// TestLoadTogether: of two that start at once, the later takes the earlier's.
func TestLoadTogether(t *testing.T) {
	inner := fake.NewClientBuilder().Build()
	other, err := Load(t.Context(), inner, namespace)
	if err != nil {
		t.Fatal(err)
	}
	reads := 0
	c := interceptor.NewClient(inner, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
		if reads++; reads == 1 {
			return apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, key.Name)
		}
		return c.Get(ctx, key, obj, opts...)
	}})
	mine, err := Load(t.Context(), c, namespace)
	if err != nil {
		t.Fatal(err)
	}
	if !mine.Probe.Equal(other.Probe) {
		t.Error("each has keys of its own")
	}
}

// TestLoadFails: broken keys are told with what to do, and not replaced.
func TestLoadFails(t *testing.T) {
	broken := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: SecretName, Namespace: namespace}, Data: map[string][]byte{keyProbe: []byte("short")}}
	if _, err := Load(t.Context(), fake.NewClientBuilder().WithObjects(broken).Build(), namespace); err == nil || !strings.Contains(err.Error(), "delete it") {
		t.Errorf("error %v", err)
	}
	down := errors.New("down")
	c := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		return down
	}})
	if _, err := Load(t.Context(), c, namespace); !errors.Is(err, down) {
		t.Errorf("error %v", err)
	}
}

// TestDigest is keyed, and tells values apart.
func TestDigest(t *testing.T) {
	one, two := &Keys{digest: make([]byte, 32)}, &Keys{digest: append(make([]byte, 31), 1)}
	if one.Digest([]byte("v")) == two.Digest([]byte("v")) {
		t.Error("the digest does not depend on the key")
	}
	first, again := one.Digest([]byte("v")), one.Digest([]byte("v"))
	if first == one.Digest([]byte("w")) || first != again {
		t.Error("the digest does not follow the value")
	}
}
