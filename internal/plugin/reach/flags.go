// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"golang.org/x/net/http/httpguts"

	"github.com/espalier-dev/espalier/internal/dialing"
	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/plugin/env"
)

// Flags say who calls, and whom to trust. The operator's own token and the
// headers of spec.probe are not the user's to take.
type Flags struct {
	headers   []string
	tokenFile string
	caFile    string
}

// AddTo gives the flags to a command.
func (f *Flags) AddTo(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.headers, "header", nil, "A header to send to the server, as 'Name: value'. May be repeated.")
	flags.StringVar(&f.tokenFile, "token-file", "", "File with a bearer token to send to the MCP server, - for standard input. (--token is for the API server.)")
	flags.StringVar(&f.caFile, "server-ca", "", "File with certificates that the MCP server's is signed by, in place of those that its spec names.")
}

// Given reports whether any was.
func (f *Flags) Given() bool { return len(f.headers) > 0 || f.tokenFile != "" || f.caFile != "" }

// Apply sets what the user gave on endpoints. in is the standard input.
func (f *Flags) Apply(in io.Reader, endpoints ...*Endpoint) error {
	headers, err := f.parse(in)
	if err != nil {
		return err
	}
	var ca []byte
	if f.caFile != "" {
		if ca, err = os.ReadFile(f.caFile); err != nil {
			return fmt.Errorf("--server-ca: %w", err)
		}
		if _, err := (&mcpprobe.TLS{CAPEM: ca}).Config(); err != nil {
			return env.Hint(fmt.Errorf("--server-ca %s: %w", f.caFile, err), "It wants certificates in PEM.")
		}
	}
	for _, p := range endpoints {
		p.Header = p.Header.Clone()
		given := map[string]bool{}
		for _, h := range headers {
			if p.Header == nil {
				p.Header = map[string][]string{}
			}
			// What the user gives stands in place of what the spec names.
			if !given[strings.ToLower(h.Name)] {
				p.Header.Del(h.Name)
			}
			given[strings.ToLower(h.Name)] = true
			p.Header.Add(h.Name, h.Value)
			p.Credential = p.Credential || h.Credential
		}
		if ca != nil {
			p.TLS.CAPEM, p.TLS.System = ca, false
		}
	}
	return nil
}

// parse gives the headers. No error holds a value.
func (f *Flags) parse(in io.Reader) ([]mcpprobe.Header, error) {
	var out []mcpprobe.Header
	for _, text := range f.headers {
		name, value, ok := strings.Cut(text, ":")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		switch {
		case !ok || !httpguts.ValidHeaderFieldName(name):
			return nil, env.Hint(errors.New("--header: there is no name before a colon"), "Write it as 'Name: value'.")
		case !httpguts.ValidHeaderFieldValue(value):
			return nil, fmt.Errorf("--header %s: the value has characters that no header may have", name)
		case slices.Contains(reserved, strings.ToLower(name)):
			return nil, fmt.Errorf("--header %s: this header belongs to the connection or the protocol and cannot be set", name)
		}
		out = append(out, mcpprobe.Header{Name: name, Value: value, Credential: dialing.IsCredential(name)})
	}
	if f.tokenFile == "" {
		return out, nil
	}
	token, err := f.readToken(in)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(out, func(h mcpprobe.Header) bool { return strings.EqualFold(h.Name, "Authorization") }) {
		return nil, errors.New("--token-file and --header Authorization say the same thing twice: leave one out")
	}
	return append(out, mcpprobe.Header{Name: "Authorization", Value: "Bearer " + token, Credential: true}), nil
}

// maxToken is the longest token, in bytes.
const maxToken = 64 << 10

func (f *Flags) readToken(in io.Reader) (string, error) {
	if f.tokenFile != "-" {
		file, err := os.Open(f.tokenFile)
		if err != nil {
			return "", fmt.Errorf("--token-file: %w", err)
		}
		defer file.Close()
		in = file
	}
	raw, err := io.ReadAll(io.LimitReader(in, maxToken+1))
	if err != nil {
		return "", fmt.Errorf("--token-file: %w", err)
	}
	token := strings.TrimSpace(string(raw))
	if token == "" || len(raw) > maxToken || !httpguts.ValidHeaderFieldValue(token) {
		return "", fmt.Errorf("--token-file %s: it holds no token: one line of text is wanted", f.tokenFile)
	}
	return token, nil
}

// reserved headers, in lower case: as in the API's rule for headers.
var reserved = []string{
	"host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer", "keep-alive", "proxy-connection",
	"mcp-session-id", "mcp-protocol-version", "mcp-method", "mcp-name",
}
