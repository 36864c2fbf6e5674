// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// fixtures are what the handlers share.
type fixtures struct {
	server *mcp.Server
	signer *signer
	// tools and prompts come and go.
	tools, prompts transient
}

// tool is one entry of the list. The suite's own bundle says what each does.
type tool struct {
	name, description string
	schema            string
	handler           mcp.ToolHandler
}

const noArguments = `{"type":"object","additionalProperties":false}`

// newServer makes an MCP server with all entries.
func newServer() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "conformance-fixtures", Version: "1.0.0"}, &mcp.ServerOptions{
		Capabilities: &mcp.ServerCapabilities{
			Logging: &mcp.LoggingCapabilities{},
			Tools:   &mcp.ToolCapabilities{ListChanged: true},
			Prompts: &mcp.PromptCapabilities{ListChanged: true},
		},
	})
	f := &fixtures{server: server, signer: newSigner()}
	for _, group := range [][]tool{f.tellers(), f.changers(), f.askers(), f.rounds()} {
		for _, t := range group {
			schema := t.schema
			if schema == "" {
				schema = noArguments
			}
			server.AddTool(&mcp.Tool{Name: t.name, Description: t.description, InputSchema: json.RawMessage(schema)}, t.handler)
		}
	}
	server.AddPrompt(&mcp.Prompt{
		Name: "test_input_required_result_prompt", Description: "Asks for the context of the prompt first.",
	}, f.promptWithContext)
	return server
}

// say is an answer of one line.
func say(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

// fail is an answer that tells of a failure.
func fail(text string) *mcp.CallToolResult {
	result := say(text)
	result.IsError = true
	return result
}

// isModern says whether a request is of the stateless era.
func isModern(session *mcp.ServerSession) bool {
	params := session.InitializeParams()
	return params == nil || params.ProtocolVersion >= modernVersion
}
