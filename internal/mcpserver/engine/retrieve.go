// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/mcpserver/registry"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
)

// Limits of mcp_retrieve where the caller names none: entries of a list, and
// bytes of what is read.
const (
	retrieveEntries = 100
	retrieveBytes   = 64 << 10
)

// retrieve answers mcp_retrieve: what the caller may read, or, with a uri, what
// is there. The arguments were validated.
func (r *Request) retrieve(ctx context.Context, c *call.Call) (*call.Result, error) {
	uri, _ := c.Args["uri"].(string)
	limit, _ := c.Args["limit"].(int64) // Integers are decoded so.
	if uri == "" {
		return r.retrieveList(ctx, limit)
	}
	read, err := r.readFor(ctx, c, uri)
	var failure *call.Error
	if errors.As(err, &failure) && failure.Reason == call.NotFound {
		text := appendTextBlock([]byte{'['}, fmt.Sprintf("There is no resource %s that you may read. Call without uri to see which there are.", clip(uri)))
		return &call.Result{Content: append(text, ']'), IsError: true}, nil
	}
	if err != nil {
		return nil, err
	}
	if limit == 0 {
		limit = retrieveBytes
	}
	return retrieved(read, uri, limit)
}

// retrieveList lists resources and then templates, limit of them at most.
func (r *Request) retrieveList(ctx context.Context, limit int64) (*call.Result, error) {
	if limit == 0 {
		limit = retrieveEntries
	}
	visible := choice(ctx, r, (*registry.Resource).AccessEntry)
	resources, more, err := r.Snapshot.PageResources("", visible)
	if err != nil {
		return nil, err
	}
	templates, further, err := r.Snapshot.PageTemplates("", visible)
	if err != nil {
		return nil, err
	}
	out := []byte(`{"resources":[`)
	n := int64(0)
	add := func(entries []*registry.Resource) (all bool) {
		for i, e := range entries {
			// What is listed stands in the result twice.
			if n == limit || int64(len(out)+len(e.Modern)) > r.Snapshot.Config.Limits.MaxMessageBytes/3 {
				return false
			}
			if i > 0 {
				out = append(out, ',')
			}
			out = append(out, e.Modern...)
			n++
		}
		return true
	}
	all := add(resources)
	out = append(out, `],"resourceTemplates":[`...)
	all = add(templates) && all
	out = append(out, `],"more":`...)
	out = strconv.AppendBool(out, !all || more != "" || further != "")
	out = append(out, '}')
	return &call.Result{Content: append(appendTextBlock([]byte{'['}, string(out)), ']'), Structured: out}, nil
}

// part is one of the contents of resources/read.
type part struct {
	URI      string  `json:"uri"`
	MIMEType string  `json:"mimeType"`
	Text     *string `json:"text"`
	Blob     *string `json:"blob"`
}

// retrieved gives contents as content of a tool: text as text, pictures and
// sound as such, all else embedded; limit bytes of it at most.
func retrieved(read *call.Result, uri string, limit int64) (*call.Result, error) {
	var raw []json.RawMessage
	if json.Unmarshal(read.Content, &raw) != nil {
		return nil, call.Fail(call.InvalidResult, "what was read cannot be read as contents")
	}
	out := []byte{'['}
	block := func(add func([]byte) []byte) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = add(out)
	}
	text := func(s string) { block(func(dst []byte) []byte { return appendTextBlock(dst, s) }) }
	for _, one := range raw {
		var p part
		if json.Unmarshal(one, &p) != nil {
			continue
		}
		if p.URI != uri && p.URI != "" {
			text(p.URI + ":")
		}
		switch {
		case p.Text != nil:
			kept := cut(*p.Text, limit)
			limit -= int64(len(kept))
			text(kept)
			if left := len(*p.Text) - len(kept); left > 0 {
				text(fmt.Sprintf("(%d further bytes are left out; ask with a higher limit)", left))
			}
		case p.Blob != nil:
			size := int64(len(*p.Blob)) / 4 * 3
			if size > limit {
				text(fmt.Sprintf("(%d bytes of %s are left out; ask with a higher limit)", size, orBinary(p.MIMEType)))
				continue
			}
			limit -= size
			block(func(dst []byte) []byte { return appendBlob(dst, &p, one) })
		}
	}
	return &call.Result{Content: append(out, ']')}, nil
}

func orBinary(mimeType string) string {
	if mimeType == "" {
		return "binary data"
	}
	return clip(mimeType)
}

// cut keeps at most limit bytes, and whole characters.
func cut(text string, limit int64) string {
	if int64(len(text)) <= limit {
		return text
	}
	end := max(limit, 0)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}

func appendTextBlock(dst []byte, text string) []byte {
	dst = append(dst, `{"type":"text","text":`...)
	return append(wire.AppendString(dst, text), '}')
}

// appendBlob writes a block of binary data; raw is the whole content.
func appendBlob(dst []byte, p *part, raw json.RawMessage) []byte {
	kind, _, _ := strings.Cut(p.MIMEType, "/")
	if kind != "image" && kind != "audio" {
		dst = append(dst, `{"type":"resource","resource":`...)
		return append(append(dst, raw...), '}')
	}
	dst = append(dst, `{"type":"`+kind+`","data":`...)
	dst = wire.AppendString(dst, *p.Blob)
	dst = wire.AppendField(dst, "mimeType", wire.AppendString(nil, p.MIMEType))
	return append(dst, '}')
}
