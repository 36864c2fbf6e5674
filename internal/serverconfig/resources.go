// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package serverconfig

import "encoding/json"

// Resource is one resource or, in Config.Templates, one template of them.
type Resource struct {
	// URI, or URI template.
	URI string `json:"uri"`
	// Definition is its whole object as it is listed.
	Definition json.RawMessage `json:"definition"`
	// Source says where it was declared, for example mcpresource/NAME.
	Source string `json:"source"`
	// Metadata classifies it and never reaches the wire.
	Metadata map[string]string `json:"metadata,omitempty"`
	// MIMEType of the content; empty is for the content to tell.
	MIMEType string `json:"mimeType,omitempty"`
	// CacheSeconds is for how long what was read may be kept.
	CacheSeconds int32 `json:"cacheSeconds,omitempty"`
	// Variables of a template that have completions.
	Variables []Variable `json:"variables,omitempty"`

	// Exactly one source of the content. The variables of a template are the
	// arguments of HTTP and Expression.
	Text *string `json:"text,omitempty"`
	Blob []byte  `json:"blob,omitempty"`
	// File is a path below the credentials folder, read live.
	File string `json:"file,omitempty"`
	// HTTP is a GET; its Result is Expression, if there is one.
	HTTP       *HTTP            `json:"http,omitempty"`
	Expression *ResourceContent `json:"expression,omitempty"`
	// Upstream reads it; no catalog declares that.
	Upstream *UpstreamResource `json:"-"`
	// When is that of its upstream. The server sets it.
	When string `json:"-"`
}

// ResourceContent makes content by CEL: of one of Text (a string) and Blob
// (bytes, or a string of base64).
type ResourceContent struct {
	Text string `json:"text,omitempty"`
	Blob string `json:"blob,omitempty"`
}

// Variable is a value that a caller types, with what may be offered for it.
type Variable struct {
	Name        string   `json:"name"`
	Required    bool     `json:"required,omitempty"`
	Completions []string `json:"completions,omitempty"`
}

// Prompt is one prompt.
type Prompt struct {
	// Name on the wire.
	Name string `json:"name"`
	// Definition is its whole object as it is listed.
	Definition json.RawMessage `json:"definition"`
	// Source says where it was declared, for example mcpprompt/NAME.
	Source string `json:"source"`
	// Metadata classifies it and never reaches the wire.
	Metadata map[string]string `json:"metadata,omitempty"`
	// Arguments that it takes, and no others.
	Arguments []Variable `json:"arguments,omitempty"`
	Messages  []Message  `json:"messages"`
	// Upstream gives it; no catalog declares that.
	Upstream *UpstreamPrompt `json:"-"`
	// When is that of its upstream. The server sets it.
	When string `json:"-"`
}

// Message is one message of a prompt.
type Message struct {
	// Role on the wire: user or assistant.
	Role    string        `json:"role"`
	Content PromptContent `json:"content"`
}

// PromptContent is the content of a message. At most one of Text, Blob and
// Expression, which means what it does in Content; an EmbeddedResource without
// any is read from the server's own resources.
type PromptContent struct {
	Type     ContentType `json:"type"`
	MIMEType string      `json:"mimeType,omitempty"`
	// URI, or CEL that gives it.
	URI           string `json:"uri,omitempty"`
	URIExpression string `json:"uriExpression,omitempty"`

	Text       string `json:"text,omitempty"`
	Blob       []byte `json:"blob,omitempty"`
	Expression string `json:"expression,omitempty"`
}
