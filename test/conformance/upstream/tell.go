// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// pause stands between two messages of a call, so that they arrive apart.
	pause = 50 * time.Millisecond
	// travel is what a change gets to go through servers that stand in front
	// before the call that made it is answered: what comes next finds lists
	// at rest.
	travel = 400 * time.Millisecond
)

// tellers have more to say than their answer.
func (f *fixtures) tellers() []tool {
	return []tool{
		{name: "test_tool_with_progress", description: "Reports progress 0, 50 and 100 of 100.", handler: withProgress},
		{name: "test_tool_with_logging", description: "Logs three times at level info.", handler: withLogging},
		{name: "test_logging_tool", description: "Logs, which nobody hears who did not ask for it.", handler: withLogging},
		{name: "test_reconnection", description: "Closes the stream of a call, and answers on the next one.", handler: reconnecting},
	}
}

// wait lets a pause pass.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func withProgress(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	token := req.Params.GetProgressToken()
	for i, done := range []float64{0, 50, 100} {
		if i > 0 {
			if err := wait(ctx, pause); err != nil {
				return nil, err
			}
		}
		if token == nil {
			continue
		}
		if err := req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: done, Total: 100}); err != nil {
			return nil, err
		}
	}
	return say("The tool with progress is done."), nil
}

func withLogging(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	for i, message := range []string{"Tool execution started", "Tool processing data", "Tool execution completed"} {
		if i > 0 {
			if err := wait(ctx, pause); err != nil {
				return nil, err
			}
		}
		if err := req.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "info", Logger: "fixtures", Data: message}); err != nil {
			return nil, err
		}
	}
	return say("The tool with logging is done."), nil
}

// reconnecting ends the stream of its call; a client that comes back with the
// last event's id gets the answer. The modern era has no such thing.
func reconnecting(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if req.Extra != nil && req.Extra.CloseSSEStream != nil {
		req.Extra.CloseSSEStream(mcp.CloseSSEStreamArgs{RetryAfter: pause})
	}
	if err := wait(ctx, 2*pause); err != nil {
		return nil, err
	}
	return say("The tool with a closed stream is done."), nil
}

// transient is an entry that comes and goes.
type transient struct {
	mu      sync.Mutex
	present bool
}

// toggle adds the entry, or removes it: each call changes the list.
func (t *transient) toggle(ctx context.Context, add, remove func()) (*mcp.CallToolResult, error) {
	t.mu.Lock()
	t.present = !t.present
	result := say("An entry was removed from the list.")
	if t.present {
		add()
		result = say("An entry was added to the list.")
	} else {
		remove()
	}
	t.mu.Unlock()
	return result, wait(ctx, travel)
}

// changers change the lists.
func (f *fixtures) changers() []tool {
	return []tool{
		{name: "test_trigger_tool_change", description: "Changes the list of tools.", handler: f.changeTools},
		{name: "test_trigger_prompt_change", description: "Changes the list of prompts.", handler: f.changePrompts},
	}
}

func (f *fixtures) changeTools(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	const name = "transient_tool"
	return f.tools.toggle(ctx, func() {
		f.server.AddTool(&mcp.Tool{Name: name, Description: "Comes and goes.", InputSchema: json.RawMessage(noArguments)},
			func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return say("Still here."), nil
			})
	}, func() { f.server.RemoveTools(name) })
}

func (f *fixtures) changePrompts(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	const name = "transient_prompt"
	return f.prompts.toggle(ctx, func() {
		f.server.AddPrompt(&mcp.Prompt{Name: name, Description: "Comes and goes."},
			func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
				return prompt("Still here."), nil
			})
	}, func() { f.server.RemovePrompts(name) })
}

// prompt is a prompt of one line.
func prompt(text string) *mcp.GetPromptResult {
	return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: text}}}}
}
