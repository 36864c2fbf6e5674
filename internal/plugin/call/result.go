// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package call

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
	"github.com/espalier-dev/espalier/internal/plugin/env"
)

// content is one part of a result.
type content struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Data     string `json:"data"`
	MIMEType string `json:"mimeType"`
	URI      string `json:"uri"`
	Name     string `json:"name"`
	Resource *struct {
		URI      string  `json:"uri"`
		MIMEType string  `json:"mimeType"`
		Text     *string `json:"text"`
		Blob     string  `json:"blob"`
	} `json:"resource"`
}

// print prints a result. The error is env.No when the tool says that it failed.
func (c *command) print(tool string, raw []byte) error {
	result, err := wire.DecodeObject(raw)
	if err != nil {
		return errors.New("the result cannot be read")
	}
	parts, err := contents(result.Get("content"))
	if err != nil {
		return err
	}
	saver := &saver{folder: c.save, tool: tool}
	for i := range parts {
		if err := c.keep(saver, &parts[i]); err != nil {
			return err
		}
	}
	structured := result.Get("structuredContent")
	switch {
	case c.output == "result":
		err = c.printJSON(raw)
	case c.output == "json" && structured != nil:
		err = c.printJSON(structured)
	case c.output == "json":
		list := result.Get("content")
		if list == nil {
			list = []byte("[]")
		}
		err = c.printJSON(fmt.Appendf(nil, `{"content":%s}`, list))
	default:
		err = c.printText(parts, structured)
	}
	if err == nil && string(result.Get("isError")) == "true" {
		return env.No
	}
	return err
}

func contents(raw []byte) ([]content, error) {
	if raw == nil {
		return nil, nil
	}
	var parts []content
	if json.Unmarshal(raw, &parts) != nil {
		return nil, errors.New("the content of the result is no list of what the protocol knows")
	}
	return parts, nil
}

// printText prints texts as they are, but for what would move the cursor of a
// terminal; where there is nothing else, the structured content.
func (c *command) printText(parts []content, structured []byte) error {
	printed := false
	for i := range parts {
		text, ok := parts[i].text()
		if !ok {
			continue
		}
		printed = true
		if c.OutTerminal() {
			text = env.Lines(text)
		}
		if !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		if _, err := fmt.Fprint(c.Out, text); err != nil {
			return err
		}
	}
	if !printed && structured != nil {
		return c.printJSON(structured)
	}
	return nil
}

// text of a part that is one, or that only names something.
func (p *content) text() (string, bool) {
	switch {
	case p.Type == "text":
		return p.Text, true
	case p.Type == "resource_link":
		return strings.TrimSpace(p.URI + " " + p.Name), true
	case p.Resource != nil && p.Resource.Text != nil:
		return *p.Resource.Text, true
	}
	return "", false
}

// bytes of a part that is no text, in base64; ok is false for others.
func (p *content) bytes() (data, media string, ok bool) {
	switch {
	case p.Type == "image", p.Type == "audio":
		return p.Data, p.MIMEType, true
	case p.Resource != nil && p.Resource.Text == nil:
		return p.Resource.Blob, p.Resource.MIMEType, true
	}
	return "", "", false
}

// keep saves a part that is no text, or says that it could.
func (c *command) keep(s *saver, p *content) error {
	data, media, ok := p.bytes()
	if !ok {
		return nil
	}
	raw, broken := base64.StdEncoding.DecodeString(data)
	if broken != nil {
		fmt.Fprintf(c.ErrOut, "The %s of the result is no base64 and is left out.\n", env.Line(p.Type))
		return nil //nolint:nilerr // The rest of the result is printed.
	}
	if s.folder == "" {
		if c.output == "text" {
			fmt.Fprintf(c.ErrOut, "The result has %d bytes of %s: --save DIR saves them.\n", len(raw), env.Line(media))
		}
		return nil
	}
	file, err := s.save(raw, media)
	if err == nil {
		fmt.Fprintf(c.ErrOut, "Saved %s (%d bytes).\n", file, len(raw))
	}
	return err
}

func (c *command) printJSON(raw []byte) error {
	var out bytes.Buffer
	if err := json.Indent(&out, raw, "", "    "); err != nil {
		return err
	}
	_, err := fmt.Fprintln(c.Out, out.String())
	return err
}

// saver writes files that did not exist before.
type saver struct {
	folder, tool string
	n            int
}

// maxFiles is how far numbers go to find a name that is free.
const maxFiles = 10000

func (s *saver) save(raw []byte, media string) (string, error) {
	if err := os.MkdirAll(s.folder, 0o750); err != nil {
		return "", fmt.Errorf("--save: %w", err)
	}
	for s.n < maxFiles {
		s.n++
		name := filepath.Join(s.folder, fmt.Sprintf("%s-%d%s", safeName(s.tool), s.n, suffix(media)))
		file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("--save: %w", err)
		}
		_, err = file.Write(raw)
		return name, errors.Join(err, file.Close())
	}
	return "", fmt.Errorf("--save: %s is full of files of this tool", s.folder)
}

// safeName keeps of a tool's name what leads to no other folder.
func safeName(tool string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_':
			return r
		}
		return '_'
	}, tool)
	return name[:min(len(name), 100)]
}

// suffixes of the media types that tools give most.
var suffixes = map[string]string{
	"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp", "image/svg+xml": ".svg",
	"audio/wav": ".wav", "audio/x-wav": ".wav", "audio/mpeg": ".mp3", "audio/ogg": ".ogg", "audio/flac": ".flac",
	"application/pdf": ".pdf", "application/json": ".json", "application/zip": ".zip", "text/plain": ".txt", "text/csv": ".csv", "text/html": ".html",
}

func suffix(media string) string {
	kind, _, _ := strings.Cut(strings.ToLower(media), ";")
	if s, ok := suffixes[strings.TrimSpace(kind)]; ok {
		return s
	}
	return ".bin"
}
