// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"log/slog"
	"testing"
)

// FuzzOutput: of whatever a child writes, the end is kept, in whatever parts it
// comes, and no more of it than may be.
func FuzzOutput(f *testing.F) {
	f.Add([]byte("one\ntwo\n"), []byte("three"), 8)
	f.Add(bytes.Repeat([]byte("x"), 5000), []byte("\n\xff\n"), 64)
	f.Add([]byte{}, []byte("\n"), 1)
	f.Fuzz(func(t *testing.T, first, second []byte, limit int) {
		limit = min(max(limit, 1), 1<<16)
		r := newRing(limit, slog.New(slog.DiscardHandler))
		r.readAll(bytes.NewReader(first))
		r.readAll(bytes.NewReader(second))
		all := append(bytes.Clone(first), second...)
		kept, dropped := r.bytes()
		if len(kept) > limit || dropped != (len(all) > limit) || !bytes.HasSuffix(all, kept) || !dropped && len(kept) != len(all) {
			t.Fatalf("of %d bytes %d are kept, dropped: %t", len(all), len(kept), dropped)
		}
		if len(r.lines.part) > maxLogged {
			t.Fatalf("a line of %d bytes is held", len(r.lines.part))
		}
	})
}
