// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
)

const (
	keyProgressToken = "progressToken"
	ownPrefix        = "mcp.espalier.dev/"
)

// protocolPrefixes are of keys of _meta that belong to the protocol.
var protocolPrefixes = []string{"io.modelcontextprotocol/", "modelcontextprotocol.io/", ownPrefix}

// reservedMeta reports whether a key of _meta is not the users' own.
func reservedMeta(key string) bool {
	for _, prefix := range protocolPrefixes {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}

// passOn gives a call what reaches beyond this server: the caller's own keys
// of _meta, the count of hops, and the way back for progress.
func passOn(r *Request, c *call.Call) *progress {
	for _, field := range r.Message.Meta {
		switch {
		case field.Key == mcp.MetaHops:
			// What is no number counts as none; a peer that wants to run in a
			// circle could leave it out as well.
			c.Hops, _ = strconv.Atoi(string(field.Raw))
		case field.Key != keyProgressToken && !reservedMeta(field.Key):
			if len(c.Meta) > 0 {
				c.Meta = append(c.Meta, ',')
			}
			c.Meta = append(wire.AppendString(c.Meta, field.Key), ':')
			c.Meta = append(c.Meta, field.Raw...)
		}
	}
	token := r.Message.Meta.Get(keyProgressToken)
	if token == nil || string(token) == "null" || !r.Streams || r.Open == nil {
		return nil
	}
	p := &progress{request: r, token: token}
	c.Progress = p.tell
	return p
}

// progress turns the answer to a call into a stream at the first thing that
// there is to tell before it.
type progress struct {
	request *Request
	token   []byte

	mu     sync.Mutex
	stream Stream
	failed bool
	stop   chan struct{}
}

// tell sends one notification with the caller's own token.
func (p *progress) tell(params wire.Object) {
	out := []byte(`{"jsonrpc":"2.0","method":"` + mcp.NotificationProgress + `","params":{"` + keyProgressToken + `":`)
	out = append(out, p.token...)
	for _, field := range params {
		if field.Key != keyProgressToken && field.Key != "_meta" {
			out = wire.AppendField(out, field.Key, field.Raw)
		}
	}
	out = append(out, "}}"...)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stream == nil && !p.failed {
		stream, err := p.request.Open()
		if err != nil {
			p.failed = true // The client is gone, which ends the call as well.
			return
		}
		p.stream, p.stop = stream, make(chan struct{})
		go p.keepAlive(p.stop)
	}
	p.send(out)
}

// send writes a message on one line, as a stream has it. It is called with
// the lock held.
func (p *progress) send(message []byte) {
	if p.failed {
		return
	}
	if bytes.ContainsAny(message, "\r\n") {
		var line bytes.Buffer
		if json.Compact(&line, message) != nil {
			return // It was read as JSON before.
		}
		message = line.Bytes()
	}
	p.failed = p.stream.Send(message) != nil
}

func (p *progress) keepAlive(stop <-chan struct{}) {
	ticker := time.NewTicker(keepAlive)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
			p.mu.Lock()
			select {
			case <-stop: // The answer has gone out: the stream is no longer ours.
			default:
				p.failed = p.failed || p.stream.KeepAlive() != nil
			}
			p.mu.Unlock()
		}
	}
}

// finish sends the answer on the stream, if there is one.
func (p *progress) finish(reply Reply) Reply {
	if p == nil {
		return reply
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stream == nil {
		return Reply{Body: reply.Body, Status: reply.Status, Streamed: p.failed}
	}
	p.send(reply.Body)
	close(p.stop)
	return Reply{Streamed: true}
}
