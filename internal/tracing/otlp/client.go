// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

const (
	// firstPause lies before another attempt; it doubles up to maxPause, and a
	// collector may ask for more, up to patience. All attempts together take
	// no longer than that.
	firstPause = 2 * time.Second
	maxPause   = 30 * time.Second
	patience   = time.Minute
	// maxAnswer is how much is read of what the collector answers.
	maxAnswer = 64 << 10
)

// client posts spans. It implements otlptrace.Client. OpenTelemetry's own
// brings all of gRPC into the binary for the types of one message, and that is
// a fifth of the operator.
type client struct {
	settings settings
	http     *http.Client
	stopped  atomic.Bool
	stop     chan struct{}
	// pause is firstPause.
	pause time.Duration
}

func newClient(s settings) *client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = s.tls
	return &client{settings: s, http: &http.Client{Transport: transport, Timeout: s.timeout}, stop: make(chan struct{}), pause: firstPause}
}

// Start implements otlptrace.Client.
func (c *client) Start(context.Context) error { return nil }

// Stop implements otlptrace.Client: what waits for another attempt is given up.
func (c *client) Stop(context.Context) error {
	if c.stopped.CompareAndSwap(false, true) {
		close(c.stop)
	}
	c.http.CloseIdleConnections()
	return nil
}

// UploadTraces implements otlptrace.Client.
func (c *client) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	// The request of OTLP and TracesData are the same on the wire, by design.
	body, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err != nil {
		return err
	}
	if c.settings.gzip {
		if body, err = compressed(body); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for pause := c.pause; ; pause = min(2*pause, maxPause) {
		wait, err := c.post(ctx, body)
		if wait < 0 || err == nil {
			return err
		}
		timer := time.NewTimer(max(wait, pause))
		select {
		case <-timer.C:
		case <-c.stop:
			timer.Stop()
			return err
		case <-ctx.Done():
			timer.Stop()
			return errors.Join(err, ctx.Err())
		}
	}
}

func compressed(body []byte) ([]byte, error) {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write(body); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// errRefused: the collector answered, and did not take the spans. What it said
// is not told.
var errRefused = errors.New("refused")

// post makes one attempt. With an error, wait is for how long the collector
// wants to be left alone; negative: another attempt would give the same.
func (c *client) post(ctx context.Context, body []byte) (wait time.Duration, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.settings.url, bytes.NewReader(body))
	if err != nil {
		return -1, err
	}
	request.Header = c.settings.headers.Clone()
	request.Header.Set("Content-Type", "application/x-protobuf")
	if c.settings.gzip {
		request.Header.Set("Content-Encoding", "gzip")
	}
	response, err := c.http.Do(request)
	if err != nil {
		var wrapped *url.Error // It holds the URL.
		if errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		if ctx.Err() != nil {
			return -1, err
		}
		return 0, err
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, maxAnswer)) // So that the connection can be used again.
	switch response.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return retryAfter(response.Header), fmt.Errorf("%w with status %d", errRefused, response.StatusCode)
	}
	if response.StatusCode/100 != 2 {
		return -1, fmt.Errorf("%w with status %d", errRefused, response.StatusCode)
	}
	return 0, nil
}

// retryAfter reads Retry-After, in seconds; a date is none.
func retryAfter(header http.Header) time.Duration {
	seconds, err := strconv.ParseUint(header.Get("Retry-After"), 10, 32)
	if err != nil {
		return 0
	}
	return min(time.Duration(seconds)*time.Second, patience)
}
