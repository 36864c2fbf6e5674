// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package otlp

import (
	"net/http"
	"strings"
	"testing"

	"golang.org/x/net/http/httpguts"
)

// FuzzSettings: headers that are taken can be sent, and what is refused is not
// told again: it may be a credential.
func FuzzSettings(f *testing.F) {
	f.Add("api-key=a%20b,x=", "1500", "gzip")
	f.Add("a b=c", "-1", "br")
	f.Add("a=%0d%0aX: y,=", "99999999999999999999", "")
	f.Fuzz(func(t *testing.T, headers, timeout, compression string) {
		s, err := exporterSettings(env("OTEL_EXPORTER_OTLP_HEADERS", headers, "OTEL_EXPORTER_OTLP_TIMEOUT", timeout, "OTEL_EXPORTER_OTLP_TRACES_COMPRESSION", compression))
		if err != nil {
			if !strings.HasPrefix(err.Error(), "OTEL_EXPORTER_OTLP_") || len(err.Error()) > 120 {
				t.Fatalf("it says %q", err)
			}
			return
		}
		if s.timeout <= 0 {
			t.Fatalf("%q is a timeout of %s", timeout, s.timeout)
		}
		for name, values := range s.headers {
			for _, value := range values {
				if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
					t.Fatalf("%q makes the header %q: %q", headers, name, value)
				}
			}
		}
	})
}

// FuzzRetryAfter: a collector can ask to be left alone, but not for ever.
func FuzzRetryAfter(f *testing.F) {
	for _, seed := range []string{"", "1", "-1", "4294967296", "1e3", "Mon, 30 Nov 2026 12:00:00 GMT"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		if got := retryAfter(http.Header{"Retry-After": {value}}); got < 0 || got > patience {
			t.Fatalf("%q is %s", value, got)
		}
	})
}
