// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A question to the caller is an input request in both eras: the SDK sends it
// as a request of its own to a legacy client, and calls the handler again.

// askers ask once and tell what was answered.
func (f *fixtures) askers() []tool {
	return []tool{
		{
			name: "test_sampling", description: "Asks the caller's model.", handler: f.sample,
			schema: `{"type":"object","properties":{"prompt":{"type":"string"}},"required":["prompt"]}`,
		},
		{
			name: "test_elicitation", description: "Asks the caller's user.", handler: f.elicitPerson,
			schema: `{"type":"object","properties":{"message":{"type":"string"}},"required":["message"]}`,
		},
		{
			name: "test_elicitation_sep1034_defaults", description: "Asks with a default for each primitive type.",
			handler: f.elicit("Say who you are, or take what is proposed.", defaultsSchema),
		},
		{
			name: "test_elicitation_sep1330_enums", description: "Asks with each sort of enumeration.",
			handler: f.elicit("Choose.", enumsSchema),
		},
		{
			name: "test_streaming_elicitation", description: "Asks the caller's user, and reports progress before that.",
			handler: f.elicitWithProgress,
		},
		{
			name: "test_missing_capability", description: "Refuses callers that cannot sample.", handler: missingCapability,
		},
	}
}

const (
	personSchema = `{
		"type": "object",
		"properties": {
			"username": {"type": "string", "description": "User's response"},
			"email": {"type": "string", "description": "User's email address"}
		},
		"required": ["username", "email"]
	}`
	defaultsSchema = `{
		"type": "object",
		"properties": {
			"name": {"type": "string", "default": "John Doe"},
			"age": {"type": "integer", "default": 30},
			"score": {"type": "number", "default": 95.5},
			"status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
			"verified": {"type": "boolean", "default": true}
		}
	}`
	enumsSchema = `{
		"type": "object",
		"properties": {
			"untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
			"titledSingle": {"type": "string", "oneOf": [
				{"const": "value1", "title": "First Option"}, {"const": "value2", "title": "Second Option"}, {"const": "value3", "title": "Third Option"}
			]},
			"legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["Option One", "Option Two", "Option Three"]},
			"untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
			"titledMulti": {"type": "array", "items": {"anyOf": [
				{"const": "value1", "title": "First Choice"}, {"const": "value2", "title": "Second Choice"}, {"const": "value3", "title": "Third Choice"}
			]}}
		}
	}`
)

// question is an elicitation. The schema is one of the constants.
func question(message, schema string) *mcp.ElicitParams {
	return &mcp.ElicitParams{Message: message, RequestedSchema: json.RawMessage(schema)}
}

// completion asks a model for a few words.
func completion(words string, maxTokens int64) *mcp.CreateMessageParams {
	return &mcp.CreateMessageParams{
		Messages:  []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: words}}},
		MaxTokens: maxTokens,
	}
}

// undeclared is the error of a caller that did not declare what its answers
// need; nil when it did.
func undeclared(declared *mcp.ClientCapabilities, requests mcp.InputRequestMap) error {
	if declared == nil {
		declared = &mcp.ClientCapabilities{}
	}
	missing := &mcp.ClientCapabilities{}
	found := false
	for _, request := range requests {
		switch request.(type) {
		case *mcp.ElicitParams:
			if declared.Elicitation == nil {
				missing.Elicitation, found = &mcp.ElicitationCapabilities{}, true
			}
		case *mcp.CreateMessageParams:
			if declared.Sampling == nil {
				missing.Sampling, found = &mcp.SamplingCapabilities{}, true
			}
		case *mcp.ListRootsParams:
			if declared.RootsV2 == nil {
				missing.RootsV2, found = &mcp.RootCapabilities{}, true
			}
		}
	}
	if !found {
		return nil
	}
	data, err := json.Marshal(mcp.MissingRequiredClientCapabilityData{RequiredCapabilities: missing})
	if err != nil {
		return err
	}
	return &jsonrpc.Error{
		Code: mcp.CodeMissingRequiredClientCapabilities, Message: "the client did not declare a capability that this needs", Data: data,
	}
}

// ask answers with questions, if the caller can be asked.
func ask(req *mcp.CallToolRequest, state string, requests mcp.InputRequestMap) (*mcp.CallToolResult, error) {
	if err := undeclared(req.ClientCapabilities(), requests); err != nil {
		if isModern(req.Session) {
			return nil, err
		}
		return fail(err.Error()), nil
	}
	return &mcp.CallToolResult{InputRequests: requests, RequestState: state}, nil
}

// words are those of a model's answer under a key.
func words(responses mcp.InputResponseMap, key string) (string, bool) {
	result, ok := responses[key].(*mcp.CreateMessageWithToolsResult)
	if !ok || result == nil {
		return "", false
	}
	for _, block := range result.Content {
		if text, ok := block.(*mcp.TextContent); ok {
			return text.Text, true
		}
	}
	return "", false
}

// sentence is what a user did with a question under a key.
func sentence(responses mcp.InputResponseMap, key string) (string, bool) {
	result, ok := responses[key].(*mcp.ElicitResult)
	if !ok || result == nil {
		return "", false
	}
	content, err := json.Marshal(result.Content)
	if err != nil {
		return "", false
	}
	return fmt.Sprintf("action=%s, content=%s", result.Action, content), true
}

func (f *fixtures) sample(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if answer, ok := words(req.Params.InputResponses, "answer"); ok {
		return say("LLM response: " + answer), nil
	}
	var args struct{ Prompt string }
	if err := json.Unmarshal(req.Params.Arguments, &args); err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}
	}
	return ask(req, "", mcp.InputRequestMap{"answer": completion(args.Prompt, 100)})
}

func (f *fixtures) elicitPerson(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if answer, ok := sentence(req.Params.InputResponses, "person"); ok {
		return say("User response: " + answer), nil
	}
	var args struct{ Message string }
	if err := json.Unmarshal(req.Params.Arguments, &args); err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}
	}
	return ask(req, "", mcp.InputRequestMap{"person": question(args.Message, personSchema)})
}

// elicit asks one question that does not depend on the arguments.
func (f *fixtures) elicit(message, schema string) mcp.ToolHandler {
	return func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if answer, ok := sentence(req.Params.InputResponses, "form"); ok {
			return say("Elicitation completed: " + answer), nil
		}
		return ask(req, "", mcp.InputRequestMap{"form": question(message, schema)})
	}
}

func (f *fixtures) elicitWithProgress(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if answer, ok := sentence(req.Params.InputResponses, "person"); ok {
		return say("User response: " + answer), nil
	}
	if token := req.Params.GetProgressToken(); token != nil {
		if err := req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: 1}); err != nil {
			return nil, err
		}
	}
	return ask(req, "", mcp.InputRequestMap{"person": question("Who are you?", personSchema)})
}

func missingCapability(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if err := undeclared(req.ClientCapabilities(), mcp.InputRequestMap{"any": completion("", 1)}); err != nil {
		return nil, err
	}
	return say("The client can sample."), nil
}
