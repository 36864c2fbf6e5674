// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"reflect"

	"github.com/espalier-dev/espalier/internal/mcpserver/access"
	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// Prompt is one served prompt. It is immutable.
type Prompt struct {
	Entry
	// Arguments that it takes, and no others.
	Arguments []serverconfig.Variable
	// Description is the raw string of the definition, nil for none.
	Description []byte
	// Completions by argument.
	Completions map[string][]string
	// Foreign: its arguments and completions are an upstream's business.
	Foreign bool

	config serverconfig.Prompt
}

// PromptFactory makes the handler that gives a prompt's messages.
type PromptFactory func(prompt *serverconfig.Prompt) (call.Handler, error)

// Takes reports whether name is one of the arguments.
func (p *Prompt) Takes(name string) bool {
	for i := range p.Arguments {
		if p.Arguments[i].Name == name {
			return true
		}
	}
	return false
}

func declarePrompt(config serverconfig.Prompt, factory PromptFactory) declared[*Prompt] {
	d := declared[*Prompt]{name: config.Name, when: config.When, source: config.Source, same: func(p *Prompt) bool { return reflect.DeepEqual(p.config, config) }}
	d.build = func() (*Prompt, *buildError) {
		p := &Prompt{
			Entry: Entry{Name: config.Name, Metadata: config.Metadata, kind: access.Prompt, source: config.Source}, config: config,
			Arguments: config.Arguments, Completions: completions(config.Arguments), Foreign: config.Upstream != nil,
		}
		definition, failure := p.decode(config.Definition, keyName)
		if failure != nil {
			return nil, failure
		}
		if raw := definition.Get("description"); len(raw) > 0 {
			if _, ok := wire.Text(raw); ok {
				p.Description = raw
			}
		}
		handler, err := factory(&p.config)
		if err != nil {
			return nil, &buildError{ReasonInvalidHandler, err}
		}
		p.Handler = handler
		return p, nil
	}
	return d
}

// Prompt gives a prompt by its name, nil when there is none that the caller
// may see.
func (s *Snapshot) Prompt(name string, visible func(*Prompt) bool) *Prompt {
	return s.prompts.pick(name, visible)
}

// HasPrompt reports whether there is a prompt of that name.
func (s *Snapshot) HasPrompt(name string) bool { return s.prompts.get(name) != nil }

// Prompts gives all prompts in the order of lists. It must not be changed.
func (s *Snapshot) Prompts() []*Prompt { return s.prompts.sorted }

// PagePrompts is Page for prompts.
func (s *Snapshot) PagePrompts(cursor string, visible func(*Prompt) bool) ([]*Prompt, string, error) {
	return s.prompts.page(cursor, s.pageBudget(), visible)
}
