// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// rounds are the tools of the scenarios input-required-result-*.
func (f *fixtures) rounds() []tool {
	const prefix = "test_input_required_result_"
	return []tool{
		{name: prefix + "elicitation", description: "Asks for a name.", handler: f.greet},
		{name: prefix + "sampling", description: "Asks a model for a capital.", handler: f.capital},
		{name: prefix + "list_roots", description: "Asks for the roots.", handler: f.listRoots},
		{name: prefix + "request_state", description: "Asks for a confirmation, with a state.", handler: f.confirm},
		{name: prefix + "tampered_state", description: "Refuses a state that was changed.", handler: f.confirm},
		{name: prefix + "multiple_inputs", description: "Asks for three things at once.", handler: f.askAll},
		{name: prefix + "multi_round", description: "Asks twice.", handler: f.twoRounds},
		{name: prefix + "capabilities", description: "Asks for what the client can answer.", handler: f.askPossible},
	}
}

const (
	nameSchema    = `{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`
	colorSchema   = `{"type":"object","properties":{"color":{"type":"string"}},"required":["color"]}`
	contextSchema = `{"type":"object","properties":{"context":{"type":"string"}},"required":["context"]}`
	confirmSchema = `{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]}`
)

// accepted is the text of a field that the user filled in; false when the
// answer is absent, declined, or lacks it.
func accepted(responses mcp.InputResponseMap, key, field string) (string, bool) {
	result, ok := responses[key].(*mcp.ElicitResult)
	if !ok || result == nil || result.Action != "accept" {
		return "", false
	}
	text, ok := result.Content[field].(string)
	return text, ok && text != ""
}

func (f *fixtures) greet(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if name, ok := accepted(req.Params.InputResponses, "user_name", "name"); ok {
		return say("Hello, " + name + "!"), nil
	}
	return ask(req, "", mcp.InputRequestMap{"user_name": question("What is your name?", nameSchema)})
}

func (f *fixtures) capital(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if answer, ok := words(req.Params.InputResponses, "capital_question"); ok {
		return say(answer), nil
	}
	return ask(req, "", mcp.InputRequestMap{"capital_question": completion("What is the capital of France?", 100)})
}

// roots are the client's, as a list of URIs.
func roots(responses mcp.InputResponseMap, key string) (string, bool) {
	result, ok := responses[key].(*mcp.ListRootsResult)
	if !ok || result == nil {
		return "", false
	}
	uris := []string{}
	for _, root := range result.Roots {
		uris = append(uris, root.URI)
	}
	list, err := json.Marshal(uris)
	return string(list), err == nil
}

func (f *fixtures) listRoots(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if list, ok := roots(req.Params.InputResponses, "client_roots"); ok {
		return say("Roots: " + list), nil
	}
	return ask(req, "", mcp.InputRequestMap{"client_roots": &mcp.ListRootsParams{}})
}

// confirm asks, and takes the answer with the very state of its question only.
func (f *fixtures) confirm(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	const state = "confirm " // and the tool, so that a state of one is none of another
	if req.Params.RequestState != "" {
		text, err := f.signer.open(req.Params.RequestState)
		if err != nil {
			return nil, err
		}
		answer, ok := req.Params.InputResponses["confirm"].(*mcp.ElicitResult)
		if text == state+req.Params.Name && ok && answer.Action == "accept" && answer.Content["ok"] == true {
			return say("state-ok"), nil
		}
	}
	return ask(req, f.signer.seal(state+req.Params.Name), mcp.InputRequestMap{"confirm": question("Please confirm", confirmSchema)})
}

func (f *fixtures) askAll(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	const state = "all"
	if req.Params.RequestState != "" {
		text, err := f.signer.open(req.Params.RequestState)
		if err != nil {
			return nil, err
		}
		name, hasName := accepted(req.Params.InputResponses, "user_name", "name")
		greeting, hasGreeting := words(req.Params.InputResponses, "greeting")
		list, hasRoots := roots(req.Params.InputResponses, "client_roots")
		if text == state && hasName && hasGreeting && hasRoots {
			return say(fmt.Sprintf("%s %s %s", greeting, name, list)), nil
		}
	}
	return ask(req, f.signer.seal(state), mcp.InputRequestMap{
		"user_name":    question("What is your name?", nameSchema),
		"greeting":     completion("Generate a greeting", 50),
		"client_roots": &mcp.ListRootsParams{},
	})
}

// twoRounds asks for a name and then for a color. The name travels in the
// state of the second question.
func (f *fixtures) twoRounds(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	const first = "first"
	var state struct{ Round, Name string }
	if req.Params.RequestState != "" {
		text, err := f.signer.open(req.Params.RequestState)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal([]byte(text), &state); err != nil {
			return nil, err
		}
	}
	if color, ok := accepted(req.Params.InputResponses, "step2", "color"); ok && state.Name != "" {
		return say(state.Name + " likes " + color), nil
	}
	name, ok := accepted(req.Params.InputResponses, "step1", "name")
	if ok && state.Round == first {
		state.Round, state.Name = "second", name
	} else if state.Name == "" {
		state.Round = first
	}
	sealed, err := json.Marshal(state)
	if err != nil {
		return nil, err
	}
	if state.Round == first {
		return ask(req, f.signer.seal(string(sealed)), mcp.InputRequestMap{"step1": question("Step 1: What is your name?", nameSchema)})
	}
	step2 := question("Step 2: What is your favorite color?", colorSchema)
	if isModern(req.Session) {
		return ask(req, f.signer.seal(string(sealed)), mcp.InputRequestMap{"step2": step2})
	}
	// The SDK asks a legacy client once only.
	answer, err := req.Session.Elicit(ctx, step2)
	if err != nil {
		return nil, err
	}
	color, ok := accepted(mcp.InputResponseMap{"step2": answer}, "step2", "color")
	if !ok {
		return fail("no color was given"), nil
	}
	return say(state.Name + " likes " + color), nil
}

// askPossible asks for what the client declared that it can answer.
func (f *fixtures) askPossible(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if len(req.Params.InputResponses) > 0 {
		return say("Answered."), nil
	}
	requests := mcp.InputRequestMap{}
	for key, request := range map[string]mcp.InputRequest{
		"user_name":    question("What is your name?", nameSchema),
		"greeting":     completion("Generate a greeting", 50),
		"client_roots": &mcp.ListRootsParams{},
	} {
		if undeclared(req.ClientCapabilities(), mcp.InputRequestMap{key: request}) == nil {
			requests[key] = request
		}
	}
	if len(requests) == 0 {
		return say("The client can be asked nothing."), nil
	}
	return ask(req, "", requests)
}

func (f *fixtures) promptWithContext(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	if text, ok := accepted(req.Params.InputResponses, "user_context", "context"); ok {
		return prompt("Context: " + text), nil
	}
	requests := mcp.InputRequestMap{"user_context": question("What context should the prompt use?", contextSchema)}
	if err := undeclared(req.ClientCapabilities(), requests); err != nil {
		return nil, err
	}
	return &mcp.GetPromptResult{InputRequests: requests}, nil
}
