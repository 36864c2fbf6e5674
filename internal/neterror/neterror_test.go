// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package neterror

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestReal are errors as they come.
func TestReal(t *testing.T) {
	ok := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	secure := func(change func(*tls.Config)) *httptest.Server {
		s := httptest.NewUnstartedServer(ok)
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
		s.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
		if change != nil {
			change(s.TLS)
		}
		s.StartTLS()
		t.Cleanup(s.Close)
		return s
	}
	plain := httptest.NewServer(ok)
	t.Cleanup(plain.Close)
	own := secure(nil)
	wanting := secure(func(c *tls.Config) { c.ClientAuth = tls.RequireAnyClientCert })
	old := secure(func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 })
	raw := func(say string) string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = http.ReadRequest(bufio.NewReader(c))
				_, _ = io.WriteString(c, say)
				_ = c.Close()
			}
		}()
		return "http://" + l.Addr().String()
	}
	closed := httptest.NewServer(ok)
	closed.Close()
	trusting := func(s *httptest.Server, change func(*tls.Config)) *http.Client {
		transport := s.Client().Transport.(*http.Transport).Clone()
		if change != nil {
			change(transport.TLSClientConfig)
		}
		return &http.Client{Transport: transport}
	}
	late, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	for name, tt := range map[string]struct {
		ctx    context.Context
		client *http.Client
		url    string
		want   Kind
	}{
		"nobody listens":          {t.Context(), &http.Client{}, closed.URL, Refused},
		"no such name":            {t.Context(), &http.Client{}, "http://nobody.invalid/", Name},
		"too late":                {late, &http.Client{}, plain.URL, Timeout},
		"unknown authority":       {t.Context(), &http.Client{}, own.URL, Untrusted},
		"another name":            {t.Context(), trusting(own, func(c *tls.Config) { c.ServerName = "other.example.org" }), own.URL, WrongName},
		"expired":                 {t.Context(), trusting(own, func(c *tls.Config) { c.Time = func() time.Time { return time.Now().AddDate(500, 0, 0) } }), own.URL, Expired},
		"wants a certificate":     {t.Context(), trusting(wanting, nil), wanting.URL, ClientCertificate},
		"no version in common":    {t.Context(), trusting(old, func(c *tls.Config) { c.MinVersion = tls.VersionTLS13 }), old.URL, TLS},
		"plain HTTP":              {t.Context(), &http.Client{}, strings.Replace(plain.URL, "http:", "https:", 1), NotTLS},
		"closed without a word":   {t.Context(), &http.Client{}, raw(""), Closed},
		"cut off":                 {t.Context(), &http.Client{}, raw("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"), Closed},
		"words that look like it": {t.Context(), &http.Client{}, raw("tls: certificate required\r\n\r\n"), Other},
	} {
		t.Run(name, func(t *testing.T) {
			defer tt.client.CloseIdleConnections()
			r, err := http.NewRequestWithContext(tt.ctx, http.MethodGet, tt.url, nil)
			if err != nil {
				t.Fatal(err)
			}
			response, err := tt.client.Do(r)
			if err == nil {
				_, err = io.Copy(io.Discard, response.Body)
				_ = response.Body.Close()
			}
			if err == nil {
				t.Fatal("no error")
			}
			if got := Of(err); got != tt.want {
				t.Errorf("%v is of kind %d, want %d", err, got, tt.want)
			}
		})
	}
}

func TestOf(t *testing.T) {
	dial := func(err error) error { return &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", err)} }
	for _, tt := range []struct {
		err  error
		want Kind
	}{
		{dial(syscall.EHOSTUNREACH), Unreachable}, {dial(syscall.EPERM), Unreachable}, {dial(syscall.ETIMEDOUT), Timeout}, {dial(syscall.ECONNRESET), Closed},
		{&net.DNSError{IsTimeout: true}, Name}, {os.ErrDeadlineExceeded, Timeout}, {errors.New("x"), Other},
		{fmt.Errorf("a: %w", errors.Join(io.EOF, errors.New("tls: bad record MAC"))), TLS},
		{fmt.Errorf("malformed HTTP response %q", "tls: x"), Other}, {&net.OpError{Op: "remote error"}, TLS},
	} {
		if got := Of(tt.err); got != tt.want {
			t.Errorf("%v is of kind %d, want %d", tt.err, got, tt.want)
		}
	}
	for k := Other; k <= TLS; k++ {
		if k.IsCertificate() && !k.IsTLS() || k.IsTLS() != (k >= Untrusted) {
			t.Errorf("kind %d", k)
		}
	}
}
