// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpprobe

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"
)

// tooLargeError is what a bounded reader ends with.
type tooLargeError struct{ limit int64 }

func (tooLargeError) Error() string { return "answer too large" }

// budget is what is left of the bytes of one probe. A probe that has read
// more than lightBytes needs one of the client's few slots for large answers
// to read on, so that many servers at once cannot fill the operator's memory.
type budget struct {
	limit int64
	slots chan struct{}

	mu    sync.Mutex
	used  int64
	heavy bool
}

// lightBytes are read without a slot; hardly any server lists more.
const lightBytes = 512 << 10

// take counts n bytes, and waits for a slot when they make the probe heavy.
func (b *budget) take(ctx context.Context, n int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used += n
	if b.used > b.limit {
		return tooLargeError{b.limit}
	}
	if b.used <= lightBytes || b.heavy {
		return nil
	}
	select {
	case b.slots <- struct{}{}:
		b.heavy = true
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// release gives the slot back.
func (b *budget) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.heavy {
		b.heavy = false
		<-b.slots
	}
}

// boundReader reads at most limit bytes, and at most what the budget has.
type boundReader struct {
	ctx    context.Context //nolint:containedctx // a reader has no other way to be told
	r      io.Reader
	left   int64
	limit  int64
	budget *budget
}

// Read is io.Reader's. It fails with tooLargeError when there is more to read
// than may be.
func (b *boundReader) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return b.atLimit(b.limit)
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.r.Read(p)
	b.left -= int64(n)
	if b.budget != nil {
		if err := b.budget.take(b.ctx, int64(n)); err != nil {
			return 0, err
		}
	}
	return n, err
}

// atLimit tells an end at the limit from an excess.
func (b *boundReader) atLimit(limit int64) (int, error) {
	var one [1]byte
	for range 100 {
		n, err := b.r.Read(one[:])
		if n > 0 {
			return 0, tooLargeError{limit}
		}
		if err != nil {
			return 0, err
		}
	}
	return 0, io.ErrNoProgress
}

// encodings are names that may be told; all others are "other".
var encodings = map[string]bool{
	"br": true, "zstd": true, "deflate": true, "compress": true, "x-compress": true, "gzip": true, "x-gzip": true,
	"exi": true, "pack200-gzip": true, "dcb": true, "dcz": true, "lz4": true, "xz": true, "bzip2": true, "snappy": true,
}

// encodingError names an encoding that is not understood.
type encodingError struct{ name string }

func (encodingError) Error() string { return "unsupported content encoding" }

// openBody gives the bounded, decompressed body of resp. A gzip body is
// bounded before and after.
func openBody(ctx context.Context, resp *http.Response, limit int64, total *budget) (io.Reader, error) {
	raw := &boundReader{ctx: ctx, r: resp.Body, left: limit, limit: limit, budget: total}
	switch name := encodingOf(resp.Header); name {
	case "":
		return raw, nil
	case "gzip", "x-gzip":
		raw.budget = nil
		inflated, err := gzip.NewReader(raw)
		if errors.Is(err, io.EOF) {
			return strings.NewReader(""), nil
		}
		if err != nil {
			return nil, err
		}
		return &boundReader{ctx: ctx, r: inflated, left: limit, limit: limit, budget: total}, nil
	default:
		return nil, encodingError{name}
	}
}

// encodingOf gives the name of the content encoding: empty for none, "other"
// for one whose name is not known, or for several.
func encodingOf(h http.Header) string {
	var names []string
	for _, value := range h.Values("Content-Encoding") {
		for name := range strings.SplitSeq(value, ",") {
			name = strings.ToLower(strings.TrimSpace(name))
			if name != "" && name != "identity" {
				names = append(names, name)
			}
		}
	}
	switch {
	case len(names) == 0:
		return ""
	case len(names) == 1 && encodings[names[0]]:
		return names[0]
	}
	return "other"
}

// Media types of answers, and the words for those that are not told: a type
// may be well formed and still be the peer's own words.
const (
	typeJSON      = "application/json"
	typeSSE       = "text/event-stream"
	typeNone      = "none"
	typeMalformed = "malformed"
	typeOther     = "other"
)

var mediaTypes = map[string]bool{
	typeJSON: true, typeSSE: true,
	"application/graphql-response+json": true, "application/grpc": true, "application/javascript": true,
	"application/json-rpc": true, "application/json-seq": true, "application/jsonl": true,
	"application/ld+json": true, "application/octet-stream": true, "application/pdf": true,
	"application/problem+json": true, "application/problem+xml": true, "application/vnd.api+json": true,
	"application/x-ndjson": true, "application/x-www-form-urlencoded": true, "application/xhtml+xml": true,
	"application/xml": true, "application/yaml": true, "image/gif": true, "image/jpeg": true, "image/png": true,
	"image/svg+xml": true, "multipart/form-data": true, "multipart/mixed": true, "text/css": true, "text/csv": true,
	"text/html": true, "text/javascript": true, "text/json": true, "text/markdown": true, "text/plain": true,
	"text/xml": true, "text/yaml": true,
}

// mediaTypeOf gives the media type in lower case without parameters.
func mediaTypeOf(h http.Header) string {
	value := h.Get("Content-Type")
	if strings.TrimSpace(value) == "" {
		return typeNone
	}
	// A broken parameter does not spoil the type before it.
	bare, _, _ := strings.Cut(value, ";")
	mediaType, _, err := mime.ParseMediaType(bare)
	switch {
	case err != nil:
		return typeMalformed
	case !mediaTypes[mediaType]:
		return typeOther
	}
	return mediaType
}
