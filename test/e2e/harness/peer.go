// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/espalier-dev/espalier/internal/mcp"
)

// Peer is one endpoint that speaks modern MCP, asked without any cache: what
// it answers is what it serves at this moment.
type Peer struct {
	Name string
	URL  string
	// Host header, as clients of the Service would send it.
	Host string
	// Header is added to each request.
	Header http.Header
	// Client of the requests; the one that all share when nil.
	Client *http.Client
}

func (p *Peer) client() *http.Client {
	if p.Client != nil {
		return p.Client
	}
	return uncached
}

// PodPeer is the MCP endpoint of one pod of the shared image.
func PodPeer(pod *corev1.Pod, host string) *Peer {
	return &Peer{Name: pod.Name, URL: fmt.Sprintf("http://%s:8080/mcp", pod.Status.PodIP), Host: host}
}

// Answer is the answer to a tool call.
type Answer struct {
	Content []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	} `json:"content"`
	Structured json.RawMessage `json:"structuredContent"`
	IsError    bool            `json:"isError"`
}

// Text is the answer's first text.
func (a *Answer) Text() string {
	for _, c := range a.Content {
		if c.Type == "text" {
			return c.Text
		}
	}
	return ""
}

// ListedTool is a tool of tools/list.
type ListedTool struct {
	Name        string `json:"name"`
	Title       string `json:"title"`
	Description string `json:"description"`
}

// RPCError is a JSON-RPC error that a peer answered with.
type RPCError struct {
	Status  int
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (e *RPCError) Error() string {
	return fmt.Sprintf("HTTP %d, code %d: %s", e.Status, e.Code, e.Message)
}

// uncached connections are kept, answers are not.
var uncached = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8}}

// Call calls a tool.
func (p *Peer) Call(ctx context.Context, tool string, args map[string]any) (*Answer, error) {
	var answer Answer
	if args == nil {
		args = map[string]any{}
	}
	err := p.do(ctx, mcp.MethodToolsCall, tool, map[string]any{"name": tool, "arguments": args}, &answer)
	return &answer, err
}

// Read reads a resource and gives its text.
func (p *Peer) Read(ctx context.Context, uri string) (string, error) {
	var result struct {
		Contents []struct {
			Text string `json:"text"`
		} `json:"contents"`
	}
	if err := p.do(ctx, mcp.MethodResourcesRead, uri, map[string]any{"uri": uri}, &result); err != nil {
		return "", err
	}
	if len(result.Contents) != 1 {
		return "", fmt.Errorf("%s has %d parts", uri, len(result.Contents))
	}
	return result.Contents[0].Text, nil
}

// Prompt gets a prompt and gives its messages as they were written.
func (p *Peer) Prompt(ctx context.Context, name string, args map[string]string) (string, error) {
	var result struct {
		Messages json.RawMessage `json:"messages"`
	}
	err := p.do(ctx, mcp.MethodPromptsGet, name, map[string]any{"name": name, "arguments": args}, &result)
	return string(result.Messages), err
}

// Tools lists all tools by name.
func (p *Peer) Tools(ctx context.Context) (map[string]ListedTool, error) {
	tools := map[string]ListedTool{}
	cursor := ""
	for range 100 {
		var page struct {
			Tools      []ListedTool `json:"tools"`
			NextCursor string       `json:"nextCursor"`
		}
		params := map[string]any{}
		if cursor != "" {
			params["cursor"] = cursor
		}
		if err := p.do(ctx, mcp.MethodToolsList, "", params, &page); err != nil {
			return nil, err
		}
		for _, t := range page.Tools {
			tools[t.Name] = t
		}
		if cursor = page.NextCursor; cursor == "" {
			return tools, nil
		}
	}
	return nil, errors.New("more than 100 pages of tools")
}

func (p *Peer) do(ctx context.Context, method, name string, params map[string]any, result any) error {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	resp, err := p.send(ctx, method, name, params)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return decode(resp, result)
}

func (p *Peer) send(ctx context.Context, method, name string, params map[string]any) (*http.Response, error) {
	params["_meta"] = map[string]any{
		mcp.MetaProtocolVersion:    mcp.Version20260728,
		mcp.MetaClientCapabilities: map[string]any{},
		mcp.MetaClientInfo:         map[string]any{"name": "espalier-e2e", "version": "0"},
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if p.Host != "" {
		req.Host = p.Host
	}
	for name, values := range p.Header {
		req.Header[name] = values
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set(mcp.HeaderProtocolVersion, mcp.Version20260728)
	req.Header.Set(mcp.HeaderMethod, method)
	if name != "" {
		req.Header.Set(mcp.HeaderName, name)
	}
	return p.client().Do(req)
}

// message is a JSON-RPC message.
type message struct {
	Method string          `json:"method"`
	Result json.RawMessage `json:"result"`
	Error  *RPCError       `json:"error"`
}

func decode(resp *http.Response, result any) error {
	var answer *message
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		err := events(resp.Body, func(m *message) bool {
			if m.Method == "" {
				answer = m
			}
			return m.Method != ""
		})
		if err != nil {
			return err
		}
	} else {
		raw, err := io.ReadAll(io.LimitReader(resp.Body, 64<<20))
		if err != nil {
			return err
		}
		if err := json.Unmarshal(raw, &answer); err != nil {
			return fmt.Errorf("HTTP %d, not JSON-RPC: %.200q", resp.StatusCode, raw)
		}
	}
	switch {
	case answer == nil:
		return fmt.Errorf("HTTP %d without an answer", resp.StatusCode)
	case answer.Error != nil:
		answer.Error.Status = resp.StatusCode
		return answer.Error
	default:
		return json.Unmarshal(answer.Result, result)
	}
}

// events reads an event stream until more returns false or the stream ends.
func events(body io.Reader, more func(*message) bool) error {
	scanner := bufio.NewScanner(body)
	scanner.Buffer(nil, 64<<20)
	var data []byte
	for scanner.Scan() {
		line := scanner.Text()
		switch {
		case strings.HasPrefix(line, "data:"):
			data = append(data, strings.TrimPrefix(strings.TrimPrefix(line, "data:"), " ")...)
		case line == "" && len(data) > 0:
			var m message
			if err := json.Unmarshal(data, &m); err != nil {
				return fmt.Errorf("an event is not JSON-RPC: %.200q", data)
			}
			data = nil
			if !more(&m) {
				return nil
			}
		}
	}
	return scanner.Err()
}
