// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"bytes"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
)

// message is one line of the client: a request, a notification, a response,
// or a batch of them as revision 2025-03-26 has it.
type message struct {
	wire.Message
	raw   []byte
	batch bool
	// modern is the revision that _meta names, empty in the legacy era.
	modern string
	// safe: to send it twice changes nothing.
	safe bool
	// after are closed when what came before and must arrive first has.
	after []<-chan struct{}

	// ids are those of the requests in it, raw.
	ids [][]byte

	// unwanted: the client gave it up, and gets no error for it.
	unwanted atomic.Bool

	mu sync.Mutex
	// open are the raw ids that are not answered yet.
	open [][]byte
}

// read takes a line apart. The error, if any, is the answer to it.
func read(line []byte) (*message, *wire.Error) {
	m := &message{raw: bytes.TrimSpace(line)}
	if wire.IsBatch(m.raw) {
		return m, m.readBatch()
	}
	if err := wire.DecodeMessage(m.raw, &m.Message); err != nil {
		return m, err
	}
	m.modern, _ = m.Meta.Text(mcp.MetaProtocolVersion)
	m.safe = safe(m.Method)
	if m.isRequest() {
		m.open = [][]byte{m.ID}
	}
	m.ids = slices.Clone(m.open)
	return m, nil
}

func (m *message) readBatch() *wire.Error {
	m.batch, m.safe = true, true
	parts, err := wire.DecodeBatch(m.raw)
	if err != nil {
		return err
	}
	for _, raw := range parts {
		var one wire.Message
		if err := wire.DecodeMessage(raw, &one); err != nil {
			return err
		}
		m.safe = m.safe && safe(one.Method)
		if one.ID != nil && !one.IsResponse {
			m.open = append(m.open, one.ID)
		}
	}
	m.ids = slices.Clone(m.open)
	return nil
}

// safe reports whether to run a method twice is the same as to run it once.
func safe(method string) bool {
	switch method {
	case mcp.MethodDiscover, mcp.MethodInitialize, mcp.MethodPing,
		mcp.MethodToolsList, mcp.MethodResourcesList, mcp.MethodResourceTemplates, mcp.MethodResourcesRead,
		mcp.MethodPromptsList, mcp.MethodPromptsGet, mcp.MethodComplete,
		mcp.MethodSubscriptionsListen, mcp.MethodSetLevel, mcp.MethodSubscribe, mcp.MethodUnsubscribe:
		return true
	}
	return false
}

// isRequest: it wants an answer.
func (m *message) isRequest() bool {
	if m.batch {
		return len(m.ids) > 0
	}
	return m.ID != nil && !m.IsResponse
}

// isListen: it is a request whose answer is a stream without end.
func (m *message) isListen() bool { return m.modern != "" && m.Method == mcp.MethodSubscriptionsListen }

// giveUp gives the ids without an answer so far, which get theirs now.
func (m *message) giveUp() [][]byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := m.open
	m.open = nil
	return out
}

// answered reports whether no answer is missing.
func (m *message) answered() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.open) == 0
}

// settle notes the answers in p, and reports whether there was one, and
// whether none is missing any more.
func (m *message) settle(p packet) (one, all bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range p.parts {
		if !p.parts[i].isAnswer() {
			continue
		}
		for j, id := range m.open {
			if sameID(id, p.parts[i].id) {
				m.open = append(m.open[:j:j], m.open[j+1:]...)
				one = true
				break
			}
		}
	}
	return one, len(m.open) == 0
}

// packet is what the server sent at once: a message, or a batch.
type packet struct {
	// raw has no line breaks.
	raw   []byte
	parts []incoming
}

// incoming is one message of the server.
type incoming struct {
	id, params, result, failure []byte
	method                      string
}

func (in *incoming) isAnswer() bool {
	return in.method == "" && (in.result != nil || in.failure != nil)
}
func (in *incoming) isRequest() bool { return in.method != "" && in.id != nil }

// anonymous: it does not say which message it is about.
func (in *incoming) anonymous() bool { return in.id == nil || string(in.id) == "null" }

// code of an error answer, 0 for none.
func (in *incoming) code() int { return codeOf(in.failure) }

// parse reads what the server sent; false when it is no message. Nothing but
// the protocol may reach the client's end.
func parse(raw []byte) (packet, bool) {
	p := packet{raw: wire.OneLine(bytes.TrimSpace(raw))}
	if !wire.IsBatch(p.raw) {
		in, ok := parseOne(p.raw)
		p.parts = []incoming{in}
		return p, ok
	}
	parts, err := wire.DecodeBatch(p.raw)
	if err != nil {
		return p, false
	}
	for _, part := range parts {
		in, ok := parseOne(part)
		if !ok {
			return p, false
		}
		p.parts = append(p.parts, in)
	}
	return p, true
}

func parseOne(raw []byte) (incoming, bool) {
	object, err := wire.DecodeObject(raw)
	if err != nil {
		return incoming{}, false
	}
	if version, _ := object.Text("jsonrpc"); version != "2.0" {
		return incoming{}, false
	}
	in := incoming{id: object.Get("id"), params: object.Get("params"), result: object.Get("result"), failure: object.Get("error")}
	in.method, _ = object.Text("method")
	return in, in.method != "" || in.isAnswer()
}

// sameID compares raw ids. Some servers send a number back as a string.
func sameID(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	return idText(a) == idText(b)
}

func idText(raw []byte) string {
	if text, ok := wire.Text(raw); ok {
		return text
	}
	return string(raw)
}

// Where the id of a message stands whose whole is not kept: its first or its
// last members, as the common clients write them.
var (
	idAtHead = regexp.MustCompile(`^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*("(?:[^"\\]|\\.)*"|-?\d+)\s*,`)
	idAtTail = regexp.MustCompile(`,\s*"id"\s*:\s*("(?:[^"\\]|\\.)*"|-?\d+)\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$`)
)
