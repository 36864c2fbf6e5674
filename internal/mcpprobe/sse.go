// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpprobe

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// event is one event of a stream.
type event struct {
	kind string // empty means "message"
	data []byte
}

// eventReader reads server-sent events as the WHATWG standard has them:
// comments, unknown fields and lines without a colon are no errors, lines end
// in LF, CR or CRLF, a byte-order mark may come first, and an event that the
// stream's end cuts off is none.
type eventReader struct {
	r      *bufio.Reader
	begun  bool
	skipLF bool
}

func newEventReader(r io.Reader) *eventReader {
	return &eventReader{r: bufio.NewReader(r)}
}

// next gives the next event that has data. Events without are passed over,
// as keep-alives and the priming event of a resumable stream are.
func (e *eventReader) next() (event, error) {
	var ev event
	hasData := false
	for {
		line, err := e.line()
		if err != nil {
			return event{}, err
		}
		if len(line) == 0 {
			if hasData && len(ev.data) > 0 {
				return ev, nil
			}
			ev, hasData = event{}, false
			continue
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "data":
			if hasData {
				ev.data = append(ev.data, '\n')
			}
			ev.data = append(ev.data, value...)
			hasData = true
		case "event":
			ev.kind = string(value)
		}
	}
}

// line gives the next line without its end. The last line counts only when
// it is ended. The bound of the reader below bounds a line.
func (e *eventReader) line() ([]byte, error) {
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
		line = append(line, c)
	}
}

var utf8BOM = []byte("\xef\xbb\xbf")
