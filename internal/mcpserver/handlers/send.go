// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"time"

	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/neterror"
	"github.com/espalier-dev/espalier/internal/tracing"
)

const (
	// firstBackoff before a retry; it doubles up to maxBackoff.
	firstBackoff = 100 * time.Millisecond
	maxBackoff   = 2 * time.Second
	// maxErrorBody is how much of an error's body is read.
	maxErrorBody = 4 << 10
)

// answer of a backend, read to its end.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// retryStatus are the answers after which an idempotent request is sent again.
var retryStatus = map[int]bool{
	http.StatusTooManyRequests: true, http.StatusBadGateway: true,
	http.StatusServiceUnavailable: true, http.StatusGatewayTimeout: true,
}

// send sends the request, again where that is harmless and could help.
func (h *httpHandler) send(ctx context.Context, client *http.Client, p *prepared, limit int64) (*answer, error) {
	backoff := firstBackoff
	for attempt := 0; ; attempt++ {
		got, err := h.traced(ctx, client, p, limit, attempt)
		last := attempt >= h.retries
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err != nil && (last || !worthRetry(err)):
			return nil, err
		case err == nil && (last || !retryStatus[got.status]):
			return got, nil
		}
		// Half of the wait is chance, so that callers do not return at once.
		wait := time.NewTimer(backoff/2 + rand.N(backoff/2)) //nolint:gosec // jitter, no secret
		select {
		case <-wait.C:
		case <-ctx.Done():
			wait.Stop()
			return nil, context.Cause(ctx)
		}
		backoff = min(2*backoff, maxBackoff)
	}
}

func worthRetry(err error) bool {
	var failure *call.Error
	return errors.As(err, &failure) && (failure.Reason == call.BackendFailed || failure.Reason == call.BackendTimeout)
}

func (h *httpHandler) attempt(ctx context.Context, client *http.Client, p *prepared, limit int64) (*answer, error) {
	ctx, cancel := context.WithTimeout(ctx, h.timeout)
	defer cancel()
	var reader io.Reader
	if p.body != nil {
		reader = bytes.NewReader(p.body)
	}
	request, err := http.NewRequestWithContext(ctx, h.method, "http://placeholder.invalid", reader)
	if err != nil {
		return nil, call.Fail(call.Internal, "the request cannot be made")
	}
	u := *p.url
	request.URL, request.Host, request.Header = &u, u.Host, p.header.Clone()
	tracing.IntoHeader(ctx, request.Header)
	response, err := client.Do(request)
	if err != nil {
		return nil, h.transportFailure(ctx, err)
	}
	defer response.Body.Close()
	if response.StatusCode >= http.StatusBadRequest && h.result.isError == nil {
		limit = maxErrorBody
		raw, _ := io.ReadAll(io.LimitReader(response.Body, limit))
		return &answer{status: response.StatusCode, header: response.Header, body: raw}, nil
	}
	raw, err := io.ReadAll(io.LimitReader(response.Body, limit+1))
	if err != nil {
		return nil, h.transportFailure(ctx, err)
	}
	if int64(len(raw)) > limit {
		return nil, call.Fail(call.ResultTooLarge, "the backend's answer is larger than %d bytes", limit)
	}
	return &answer{status: response.StatusCode, header: response.Header, body: raw}, nil
}

// transportFailure says what went wrong in words of our own: the error of
// net/http holds the whole URL, query included.
func (h *httpHandler) transportFailure(ctx context.Context, err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	var failure *call.Error
	if errors.As(err, &failure) {
		return failure
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return call.Fail(call.BackendTimeout, "the backend did not answer within %d s", int(h.timeout.Seconds()))
	}
	return call.Fail(call.BackendFailed, "the backend cannot be reached: %s", describeFailure(err)).Because(err)
}

func describeFailure(err error) string {
	switch kind := neterror.Of(err); {
	case kind == neterror.Name:
		return "its name does not resolve"
	case kind == neterror.Refused:
		return "connection refused"
	case kind.IsCertificate():
		return "its certificate is not trusted"
	case kind == neterror.ClientCertificate:
		return "it wants a client certificate"
	case kind.IsTLS():
		return "TLS failed"
	case kind == neterror.Closed:
		return "connection closed"
	}
	return "connection failed"
}
