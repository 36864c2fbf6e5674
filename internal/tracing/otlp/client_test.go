// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package otlp

import (
	"compress/gzip"
	"context"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

func TestSettings(t *testing.T) {
	file := filepath.Join(t.TempDir(), "none.pem")
	if err := os.WriteFile(file, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	const all, own = "OTEL_EXPORTER_OTLP_", "OTEL_EXPORTER_OTLP_TRACES_"
	for name, tt := range map[string]struct {
		env  []string
		want settings
		// problem is what the error names.
		problem string
	}{
		"defaults":       {nil, settings{url: "http://localhost:4318/v1/traces", timeout: 10 * time.Second}, ""},
		"of all":         {[]string{all + "ENDPOINT", "https://c:1/x/", all + "TIMEOUT", "1500", all + "COMPRESSION", "gzip"}, settings{url: "https://c:1/x/v1/traces", timeout: 1500 * time.Millisecond, gzip: true}, ""},
		"of traces":      {[]string{all + "ENDPOINT", "https://c", own + "ENDPOINT", "https://t/path", all + "COMPRESSION", "gzip", own + "COMPRESSION", "none"}, settings{url: "https://t/path", timeout: 10 * time.Second}, ""},
		"headers":        {[]string{all + "HEADERS", "api-key = a%20b , X-Other=c=d"}, settings{url: "http://localhost:4318/v1/traces", timeout: 10 * time.Second, headers: http.Header{"Api-Key": {"a b"}, "X-Other": {"c=d"}}}, ""},
		"no header":      {[]string{own + "HEADERS", "secret"}, settings{}, own + "HEADERS"},
		"broken header":  {[]string{all + "HEADERS", "a=secret%0d%0ab"}, settings{}, all + "HEADERS"},
		"no number":      {[]string{all + "TIMEOUT", "10s"}, settings{}, all + "TIMEOUT"},
		"no time at all": {[]string{all + "TIMEOUT", "0"}, settings{}, all + "TIMEOUT"},
		"compression":    {[]string{own + "COMPRESSION", "zstd"}, settings{}, own + "COMPRESSION"},
		"no such file":   {[]string{all + "CERTIFICATE", file + "x"}, settings{}, all + "CERTIFICATE"},
		"no certificate": {[]string{all + "CERTIFICATE", file}, settings{}, all + "CERTIFICATE"},
		"half of a pair": {[]string{all + "CLIENT_CERTIFICATE", file}, settings{}, all + "CLIENT_CERTIFICATE"},
		"no pair":        {[]string{all + "CLIENT_CERTIFICATE", file, own + "CLIENT_KEY", file}, settings{}, own + "CLIENT_KEY"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := exporterSettings(env(tt.env...))
			if tt.problem != "" {
				if err == nil || !strings.Contains(err.Error(), tt.problem) || strings.Contains(err.Error(), "secret") {
					t.Fatalf("error %v", err)
				}
				return
			}
			if tt.want.headers == nil {
				tt.want.headers = http.Header{}
			}
			got.tls = nil
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(settings{})); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// attempt is what a collector gets.
type attempt struct {
	header http.Header
	spans  int
}

// collecting is a client of a collector that answers each attempt as told;
// without more to answer it takes the spans.
func collecting(t *testing.T, start func(*httptest.Server), answers ...http.HandlerFunc) (*client, *httptest.Server, *[]attempt) {
	t.Helper()
	var got []attempt
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body io.Reader = r.Body
		if r.Header.Get("Content-Encoding") == "gzip" {
			body, _ = gzip.NewReader(body)
		}
		raw, err := io.ReadAll(body)
		data := &tracepb.TracesData{}
		if err != nil || proto.Unmarshal(raw, data) != nil {
			t.Errorf("the body cannot be read: %v", err)
		}
		got = append(got, attempt{r.Header, len(data.ResourceSpans)})
		if n := len(got); n <= len(answers) {
			answers[n-1](w, r)
		}
	}))
	start(server)
	t.Cleanup(server.Close)
	c := newClient(settings{url: server.URL, headers: http.Header{"Api-Key": {"k"}}, timeout: time.Minute})
	c.pause = time.Millisecond
	t.Cleanup(func() { _ = c.Stop(context.Background()) })
	return c, server, &got
}

func say(status int, retryAfter string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if retryAfter != "" {
			w.Header().Set("Retry-After", retryAfter)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "peer's words")
	}
}

var oneSpan = []*tracepb.ResourceSpans{{SchemaUrl: "x"}}

func TestUpload(t *testing.T) {
	c, _, got := collecting(t, (*httptest.Server).Start, say(503, ""), say(429, "0"), func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	c.settings.gzip = true
	if err := c.UploadTraces(t.Context(), oneSpan); err != nil {
		t.Fatal(err)
	}
	if len(*got) != 4 {
		t.Fatalf("%d attempts", len(*got))
	}
	for _, a := range *got {
		if a.spans != 1 || a.header.Get("Api-Key") != "k" || a.header.Get("Content-Type") != "application/x-protobuf" {
			t.Errorf("it got %+v", a)
		}
	}
}

func TestUploadFails(t *testing.T) {
	t.Run("for good", func(t *testing.T) {
		c, _, got := collecting(t, (*httptest.Server).Start, say(400, ""))
		err := c.UploadTraces(t.Context(), oneSpan)
		if !errors.Is(err, errRefused) || len(*got) != 1 || strings.Contains(err.Error(), "peer") {
			t.Errorf("%d attempts: %v", len(*got), err)
		}
	})
	t.Run("it is stopped while it waits", func(t *testing.T) {
		var c *client
		c, _, got := collecting(t, (*httptest.Server).Start, func(w http.ResponseWriter, r *http.Request) {
			say(503, "3600")(w, r)
			_ = c.Stop(context.Background())
		})
		if err := c.UploadTraces(t.Context(), oneSpan); !errors.Is(err, errRefused) || len(*got) != 1 {
			t.Errorf("%d attempts: %v", len(*got), err)
		}
		if c.Stop(context.Background()) != nil {
			t.Error("it stops once")
		}
	})
	t.Run("who waits leaves", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		c, _, _ := collecting(t, (*httptest.Server).Start, func(w http.ResponseWriter, r *http.Request) {
			say(503, "3600")(w, r)
			cancel()
		})
		if err := c.UploadTraces(ctx, oneSpan); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("nobody listens", func(t *testing.T) {
		c, server, _ := collecting(t, (*httptest.Server).Start)
		server.Close()
		_ = c.Stop(context.Background())
		if err := c.UploadTraces(t.Context(), oneSpan); causeOf(err) != "the collector cannot be reached" || strings.Contains(err.Error(), "http://") {
			t.Errorf("got %v", err)
		}
	})
}

// TestCertificate: a collector with a certificate of an authority of its own.
func TestCertificate(t *testing.T) {
	_, server, got := collecting(t, (*httptest.Server).StartTLS)
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, trusts := range []bool{false, true} {
		variables := []string{envTracesEndpoint, server.URL}
		if trusts {
			variables = append(variables, "OTEL_EXPORTER_OTLP_CERTIFICATE", file)
		}
		s, err := exporterSettings(env(variables...))
		if err != nil {
			t.Fatal(err)
		}
		c := newClient(s)
		_ = c.Stop(context.Background()) // It does not try again.
		if err := c.UploadTraces(t.Context(), oneSpan); (err == nil) != trusts || len(*got) > 0 != trusts {
			t.Errorf("trusted: %t, %d attempts, %v", trusts, len(*got), err)
		}
	}
}
