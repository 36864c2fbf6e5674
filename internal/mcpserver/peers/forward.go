// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package peers

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httputil"
	"strings"
	"time"
)

// Path is where a replica's internal port takes what others pass on; the
// original path follows.
const Path = "/forwarded"

// writeLimit is how long a client may take for one part of an answer.
const writeLimit = 60 * time.Second

type forwarded struct{}

// Receive hands requests that other replicas pass on to h, as they came to
// them. h is to judge them as it judges all others, credentials included.
func Receive(h http.Handler) http.Handler {
	return http.StripPrefix(Path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), forwarded{}, true)))
	}))
}

// Elsewhere reports whether a request that the replica with a hash has to
// answer must be passed on. One that was passed on to here never is again.
func (p *Peers) Elsewhere(ctx context.Context, hash string) bool {
	return p.hash != "" && hash != "" && hash != p.hash && ctx.Value(forwarded{}) == nil
}

// Forward passes a request on to the replica with a hash, and its answer back
// as it comes, streams too. body is what was read of the request, nil for
// none. On an error (ErrGone, ErrUnknown, ErrBroken, or that of a client who
// left) nothing was written.
func (p *Peers) Forward(w http.ResponseWriter, r *http.Request, hash string, body []byte) error {
	address, err := p.Find(r.Context(), hash)
	if err != nil {
		return err
	}
	var failure error
	proxy := &httputil.ReverseProxy{
		Transport: p.client,
		Rewrite: func(out *httputil.ProxyRequest) {
			out.Out.URL.Scheme, out.Out.URL.Host = p.scheme(), address
			out.Out.URL.Path, out.Out.URL.RawPath = Path+out.In.URL.Path, ""
			out.Out.Host = out.In.Host
			for name, values := range out.In.Header { // It drops those about who forwarded before.
				if name == "Forwarded" || strings.HasPrefix(name, "X-Forwarded-") {
					out.Out.Header[name] = values
				}
			}
		},
		ModifyResponse: func(*http.Response) error {
			clear(w.Header()) // The other one says all that there is to say.
			return nil
		},
		FlushInterval: -1,
		ErrorHandler:  func(_ http.ResponseWriter, _ *http.Request, err error) { failure = err },
	}
	request := r.Clone(r.Context())
	request.Body, request.ContentLength = http.NoBody, 0
	if len(body) > 0 {
		// The connection may read it for longer than the caller keeps it.
		request.Body, request.ContentLength = io.NopCloser(bytes.NewReader(bytes.Clone(body))), int64(len(body))
	}
	proxy.ServeHTTP(&writer{w, http.NewResponseController(w)}, request)
	switch {
	case failure == nil:
		return nil
	case errors.Is(failure, ErrGone):
		p.forget()
		return ErrGone
	}
	return errors.Join(ErrBroken, failure)
}

// forget makes the next lookup come at once.
func (p *Peers) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at = time.Time{}
}

// writer gives each write a deadline: a client that reads nothing must not
// hold two replicas.
type writer struct {
	http.ResponseWriter
	control *http.ResponseController
}

func (w *writer) Write(b []byte) (int, error) {
	_ = w.control.SetWriteDeadline(time.Now().Add(writeLimit)) // Not every writer has deadlines.
	return w.ResponseWriter.Write(b)
}

func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }
