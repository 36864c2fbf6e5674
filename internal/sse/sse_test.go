// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package sse

import (
	"strings"
	"testing"
	"time"
)

// The id and the pause of a stream are told, of events without data too; one
// that the stream's end cuts off does not count.
func TestResumption(t *testing.T) {
	r := NewReader(strings.NewReader("id: a\nretry: 1500\ndata:\n\ndata: 1\n\nid: b\ndata: 2\n\nid: c\x00d\nretry: soon\ndata: 3\n\nid\ndata: 4\n\nid: z\ndata: 5\n"))
	for _, want := range []struct{ data, id string }{{"1", "a"}, {"2", "b"}, {"3", "b"}, {"4", ""}} {
		e, err := r.Next()
		if err != nil || string(e.Data) != want.data || r.LastID != want.id || r.Retry != 1500*time.Millisecond {
			t.Errorf("got %q, %v, id %q, retry %v; want %v", e.Data, err, r.LastID, r.Retry, want)
		}
	}
	if _, err := r.Next(); err == nil || r.LastID != "" {
		t.Errorf("got %v, id %q at the end", err, r.LastID)
	}
}
