// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package serverconfig

// FeatureTLS: Config.TLS. A server that does not know it would speak in clear.
const FeatureTLS = "tls"

// ServingTLS is the server's own certificate. Files are paths below the
// credentials folder, read live.
type ServingTLS struct {
	CertFile string `json:"certFile"`
	KeyFile  string `json:"keyFile"`
	// CAFile and ServerName are how the replicas verify each other.
	CAFile     string `json:"caFile"`
	ServerName string `json:"serverName"`
}

// Files are the credential files that t names.
func (t *ServingTLS) Files() []string {
	if t == nil {
		return nil
	}
	return []string{t.CertFile, t.KeyFile, t.CAFile}
}
