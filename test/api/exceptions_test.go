// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"slices"
	"strings"
)

// networks are n networks, beside those that have all others in them.
func networks(n int, around ...string) string {
	out := strings.Join(around, ", ")
	for i := range n {
		out += fmt.Sprintf(", 192.0.%d.0/24", i)
	}
	return "[" + strings.TrimPrefix(out, ", ") + "]"
}

// longestNetwork that there is.
const longestNetwork = `"1111:1111:1111:1111:1111:1111:1111:1111/128"`

// x is a name of n characters.
func x(n int) string { return strings.Repeat("x", n) }

// borders are accepted values on the border of a bound where shortening or
// lengthening the base object's value does not give one.
var borders = map[string]string{
	"spec.annotations.audience maxItems": `[User, Assistant]`,
	"spec.stdio.forward maxItems":        `[Elicitation, Sampling, Roots]`,
	"spec.mimeType minLength":            `a/b`,
	"spec.uri minLength":                 `"a:b"`,
	"spec.uriTemplate minLength":         `"ab:{c}"`,
	"spec.external.url minLength":        `http://a`,
	"spec.http.url minLength":            `http://a`,
	"spec.upstreams[].url minLength":     `http://a`,

	"spec.upstreams[].openAPI.url minLength":          `http://a`,
	"spec.upstreams[].openAPI.document.url minLength": `http://a`,

	"spec.limits minProperties":       `{streams: 1}`,
	"spec.publicURL minLength":        `http://a`,
	"spec.auth.jwt.issuer minLength":  `http://a`,
	"spec.auth.jwt.jwksURI minLength": `http://a`,
	"spec.workload.volumes minItems":  `[{name: a, emptyDir: {}}]`,
	"spec.sessions minProperties":     `{max: 1}`,

	"spec.networkPolicy.ingress.cidrs maxItems":         networks(32),
	"spec.networkPolicy.egress.cidrs maxItems":          networks(31, "0.0.0.0/0"),
	"spec.networkPolicy.egress.exceptCIDRs maxItems":    networks(16),
	"spec.networkPolicy.egress.ports maxItems":          `[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]`,
	"spec.networkPolicy.ingress.cidrs[] maxLength":      longestNetwork,
	"spec.networkPolicy.egress.cidrs[] maxLength":       longestNetwork,
	"spec.networkPolicy.egress.exceptCIDRs[] maxLength": longestNetwork,

	"spec.external.auth.oauthClientCredentials.tokenURL minLength":            `http://a`,
	"spec.external.auth.oauthClientCredentials.resource minLength":            `"a:b"`,
	"spec.external.auth.oauthTokenExchange.resource minLength":                `"a:b"`,
	"spec.upstreams[].auth.oauthClientCredentials.tokenURL minLength":         `http://a`,
	"spec.upstreams[].auth.oauthClientCredentials.resource minLength":         `"a:b"`,
	"spec.upstreams[].auth.oauthTokenExchange.resource minLength":             `"a:b"`,
	"spec.upstreams[].openAPI.auth.oauthClientCredentials.tokenURL minLength": `http://a`,
	"spec.upstreams[].openAPI.auth.oauthClientCredentials.resource minLength": `"a:b"`,
	"spec.upstreams[].openAPI.auth.oauthTokenExchange.resource minLength":     `"a:b"`,
	"spec.http.auth.oauthClientCredentials.tokenURL minLength":                `http://a`,
	"spec.http.auth.oauthClientCredentials.resource minLength":                `"a:b"`,
	"spec.http.auth.oauthTokenExchange.resource minLength":                    `"a:b"`,
}

// unreachable are bounds that another constraint keeps from being reached.
var unreachable = map[string]string{
	"spec.cors.allowedOrigins[] minLength":              "the pattern needs more",
	"spec.icons[].src minLength":                        "the pattern needs more",
	"spec.auth.serviceAccounts.subjects[] minLength":    "the pattern needs more",
	"spec.networkPolicy.ingress.cidrs[] minLength":      "no network is as short",
	"spec.networkPolicy.egress.cidrs[] minLength":       "no network is as short",
	"spec.networkPolicy.egress.exceptCIDRs[] minLength": "no network is as short",
	"spec.transports maxItems":                          "three types of transport exist",
	"spec.http.body.mediaType minLength":                "the pattern needs more",
}

// neverAccepted are fields that exist to be refused: only the bad side of
// their bounds can be seen. No base object has them.
var neverAccepted = []string{
	".namespace",
	"spec.external.headers[].expression",
	"spec.probe.headers[].expression",
	"spec.upstreams[].headers[].expression",
	"spec.upstreams[].openAPI.headers[].expression",
}

func isNeverAccepted(path string) bool {
	return slices.ContainsFunc(neverAccepted, func(suffix string) bool { return strings.HasSuffix(path, suffix) })
}

// enumNeeds has the object around a value of an enum, where the base object's
// other fields do not go with it. Keys are the end of a path.
var enumNeeds = map[string]string{
	"spec.type=Tools":                          `{type: Tools}`,
	"spec.type=Stdio":                          `{type: Stdio, stdio: {image: a, command: [b]}}`,
	"spec.type=Container":                      `{type: Container, container: {image: a}}`,
	"spec.type=External":                       `{type: External, external: {url: "http://a"}}`,
	"spec.stdio.sharing=Shared":                `{image: a, command: [b], sharing: Shared}`,
	"spec.http.method=GET":                     `{method: GET, url: "http://a"}`,
	"spec.http.method=HEAD":                    `{method: HEAD, url: "http://a"}`,
	"spec.http.method=POST":                    `{method: POST, url: "http://a"}`,
	"spec.http.method=PATCH":                   `{method: PATCH, url: "http://a"}`,
	"messages[].content.type=Image":            `{type: Image, mimeType: image/png, blob: aaaa}`,
	"messages[].content.type=Audio":            `{type: Audio, mimeType: audio/wav, blob: aaaa}`,
	"messages[].content.type=EmbeddedResource": `{type: EmbeddedResource, uri: "a:b"}`,
	"messages[].content.type=ResourceLink":     `{type: ResourceLink, uri: "a:b", text: a}`,
	"content[].type=EmbeddedResource":          `{type: EmbeddedResource, uri: "a:b", expression: "'a'"}`,
	"content[].type=ResourceLink":              `{type: ResourceLink, uri: "a:b", expression: "'a'"}`,
}

func enumNeed(path string, value any) (string, bool) {
	for key, around := range enumNeeds {
		if strings.HasSuffix(fmt.Sprintf("%s=%v", path, value), key) {
			return around, true
		}
	}
	return "", false
}
