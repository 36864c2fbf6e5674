// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package sse

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// FuzzReader: the reader finds what a plain reading of the standard finds,
// however the bytes arrive, and holds no more than it may.
func FuzzReader(f *testing.F) {
	for _, seed := range []string{
		"data: a\n\n", "event: endpoint\ndata:/m?x=1\r\n\r\n", ":\n\ndata: {\ndata: }\n\n", "\ufeffdata: a\r\rdata:  b\r\r",
		"data\ndata\n\n", "data: cut off", "event: x\n\ndata: y\n\n", "id: 7\nretry: 1\ndata: z\n\n", "\r\n\n\rdata:\n\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		want := plainly(stream)
		for name, r := range map[string]io.Reader{"at once": bytes.NewReader(stream), "byte by byte": iotest.OneByteReader(bytes.NewReader(stream))} {
			got, err := all(NewReader(r))
			if !errors.Is(err, io.EOF) {
				t.Errorf("%s: ended by %v", name, err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
		const limit = 16
		bounded := NewReader(bytes.NewReader(stream))
		bounded.Max = limit
		got, err := all(bounded)
		if !errors.Is(err, io.EOF) && !errors.Is(err, ErrTooLarge) {
			t.Errorf("bounded: ended by %v", err)
		}
		for i, e := range got {
			if len(e.Data)+len(e.Kind) > limit || i >= len(want) || !bytes.Equal(e.Data, want[i].Data) {
				t.Fatalf("bounded: event %d is %q", i, e)
			}
		}
	})
}

func all(r *Reader) ([]Event, error) {
	var out []Event
	for {
		e, err := r.Next()
		if err != nil {
			return out, err
		}
		out = append(out, e)
	}
}

// plainly reads a whole stream line by line, as the standard says it.
func plainly(stream []byte) []Event {
	text := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(stream))
	lines := strings.Split(text, "\n")
	lines = lines[:len(lines)-1] // What no line end follows was cut off.
	var out []Event
	var data []string
	kind := ""
	for i, line := range lines {
		if i == 0 {
			line = strings.TrimPrefix(line, "\ufeff")
		}
		if line == "" {
			if joined := strings.Join(data, "\n"); joined != "" {
				out = append(out, Event{Kind: kind, Data: []byte(joined)})
			}
			data, kind = nil, ""
			continue
		}
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "data":
			data = append(data, value)
		case "event":
			kind = value
		}
	}
	return out
}
