// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/espalier-dev/espalier/internal/mcpserver/upstream/client"
	"github.com/espalier-dev/espalier/internal/openapi"
)

// origin is where a document comes from. It is used by one goroutine at a
// time.
type origin interface {
	// read gives the document; nil when it is known to be the one in use.
	read(ctx context.Context) ([]byte, error)
	// taken says that what was read last is in use.
	taken()
	// interval until it is to be read again, after so many failures in a row.
	interval(failures int) time.Duration
}

func originOf(s *source) origin {
	if s.config.OpenAPI.DocumentFile != "" {
		return &fileOrigin{source: s}
	}
	return &urlOrigin{source: s}
}

// fileOrigin is a mounted key.
type fileOrigin struct{ source *source }

func (o *fileOrigin) read(context.Context) ([]byte, error) {
	data, err := o.source.m.options.Credentials.Bytes(o.source.config.OpenAPI.DocumentFile)
	if err != nil {
		return nil, &client.Error{Reason: client.CredentialMissing, Cause: err}
	}
	return data, nil
}

func (o *fileOrigin) taken() {}

func (o *fileOrigin) interval(int) time.Duration { return o.source.m.timing.Credential }

// urlOrigin is a URL. It is asked for changes by the means of HTTP.
type urlOrigin struct {
	source *source
	// validators of what is in use, and of what was read last.
	use, last validators
}

type validators struct{ etag, modified string }

func (o *urlOrigin) taken() { o.use = o.last }

// interval is Document, and after failures a backoff from Refresh up to it.
func (o *urlOrigin) interval(failures int) time.Duration {
	t := &o.source.m.timing
	if failures == 0 || failures > 10 {
		return jitter(t.Document)
	}
	return jitter(min(t.Refresh<<(failures-1), t.Document))
}

func (o *urlOrigin) read(ctx context.Context) ([]byte, error) {
	m, config := o.source.m, &o.source.config
	ctx, cancel := context.WithTimeout(ctx, m.timing.Handshake)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.OpenAPI.DocumentURL, nil)
	if err != nil {
		return nil, &client.Error{Reason: client.Failed, Cause: err}
	}
	// What is meant for the API goes to no other.
	tls := config.TLS
	withCredential := false
	if config.URL == "" || openapi.SameOrigin(config.URL, config.OpenAPI.DocumentURL) {
		header, credential, err := m.headers(config.Headers)
		if err != nil {
			return nil, &client.Error{Reason: client.CredentialMissing, Cause: err}
		}
		request.Header, withCredential = header, credential || o.source.authorizer != nil
	} else {
		tls = nil
	}
	request.Header.Set("Accept", "application/json, application/yaml;q=0.9, */*;q=0.5")
	request.Header.Set("User-Agent", "espalier/"+m.options.Version)
	if o.use.etag != "" {
		request.Header.Set("If-None-Match", o.use.etag)
	}
	if o.use.modified != "" {
		request.Header.Set("If-Modified-Since", o.use.modified)
	}
	httpClient, err := m.options.Client(tls)
	if err != nil {
		return nil, &client.Error{Reason: client.CredentialMissing, Cause: err}
	}
	response, err := o.source.authorizer.Client(httpClient, nil).Do(request) // The token of one origin.
	if err != nil {
		return nil, client.NetworkError(err)
	}
	defer response.Body.Close()
	return o.answer(response, withCredential)
}

func (o *urlOrigin) answer(response *http.Response, withCredential bool) ([]byte, error) {
	switch status := response.StatusCode; {
	case status == http.StatusNotModified:
		return nil, nil
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		reason := client.AuthRequired
		if withCredential {
			reason = client.AuthRejected
		}
		return nil, &client.Error{Reason: reason, Status: status}
	case status >= 300 && status < 400:
		return nil, &client.Error{Reason: client.Redirected, Status: status}
	case status != http.StatusOK:
		return nil, &client.Error{Reason: client.UnexpectedStatus, Status: status}
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, openapi.MaxBytes+1))
	if err != nil {
		return nil, client.NetworkError(err)
	}
	if len(data) > openapi.MaxBytes {
		return nil, &client.Error{Reason: client.TooLarge}
	}
	o.last = validators{etag: response.Header.Get("ETag"), modified: response.Header.Get("Last-Modified")}
	return data, nil
}
