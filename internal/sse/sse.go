// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sse reads server-sent events. It trusts nobody: what it reads is
// bounded by its user.
package sse

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
	"time"
)

// ErrTooLarge says that one event is larger than it may be.
var ErrTooLarge = errors.New("event too large")

// Event is one event of a stream.
type Event struct {
	Kind string // empty means "message"
	Data []byte
}

// Reader reads server-sent events as the WHATWG standard has them:
// comments, unknown fields and lines without a colon are no errors, lines end
// in LF, CR or CRLF, a byte-order mark may come first, and an event that the
// stream's end cuts off is none.
type Reader struct {
	// Max bounds one event, in bytes; 0 leaves it to the reader below.
	Max int64
	// LastID is the id of the event that ended last, one without data too, or
	// of the last before it that had one: what Last-Event-ID is to say.
	LastID string
	// Retry is how long the stream wants to be left alone before it is opened
	// again; 0 when it did not say.
	Retry time.Duration

	r      *bufio.Reader
	size   int64
	begun  bool
	skipLF bool
}

// NewReader reads events from r.
func NewReader(r io.Reader) *Reader {
	return &Reader{r: bufio.NewReader(r)}
}

// Next gives the next event that has data. Events without are passed over,
// as keep-alives and the priming event of a resumable stream are.
func (e *Reader) Next() (Event, error) {
	var ev Event
	e.size = 0
	hasData := false
	id := e.LastID
	for {
		line, err := e.line()
		if err != nil {
			return Event{}, err
		}
		if len(line) == 0 {
			e.LastID = id
			if hasData && len(ev.Data) > 0 {
				return ev, nil
			}
			ev, hasData, e.size = Event{}, false, 0
			continue
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "data":
			if hasData {
				ev.Data = append(ev.Data, '\n')
			}
			ev.Data = append(ev.Data, value...)
			hasData = true
		case "event":
			ev.Kind = string(value)
		case "id":
			if !bytes.ContainsRune(value, 0) {
				id = string(value)
			}
		case "retry":
			if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
				e.Retry = time.Duration(ms) * time.Millisecond
			}
		}
	}
}

// line gives the next line without its end. The last line counts only when
// it is ended. Max, or the bound of the reader below, bounds a line.
func (e *Reader) line() ([]byte, error) {
	var line []byte
	for {
		// The end of a line may be known only from its CR: do not read on.
		c, err := e.r.ReadByte()
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil, io.EOF
			}
			return nil, err
		}
		if e.skipLF {
			e.skipLF = false
			if c == '\n' {
				continue
			}
		}
		if c == '\n' || c == '\r' {
			e.skipLF = c == '\r'
			if !e.begun {
				e.begun = true
				line = bytes.TrimPrefix(line, utf8BOM)
			}
			return line, nil
		}
		if e.size++; e.Max > 0 && e.size > e.Max {
			return nil, ErrTooLarge
		}
		line = append(line, c)
	}
}

var utf8BOM = []byte("\xef\xbb\xbf")
