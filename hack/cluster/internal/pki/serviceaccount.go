// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"os"
	"path/filepath"
)

// ServiceAccountKeys writes NAME.key and NAME.pub, with which service-account tokens are
// signed and checked. RSA, because every OIDC client accepts RS256.
func ServiceAccountKeys(dir, name string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return err
	}
	if err := writePEM(filepath.Join(dir, name+".pub"), "PUBLIC KEY", der); err != nil {
		return err
	}
	return writeKey(filepath.Join(dir, name+".key"), key)
}
