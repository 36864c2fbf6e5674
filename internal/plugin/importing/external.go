// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package importing

import (
	"encoding/base64"
	"net/url"
	"regexp"
	"slices"
	"strings"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
)

var (
	dialled    = regexp.MustCompile(`^https?://([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?([/?][^\x00-\x20\x7f#]*)?$`)
	headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_|~-]{1,128}$")
	headerText = regexp.MustCompile(`^[ -~]*$`)
	// schemed is a value such as "Bearer TOKEN".
	schemed = regexp.MustCompile(`(?i)^(Bearer|Basic|Token|ApiKey|Api-Key|Key|Digest|PRIVATE-TOKEN|Splunk|GenieKey|SSWS) +`)
)

// ours are headers of the connection and the protocol, which the API refuses.
var ours = []string{
	"host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer", "keep-alive", "proxy-connection",
	"mcp-session-id", "mcp-protocol-version", "mcp-method", "mcp-name",
}

// external makes a server elsewhere.
func (c *conversion) external(address string, headers []pair) {
	c.spec.Type = mcpv1.TypeExternal
	out := &mcpv1.Connection{}
	c.spec.External = out
	value := c.fill(address, c.inputs, c.entry.env)
	if len(value.open) > 0 {
		c.leave("its url is made of %s: give it with --input NAME=VALUE", c.words(value.open))
	}
	for _, h := range headers {
		c.header(out, h)
	}
	out.URL = c.address(out, value.text)
}

// address is the URL to dial, without what looks like a credential.
func (c *conversion) address(out *mcpv1.Connection, text string) string {
	text, _, _ = strings.Cut(text, "#")
	u, err := url.Parse(text)
	if err != nil {
		c.leave("its url cannot be read")
		return ""
	}
	if u.User != nil {
		password, _ := u.User.Password()
		basic := base64.StdEncoding.EncodeToString([]byte(u.User.Username() + ":" + password))
		if !slices.ContainsFunc(out.Headers, func(h mcpv1.Header) bool { return strings.EqualFold(h.Name, "Authorization") }) {
			c.header(out, pair{"Authorization", "Basic " + basic})
		}
		u.User = nil
		text = u.String()
	}
	for _, name := range c.credentials(u) {
		c.leave("%s looks like a credential, and spec.external.url can take nothing from a Secret. "+
			"If the server also takes it as a header, put it into headers; with --keep-url-credentials the URL stays as it is", name)
	}
	if c.leftOut != "" {
		return c.redacted(u)
	}
	if host := localHost(u.Host); host != "" {
		c.leave("its url names %s, which is your own machine. Run the server in the cluster, or expose it there", host)
	}
	if !dialled.MatchString(text) || len(text) > maxURL {
		c.leave("its url is not one that can be dialled: http:// or https://, a host, at most %d characters", maxURL)
	}
	return text
}

// credentials names the parts of a URL that look like some.
func (c *conversion) credentials(u *url.URL) []string {
	var out []string
	if c.KeepURLCredentials {
		if len(secretParameters(u)) > 0 || secretPath(u) {
			c.note("the url holds what looks like a credential, and everybody who may read the MCPServer sees it")
		}
		return nil
	}
	for _, name := range secretParameters(u) {
		out = append(out, "the parameter "+name+" of its url")
	}
	if secretPath(u) {
		out = append(out, "a part of its url's path")
	}
	return out
}

// redacted is a URL that nobody dials, for a comment.
func (c *conversion) redacted(u *url.URL) string {
	shown := *u
	shown.User, shown.RawQuery, shown.Fragment = nil, "", ""
	if secretPath(u) {
		shown.Path, shown.RawPath = "/", ""
	}
	return shown.String()
}

// header adds one: its value literally, or from the Secret with its scheme
// before it.
func (c *conversion) header(out *mcpv1.Connection, p pair) {
	if !headerName.MatchString(p.name) || slices.Contains(ours, strings.ToLower(p.name)) {
		c.note("the header %s was left out: it belongs to the connection or the protocol, or has no proper name", p.name)
		return
	}
	if slices.ContainsFunc(out.Headers, func(h mcpv1.Header) bool { return strings.EqualFold(h.Name, p.name) }) {
		c.note("the header %s is there twice: the first stays", p.name)
		return
	}
	h := mcpv1.Header{Name: p.name}
	value := c.fill(p.value, c.inputs, c.entry.env)
	if len(value.open) > 0 || secret(p.name, value.text) {
		if prefix := schemed.FindString(value.text); prefix != "" {
			h.Prefix, value.text = prefix, strings.TrimPrefix(value.text, prefix)
		}
		if !headerText.MatchString(value.text) {
			c.note("the value of the header %s is not printable ASCII of one line: the Secret has it, and no server will be told it", p.name)
		}
		h.SecretKeyRef = &mcpv1.SecretKeyRef{Name: c.secret.name, Key: c.keep(p.name, value)}
	} else if headerText.MatchString(value.text) && len(value.text) <= maxWord {
		h.Value = &value.text
	} else {
		c.note("the header %s was left out: its value is not printable ASCII of one line, or too long", p.name)
		return
	}
	out.Headers = append(out.Headers, h)
}

// words names placeholders.
func (c *conversion) words(open []string) string {
	var out []string
	for _, name := range open {
		out = append(out, asked(name, c.inputs))
	}
	return strings.Join(out, " and ")
}
