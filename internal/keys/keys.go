// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package keys holds the operator's own keys, kept in one Secret of its
// namespace: by one of them the probe proves to servers who it is, by the
// other values of users' Secrets are digested, so that a digest in a pod
// template cannot be guessed offline.
package keys

import (
	"context"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
)

// SecretName of the Secret in the operator's namespace.
const SecretName = "espalier-keys"

const (
	keyProbe  = "probe-ed25519"
	keyDigest = "digest-hmac"
)

// Keys of the operator.
type Keys struct {
	// Probe signs the probe's tokens.
	Probe  ed25519.PrivateKey
	digest []byte
}

// Load reads the keys, or makes them once. Two operators that start together
// agree: the one whose create is refused reads the other's.
func Load(ctx context.Context, c client.Client, namespace string) (*Keys, error) {
	name := client.ObjectKey{Namespace: namespace, Name: SecretName}
	var secret corev1.Secret
	err := c.Get(ctx, name, &secret)
	if apierrors.IsNotFound(err) {
		made, makeErr := generate(namespace)
		if makeErr != nil {
			return nil, makeErr
		}
		if err = c.Create(ctx, made); err == nil {
			return parse(made)
		}
		if apierrors.IsAlreadyExists(err) {
			err = c.Get(ctx, name, &secret)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("load Secret %s: %w", name, err)
	}
	return parse(&secret)
}

func generate(namespace string) (*corev1.Secret, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	digest := make([]byte, sha256.Size)
	if _, err := rand.Read(digest); err != nil {
		return nil, err
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: SecretName, Namespace: namespace, Labels: map[string]string{mcpv1.LabelManagedBy: mcpv1.ManagedBy}},
		Data:       map[string][]byte{keyProbe: private.Seed(), keyDigest: digest},
	}, nil
}

func parse(secret *corev1.Secret) (*Keys, error) {
	seed, digest := secret.Data[keyProbe], secret.Data[keyDigest]
	if len(seed) != ed25519.SeedSize || len(digest) < sha256.Size {
		return nil, fmt.Errorf("Secret %s/%s lacks %s or %s: delete it, and it is made anew", secret.Namespace, secret.Name, keyProbe, keyDigest)
	}
	return &Keys{Probe: ed25519.NewKeyFromSeed(seed), digest: digest}, nil
}

// Public key of the probe, standard base64.
func (k *Keys) Public() string {
	return base64.StdEncoding.EncodeToString(k.Probe.Public().(ed25519.PublicKey))
}

// Digest of value, keyed.
func (k *Keys) Digest(value []byte) string {
	mac := hmac.New(sha256.New, k.digest)
	mac.Write(value)
	return hex.EncodeToString(mac.Sum(nil)[:16])
}
