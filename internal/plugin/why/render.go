// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/espalier-dev/espalier/internal/plugin/env"
)

// Render prints a diagnosis for people: the verdict, the cause, the evidence,
// what to do, what else is wrong, and the chain. width is that of the terminal;
// 0 is none, and lines are not broken.
func Render(out io.Writer, d *Diagnosis, style env.Style, width int) {
	p := &page{out: out, style: style, width: width}
	p.head(d)
	if d.Cause != nil {
		p.title("Cause: " + d.Cause.Name + because(d.Cause.Reason))
		p.step(d.Cause)
	}
	if len(d.Also) > 0 {
		title := "Also not as it should be:"
		if d.Cause == nil {
			title = "Not as it should be:"
		}
		p.title(title)
		for i := range d.Also {
			s := &d.Also[i]
			p.text("  ", style.Strong(s.Name)+because(s.Reason))
			p.indented(s)
		}
	}
	p.title("The chain:")
	p.chain(d.Chain)
	if len(d.Notes) > 0 {
		fmt.Fprintln(out)
		for _, note := range d.Notes {
			p.text("", note)
		}
	}
}

type page struct {
	out   io.Writer
	style env.Style
	width int
}

func (p *page) head(d *Diagnosis) {
	is := "ready"
	if d.Kind != string(serverKind) {
		is = "served"
	}
	words := map[Verdict]string{Ready: p.style.Good(is), NotReady: p.style.Bad("not " + is), NotKnown: p.style.Unsure("not known to be " + is)}
	line := fmt.Sprintf("%s %s/%s is %s", d.Kind, d.Namespace, d.Name, words[d.Verdict])
	switch {
	case d.Verdict == NotKnown && d.Reason != "" && d.Since == "":
		line += " (its status says " + d.Reason + ", and is not kept true)"
	case d.Reason != "":
		line += because(d.Reason)
	}
	if d.Since != "" {
		line += ", since " + d.Since
	}
	fmt.Fprintln(p.out, line+".")
	p.text("", d.Operator)
}

func (p *page) title(text string) { fmt.Fprintf(p.out, "\n%s\n", p.style.Strong(text)) }

// step prints a step in full.
func (p *page) step(s *Step) {
	p.text("  ", s.Message)
	if len(s.Evidence) > 0 {
		p.title("Evidence:")
		for _, e := range s.Evidence {
			p.text("  ", e)
		}
	}
	if len(s.Do) > 0 {
		p.title("What to do:")
		for _, do := range s.Do {
			p.text("  ", do)
		}
	}
}

// indented prints a step below its name.
func (p *page) indented(s *Step) {
	p.text("    ", s.Message)
	for _, e := range s.Evidence {
		p.text("    - ", e)
	}
	for _, do := range s.Do {
		p.text("    > ", do)
	}
}

func (p *page) chain(steps []Step) {
	width := 0
	for _, s := range steps {
		width = max(width, utf8.RuneCountInString(s.Name))
	}
	for _, s := range steps {
		state := fmt.Sprintf("%-8s", s.State)
		switch s.State {
		case OK:
			state = p.style.Good(state)
		case Broken:
			state = p.style.Bad(state)
		case Unknown, UnderWay:
			state = p.style.Unsure(state)
		default:
			state = p.style.Faint(state)
		}
		said := s.Message
		if s.State == Broken {
			said = cmp.Or(s.Reason, s.Message)
		}
		line := fmt.Sprintf("  %-*s  ", width, s.Name)
		indent := strings.Repeat(" ", utf8.RuneCountInString(line)+8+2)
		lines := p.wrap(said, len(indent))
		fmt.Fprintln(p.out, strings.TrimRight(line+state+"  "+lines[0], " "))
		for _, more := range lines[1:] {
			fmt.Fprintln(p.out, indent+more)
		}
	}
}

// text prints text behind a prefix, broken where the terminal ends.
func (p *page) text(prefix, text string) {
	lines := p.wrap(text, len(prefix))
	fmt.Fprintln(p.out, prefix+lines[0])
	for _, more := range lines[1:] {
		fmt.Fprintln(p.out, strings.Repeat(" ", len(prefix))+more)
	}
}

// least is how narrow a column of text may become.
const least = 16

// wrap breaks text that stands behind indent columns where the terminal ends.
func (p *page) wrap(text string, indent int) []string {
	if p.width == 0 {
		return []string{text}
	}
	return wrap(text, max(p.width-indent, least))
}

// wrap breaks text between words into lines of at most width. Leading blanks
// stay.
func wrap(text string, width int) []string {
	if utf8.RuneCountInString(text) <= width {
		return []string{text}
	}
	var out []string
	lead := text[:len(text)-len(strings.TrimLeft(text, " "))]
	line := lead
	for _, word := range strings.Fields(text) {
		switch {
		case line == lead:
			line += word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= width:
			line += " " + word
		default:
			out = append(out, line)
			line = lead + word
		}
	}
	return append(out, line)
}
