// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package streamhttp

import (
	"net/http"
	"time"

	"github.com/espalier-dev/espalier/internal/mcpserver/engine"
)

// stream is a response in Server-Sent Events. It implements session.Numbered.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	buffer  []byte
}

func openStream(w http.ResponseWriter) (engine.Stream, error) {
	header := w.Header()
	header.Set("Content-Type", mediaStream)
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no")
	s := &stream{w: w, control: http.NewResponseController(w)}
	_ = s.control.SetWriteDeadline(time.Now().Add(writeLimit)) // Not every writer has deadlines.
	w.WriteHeader(http.StatusOK)
	return s, s.control.Flush()
}

// Send implements engine.Stream. A message is compact JSON: it has no line
// breaks.
func (s *stream) Send(message []byte) error {
	s.buffer = append(s.buffer[:0], "event: message\ndata: "...)
	s.buffer = append(s.buffer, message...)
	s.buffer = append(s.buffer, "\n\n"...)
	return s.write()
}

// SendEvent implements session.Numbered.
func (s *stream) SendEvent(id string, message []byte) error {
	s.buffer = append(append(append(s.buffer[:0], "id: "...), id...), '\n')
	if len(message) > 0 {
		s.buffer = append(s.buffer, "event: message\n"...)
	}
	s.buffer = append(append(append(s.buffer, "data: "...), message...), "\n\n"...)
	return s.write()
}

// KeepAlive implements engine.Stream by a comment.
func (s *stream) KeepAlive() error {
	s.buffer = append(s.buffer[:0], ":\n\n"...)
	return s.write()
}

func (s *stream) write() error {
	_ = s.control.SetWriteDeadline(time.Now().Add(writeLimit))
	if _, err := s.w.Write(s.buffer); err != nil {
		return err
	}
	return s.control.Flush()
}
