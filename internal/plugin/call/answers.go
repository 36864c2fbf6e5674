// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package call

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/upstream/client"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
	"github.com/espalier-dev/espalier/internal/plugin/env"
)

const (
	// maxRounds is how often a modern server may ask before it answers.
	maxRounds = 10
	// maxTries is how often a person may mistype an answer.
	maxTries = 5
)

// asker answers what a server asks during a call: from the flags, or by the
// person at the terminal. Nil answers nothing, and says so to servers.
type asker struct {
	env      *env.Env
	shown    *progress
	given    map[string]string
	defaults bool
	person   bool
	lines    chan string
	// turn lets one question be asked at a time.
	turn chan struct{}
}

func (c *command) asking(shown *progress) (*asker, error) {
	a := &asker{env: c.Env, shown: shown, given: map[string]string{}, defaults: c.defaults, turn: make(chan struct{}, 1)}
	for _, word := range c.answers {
		key, value, ok := strings.Cut(word, "=")
		if !ok || key == "" {
			return nil, env.Hint(fmt.Errorf("--answer %q: there is no name before a \"=\"", word), "Write it as name=value.")
		}
		a.given[key] = value
	}
	a.person = !c.noInput && c.InTerminal() && c.ErrTerminal() && c.argsFile != "-"
	if !a.person && !a.defaults && len(a.given) == 0 {
		return nil, nil
	}
	return a, nil
}

// capabilities that are declared; nil for none.
func (a *asker) capabilities() []byte {
	switch {
	case a == nil:
		return nil
	case a.person:
		return []byte(`{"elicitation":{"form":{},"url":{}}}`)
	}
	return []byte(`{"elicitation":{"form":{}}}`)
}

// forSession is what a legacy server may ask.
func (a *asker) forSession(notify func(string, json.RawMessage)) *client.Asking {
	if a == nil {
		return &client.Asking{Notify: notify, Ask: func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
			return nil, &wire.Error{Code: mcp.CodeMethodNotFound, Message: "method not found"}
		}}
	}
	return &client.Asking{Capabilities: a.capabilities(), Ask: a.ask, Notify: notify}
}

// rounds calls, and answers what a modern server wants to know before it gives
// the result.
func (a *asker) rounds(ctx context.Context, session *client.Session, call *client.Call) ([]byte, error) {
	call.Capabilities = a.capabilities()
	for range maxRounds {
		raw, err := session.Call(ctx, call)
		if err != nil {
			return nil, err
		}
		result, err := wire.DecodeObject(raw)
		if err != nil {
			return nil, err
		}
		if kind, _ := result.Text("resultType"); kind != "input_required" {
			return raw, nil
		}
		if call.Responses, err = a.askAll(ctx, result.Get("inputRequests")); err != nil {
			return nil, err
		}
		call.State = result.Get("requestState")
	}
	return nil, fmt.Errorf("the server asked more than %d times and gave no result", maxRounds)
}

// askAll answers all questions of a round; nil for none.
func (a *asker) askAll(ctx context.Context, raw []byte) ([]byte, error) {
	if raw == nil {
		return nil, nil
	}
	questions, err := wire.DecodeObject(raw)
	if err != nil {
		return nil, errors.New("the server asks in a way that is none of the protocol")
	}
	var out []byte
	for _, q := range questions {
		request, err := wire.DecodeObject(q.Raw)
		if err != nil {
			return nil, errors.New("the server asks in a way that is none of the protocol")
		}
		method, _ := request.Text("method")
		if a == nil {
			return nil, env.Hint(fmt.Errorf("the server asks something (%s) before it answers, and nobody is there", env.Line(method)),
				"Call it on a terminal, or answer with --answer name=value or --answer-defaults.")
		}
		answer, err := a.ask(ctx, method, request.Get("params"))
		if err != nil {
			return nil, fmt.Errorf("the server asks for %s, which is not answered here", env.Line(method))
		}
		if out == nil {
			out = append(wire.AppendString([]byte("{"), q.Key), ':')
			out = append(out, answer...)
			continue
		}
		out = wire.AppendField(out, q.Key, answer)
	}
	if out == nil {
		return nil, nil
	}
	return append(out, '}'), nil
}

// ask answers one question.
func (a *asker) ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	if method != mcp.MethodElicit {
		return nil, &wire.Error{Code: mcp.CodeMethodNotFound, Message: "method not found"}
	}
	select {
	case a.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-a.turn }()
	object, err := wire.DecodeObject(params)
	if err != nil {
		return nil, &wire.Error{Code: mcp.CodeInvalidParams, Message: "params are no object"}
	}
	a.shown.end()
	if mode, _ := object.Text("mode"); mode == "url" {
		return a.visit(ctx, object)
	}
	return a.form(ctx, object)
}

// visit lets the person decide whether to open a URL. It is never opened here.
func (a *asker) visit(ctx context.Context, object wire.Object) (json.RawMessage, error) {
	message, _ := object.Text("message")
	url, _ := object.Text("url")
	if !a.person {
		return action("decline"), nil
	}
	fmt.Fprintf(a.env.ErrOut, "The server asks: %s\nIt wants you to open: %s\n", env.Lines(message), env.Line(url))
	text, err := a.read(ctx, "Have you opened it, and may the call go on? [y/N] ")
	switch {
	case err != nil:
		return nil, err
	case isYes(text):
		return action("accept"), nil
	}
	return action("decline"), nil
}

func action(word string) json.RawMessage { return json.RawMessage(`{"action":"` + word + `"}`) }

func isYes(text string) bool {
	text = strings.ToLower(strings.TrimSpace(text))
	return text == "y" || text == "yes"
}

// read asks for one line. Its error is that of ctx, or of an input that ended.
func (a *asker) read(ctx context.Context, prompt string) (string, error) {
	if a.lines == nil {
		a.lines = make(chan string)
		go func() {
			defer close(a.lines)
			for in := bufio.NewScanner(a.env.In); in.Scan(); {
				a.lines <- in.Text()
			}
		}()
	}
	fmt.Fprint(a.env.ErrOut, prompt)
	select {
	case line, ok := <-a.lines:
		if !ok {
			return "", errors.New("the input ended before the answer")
		}
		return line, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}
