// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package streamhttp

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/engine"
	"github.com/espalier-dev/espalier/internal/mcpserver/httpgate"
	"github.com/espalier-dev/espalier/internal/mcpserver/principal"
	"github.com/espalier-dev/espalier/internal/mcpserver/registry"
	"github.com/espalier-dev/espalier/internal/mcpserver/session"
	"github.com/espalier-dev/espalier/internal/mcpserver/transport"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
)

const (
	mediaJSON   = "application/json"
	mediaStream = "text/event-stream"
	// writeLimit is how long an answer or one event may take: a slow peer must
	// not hold what others need.
	writeLimit = 60 * time.Second
	// keptBuffer is the largest buffer that is kept for the next request.
	keptBuffer = 256 << 10
)

// buffers of one request.
type buffers struct {
	in      bytes.Buffer
	out     []byte
	message wire.Message
}

var pool = sync.Pool{New: func() any { return new(buffers) }}

func (b *buffers) release() {
	if b.in.Cap() > keptBuffer || cap(b.out) > keptBuffer {
		return
	}
	b.in.Reset()
	b.out = b.out[:0]
	b.message = wire.Message{}
	pool.Put(b)
}

// post reads one message and answers it.
func (t *Transport) post(w http.ResponseWriter, r *http.Request, h transport.Handler, snapshot *registry.Snapshot, caller *principal.Principal) {
	if status, err := checkMedia(r); err != nil {
		refuse(w, status, err)
		return
	}
	b := pool.Get().(*buffers)
	defer b.release()
	if status, err := httpgate.Body(w, r, &b.in, snapshot.Config.Limits.MaxMessageBytes); err != nil {
		t.metrics.Refused("Body")
		refuse(w, status, err)
		return
	}
	if wire.IsBatch(b.in.Bytes()) {
		t.batch(w, r, h, snapshot, caller, b)
		return
	}
	m := &b.message
	if err := wire.DecodeMessage(b.in.Bytes(), m); err != nil {
		writeJSON(w, http.StatusBadRequest, wire.AppendError(b.out, m.ID, err))
		return
	}
	request := &engine.Request{Snapshot: snapshot, Message: m, Caller: caller, ID: httpgate.RequestID(r), Out: b.out}
	request.Open = func() (engine.Stream, error) { return openStream(w) }
	request.Streams = len(r.Header["Accept"]) > 0 && accepts(r.Header["Accept"], mediaStream)
	if status, err := prepare(r, request); err != nil {
		t.metrics.Refused("Header")
		writeJSON(w, status, wire.AppendError(b.out, m.ID, err))
		return
	}
	if request.Era == engine.Legacy && m.Method != mcp.MethodInitialize && t.elsewhere(w, r, b.in.Bytes()) {
		return
	}
	if request.Era == engine.Modern && t.parkedElsewhere(w, r, m, b.in.Bytes()) {
		return
	}
	x, status, err := bind(w, r, h, request)
	if err != nil {
		writeJSON(w, status, wire.AppendError(b.out, m.ID, err))
		return
	}
	if m.IsResponse {
		x.answer(m)
		w.WriteHeader(http.StatusAccepted)
		return
	}
	t.answer(w, b, x.handle(r, h, request))
}

func (t *Transport) answer(w http.ResponseWriter, b *buffers, reply engine.Reply) {
	if reply.Body != nil {
		b.out = reply.Body
	}
	if reply.Session != nil {
		w.Header().Set(mcp.HeaderSessionID, reply.Session.ID)
	}
	if !reply.Streamed {
		writeReply(w, reply)
	}
}

// checkMedia holds the rules for Content-Type and Accept: the first must be
// JSON, the second must let JSON pass. Answers are JSON but for
// subscriptions/listen, which is checked when it is known.
func checkMedia(r *http.Request) (int, *wire.Error) {
	if !isJSON(r.Header.Get("Content-Type")) {
		return http.StatusUnsupportedMediaType, &wire.Error{Code: mcp.CodeInvalidRequest, Message: "send Content-Type: application/json"}
	}
	if !accepts(r.Header["Accept"], mediaJSON) {
		return http.StatusNotAcceptable, &wire.Error{Code: mcp.CodeInvalidRequest, Message: "send Accept: application/json, text/event-stream"}
	}
	return 0, nil
}

var httpStatus = map[engine.Status]int{
	engine.OK: http.StatusOK, engine.Accepted: http.StatusAccepted, engine.BadRequest: http.StatusBadRequest,
	engine.NotFound: http.StatusNotFound, engine.TooManyRequests: http.StatusTooManyRequests,
	engine.Unauthorized: http.StatusUnauthorized, engine.Forbidden: http.StatusForbidden, engine.Unavailable: http.StatusServiceUnavailable,
}

func writeReply(w http.ResponseWriter, reply engine.Reply) {
	if reply.Body == nil {
		w.WriteHeader(httpStatus[reply.Status])
		return
	}
	writeJSON(w, httpStatus[reply.Status], reply.Body)
}

var jsonType, noSniff = []string{mediaJSON}, []string{"nosniff"}

func writeJSON(w http.ResponseWriter, status int, body []byte) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeLimit))
	header := w.Header()
	header["Content-Type"] = jsonType
	header["X-Content-Type-Options"] = noSniff
	header["Content-Length"] = []string{strconv.Itoa(len(body))}
	if status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests {
		header.Set("Retry-After", "1")
	}
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// batch answers the batches of revision 2025-03-26, one message after another.
func (t *Transport) batch(w http.ResponseWriter, r *http.Request, h transport.Handler, snapshot *registry.Snapshot, caller *principal.Principal, b *buffers) {
	if version := r.Header.Get(mcp.HeaderProtocolVersion); version != "" && version != mcp.Version20250326 {
		refuse(w, http.StatusBadRequest, &wire.Error{Code: mcp.CodeInvalidRequest, Message: "batches belong to revision 2025-03-26: send one message per request"})
		return
	}
	messages, invalid := wire.DecodeBatch(b.in.Bytes())
	if invalid != nil {
		refuse(w, http.StatusBadRequest, invalid)
		return
	}
	if t.elsewhere(w, r, b.in.Bytes()) {
		return
	}
	s, status, err := find(r, h, caller)
	if err != nil {
		refuse(w, status, err)
		return
	}
	var answers []json.RawMessage
	for _, raw := range messages {
		if answer := t.batched(r, h, snapshot, caller, s, raw); answer != nil {
			answers = append(answers, answer)
		}
	}
	if answers == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	out := []byte{'['}
	for i, answer := range answers {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, answer...)
	}
	writeJSON(w, http.StatusOK, append(out, ']'))
}

func (t *Transport) batched(r *http.Request, h transport.Handler, snapshot *registry.Snapshot, caller *principal.Principal, s *session.Session, raw []byte) []byte {
	m := new(wire.Message)
	if err := wire.DecodeMessage(raw, m); err != nil {
		return wire.AppendError(nil, m.ID, err)
	}
	request := &engine.Request{Snapshot: snapshot, Era: engine.Legacy, Message: m, Caller: caller, Session: s, ID: httpgate.RequestID(r)}
	if s != nil {
		request.Calls = &s.Calls
	}
	if m.IsResponse {
		(&exchange{session: s}).answer(m)
		return nil
	}
	if m.Method == mcp.MethodInitialize {
		return wire.AppendError(nil, m.ID, &wire.Error{Code: mcp.CodeInvalidRequest, Message: "initialize cannot stand in a batch"})
	}
	return h.Handle(r.Context(), request).Body
}
