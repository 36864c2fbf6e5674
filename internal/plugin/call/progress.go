// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package call

import (
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
	"github.com/espalier-dev/espalier/internal/plugin/env"
)

// progress shows how far a call is on one line of a terminal, and nothing
// elsewhere.
type progress struct {
	env *env.Env
	on  bool

	mu sync.Mutex
	// standing: the line is not ended.
	standing bool
}

func newProgress(e *env.Env) *progress { return &progress{env: e, on: e.ErrTerminal()} }

// barWidth of the bar, in characters.
const barWidth = 24

// hear takes the params of the server's progress.
func (p *progress) hear(params wire.Object) {
	if !p.on {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.env.ErrOut, "\r\x1b[K%s", env.Cut(progressText(params), 78))
	p.standing = true
}

// progressText is "[####    ] 50% message", or what of it is known.
func progressText(params wire.Object) string {
	message, _ := params.Text("message")
	done, errDone := strconv.ParseFloat(string(params.Get("progress")), 64)
	total, errTotal := strconv.ParseFloat(string(params.Get("total")), 64)
	if errDone != nil {
		return env.Line(message)
	}
	if errTotal != nil || total <= 0 {
		return env.Line(strconv.FormatFloat(done, 'f', -1, 64) + " " + message)
	}
	share := min(max(done/total, 0), 1)
	full := int(share * barWidth)
	return fmt.Sprintf("[%s%s] %3.0f%% %s", strings.Repeat("#", full), strings.Repeat(" ", barWidth-full), share*100, env.Line(message))
}

// line writes a line of its own.
func (p *progress) line(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	fmt.Fprintln(p.env.ErrOut, text)
}

// end takes the line away.
func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
}

func (p *progress) clear() {
	if p.standing {
		fmt.Fprint(p.env.ErrOut, "\r\x1b[K")
		p.standing = false
	}
}
