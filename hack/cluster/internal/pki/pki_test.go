// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"
)

func TestServerCertificateIsTrustedForItsHosts(t *testing.T) {
	dir := t.TempDir()
	authority, err := NewAuthority(dir, "ca")
	if err != nil {
		t.Fatal(err)
	}
	if err := authority.Server("server", "kubernetes.default.svc", "10.96.0.1"); err != nil {
		t.Fatal(err)
	}
	cert, roots := load(t, dir, "server")
	for host, good := range map[string]bool{"kubernetes.default.svc": true, "10.96.0.1": true, "example.test": false} {
		_, err := cert.Verify(x509.VerifyOptions{Roots: roots, DNSName: host})
		if (err == nil) != good {
			t.Errorf("%s: %v", host, err)
		}
	}
}

func TestClientCertificateNamesUserAndGroups(t *testing.T) {
	dir := t.TempDir()
	authority, err := NewAuthority(dir, "ca")
	if err != nil {
		t.Fatal(err)
	}
	if err := authority.Client("node", "system:node:node1", "system:nodes"); err != nil {
		t.Fatal(err)
	}
	cert, roots := load(t, dir, "node")
	usages := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: usages}); err != nil {
		t.Error(err)
	}
	if cert.Subject.CommonName != "system:node:node1" || cert.Subject.Organization[0] != "system:nodes" {
		t.Errorf("subject %v", cert.Subject)
	}
	info, err := os.Stat(filepath.Join(dir, "node.key"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("key: %v, %v", info.Mode(), err)
	}
}

func load(t *testing.T, dir, name string) (*x509.Certificate, *x509.CertPool) {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key"))
	if err != nil {
		t.Fatal(err)
	}
	pem, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	return pair.Leaf, roots
}
