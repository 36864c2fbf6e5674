// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package otlp

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"
)

const (
	defaultEndpoint = "http://localhost:4318"
	tracesPath      = "/v1/traces"
	// defaultTimeout of one attempt.
	defaultTimeout = 10 * time.Second
)

// settings of the exporter.
type settings struct {
	url     string
	headers http.Header
	timeout time.Duration
	gzip    bool
	tls     *tls.Config
}

// exporterSettings reads OTEL_EXPORTER_OTLP_*, each of which has one for
// traces alone that wins. Errors name the variable, and never its value: that
// may be a credential.
func exporterSettings(getenv func(string) string) (settings, error) {
	s := settings{headers: http.Header{}, timeout: defaultTimeout}
	get := func(what string) (value, name string) { return exporterVariable(getenv, what) }
	s.url = endpointURL(getenv)
	if value, name := get("HEADERS"); value != "" {
		for pair := range strings.SplitSeq(value, ",") {
			key, text, ok := strings.Cut(pair, "=")
			decoded, err := url.PathUnescape(strings.TrimSpace(text))
			if key = strings.TrimSpace(key); !ok || err != nil || !httpguts.ValidHeaderFieldName(key) || !httpguts.ValidHeaderFieldValue(decoded) {
				return s, fmt.Errorf("%s cannot be read: it is key=value,key=value", name)
			}
			s.headers.Set(key, decoded)
		}
	}
	if value, name := get("TIMEOUT"); value != "" {
		ms, err := strconv.ParseUint(value, 10, 31)
		if err != nil || ms == 0 {
			return s, fmt.Errorf("%s is a number of milliseconds", name)
		}
		s.timeout = time.Duration(ms) * time.Millisecond
	}
	switch value, name := get("COMPRESSION"); value {
	case "gzip":
		s.gzip = true
	case "", "none":
	default:
		return s, fmt.Errorf("%s is gzip or none", name)
	}
	return s, s.certificates(get)
}

// exporterVariable gives the value of OTEL_EXPORTER_OTLP_TRACES_ and what, else
// of OTEL_EXPORTER_OTLP_ and what, and the variable that has it.
func exporterVariable(getenv func(string) string, what string) (value, name string) {
	for _, prefix := range []string{"OTEL_EXPORTER_OTLP_TRACES_", "OTEL_EXPORTER_OTLP_"} {
		name = prefix + what
		if value = strings.TrimSpace(getenv(name)); value != "" {
			return value, name
		}
	}
	return "", name
}

// endpointURL is the one for traces as it stands, or that for all with the path
// of traces.
func endpointURL(getenv func(string) string) string {
	endpoint, name := exporterVariable(getenv, "ENDPOINT")
	if endpoint != "" && name == envTracesEndpoint {
		return endpoint
	}
	return strings.TrimSuffix(cmp.Or(endpoint, defaultEndpoint), "/") + tracesPath
}

func (s *settings) certificates(get func(string) (value, name string)) error {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if file, name := get("CERTIFICATE"); file != "" {
		pem, err := os.ReadFile(file)
		config.RootCAs = x509.NewCertPool()
		if err != nil || !config.RootCAs.AppendCertsFromPEM(pem) {
			return fmt.Errorf("%s names no file of certificates that can be read", name)
		}
	}
	certificate, name := get("CLIENT_CERTIFICATE")
	key, keyName := get("CLIENT_KEY")
	if certificate == "" && key == "" {
		s.tls = config
		return nil
	}
	pair, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		return fmt.Errorf("%s and %s name no certificate and key that can be read", name, keyName)
	}
	config.Certificates = []tls.Certificate{pair}
	s.tls = config
	return nil
}
