// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package stdio

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"github.com/espalier-dev/espalier/internal/mcpserver/duplex"
)

// FuzzConn: the lines of a stream come one by one, however its bytes arrive;
// one that is too large fails alone.
func FuzzConn(f *testing.F) {
	f.Add([]byte("{}\n{}\r\n\n  \n{}"), int64(10))
	f.Add([]byte("0123456789\n0123456789\r\nx"), int64(9))
	f.Add(append(bytes.Repeat([]byte("x"), bufferSize+1), "\n{}\n"...), int64(3))
	f.Add([]byte("\r\n\x00\n"), int64(0))
	f.Fuzz(func(t *testing.T, stream []byte, limit int64) {
		limit = min(max(limit, 0), 1<<20)
		for name, in := range map[string]io.Reader{"at once": bytes.NewReader(stream), "byte by byte": iotest.OneByteReader(bytes.NewReader(stream))} {
			conn := NewConn(in, io.Discard)
			for i, want := range bytes.Split(stream, []byte("\n")) {
				if int64(len(want)) <= limit && blank(want) {
					continue
				}
				got, err := conn.Read(context.Background(), limit)
				if int64(len(want)) > limit {
					var large *duplex.TooLargeError
					// The last line has no end to be counted.
					if !errors.As(err, &large) && int64(len(want)) != limit+1 {
						t.Fatalf("%s: line %d of %d bytes: %v", name, i, len(want), err)
					}
					continue
				}
				if err != nil || !bytes.Equal(bytes.TrimSuffix(got, []byte("\n")), want) {
					t.Fatalf("%s: line %d is %q, %v; want %q", name, i, got, err, want)
				}
			}
			if got, err := conn.Read(context.Background(), limit); !errors.Is(err, io.EOF) {
				t.Fatalf("%s: after the end %q, %v", name, got, err)
			}
		}
	})
}
