// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package api

// examples of what a pattern or a CEL rule accepts and refuses, each in YAML:
// the value of self. A rule of the root has merge patches of the whole object
// instead.
type examples struct {
	good, bad []string
}

// someClient of an authorization server.
const someClient = `{tokenURL: "http://a", clientID: a, clientSecretRef: {name: a, key: a}}`

// zeros are the digits of a digest.
const zeros = "0000000000000000000000000000000000000000000000000000000000000000"

// rules has examples for every CEL rule, by its message. The message is what a
// user reads, so a refused example asserts it word for word.
var rules = map[string]examples{
	// MCPServer: root and spec.
	"metadata.name begins with a letter, holds only a-z, 0-9 and '-', and has at most 50 characters: it names the Service NAME-mcp": {
		good: []string{`metadata: {name: a}`, `metadata: {name: a-1}`, `metadata: {name: ` + x(50) + `}`},
		bad:  []string{`metadata: {name: 1a}`, `metadata: {name: a.b}`, `metadata: {name: ` + x(51) + `}`},
	},
	"container is for type Container, and needed there": {
		good: []string{`{type: Container, container: {image: a}}`, `{type: Tools}`},
		bad: []string{`{type: Container}`, `{type: Tools, container: {image: a}}`, `{container: {image: a}}`,
			`{type: External, external: {url: "http://a"}, container: {image: a}}`},
	},
	"stdio is for type Stdio, and needed there": {
		good: []string{`{type: Stdio, stdio: {image: a, command: [b]}}`},
		bad: []string{`{type: Stdio}`, `{stdio: {image: a, command: [b]}}`,
			`{type: Container, container: {image: a}, stdio: {image: a, command: [b]}}`},
	},
	"the first word of command names a program": {
		good: []string{`[a, ""]`},
		bad:  []string{`[""]`, `["", a]`},
	},
	"limits.maxProcesses and limits.idleSeconds are for sharing PerClient": {
		good: []string{`{image: a, command: [b], sharing: PerClient, limits: {maxProcesses: 1, idleSeconds: 1}}`, `{image: a, command: [b], limits: {maxStderrBytes: 1024}}`},
		bad:  []string{`{image: a, command: [b], limits: {maxProcesses: 1}}`, `{image: a, command: [b], sharing: Shared, limits: {idleSeconds: 1}}`},
	},
	"external is for type External, and needed there": {
		good: []string{`{type: External, external: {url: "http://a"}}`},
		bad: []string{`{type: External}`, `{external: {url: "http://a"}}`,
			`{type: Container, container: {image: a}, external: {url: "http://a"}}`},
	},
	"tools, limits, cacheSeconds, cors, publicURL and serverInfo need type Tools or Stdio: Espalier does not stand in front of a Container or an External server": {
		good: []string{`{tools: {max: 1}, limits: {streams: 1}, cacheSeconds: 1, cors: {allowedOrigins: ["http://a"]}, publicURL: "http://a", serverInfo: {name: a}}`},
		bad: []string{
			`{type: Container, container: {image: a}, tools: {max: 1}}`,
			`{type: Container, container: {image: a}, limits: {streams: 1}}`,
			`{type: Container, container: {image: a}, cacheSeconds: 1}`,
			`{type: External, external: {url: "http://a"}, cors: {allowedOrigins: ["http://a"]}}`,
			`{type: External, external: {url: "http://a"}, publicURL: "http://a"}`,
			`{type: External, external: {url: "http://a"}, serverInfo: {name: a}}`,
		},
	},
	"sessions needs type Tools or Stdio: a Container or an External server has its sessions to itself": {
		good: []string{`{sessions: {max: 1}}`, `{type: Stdio, stdio: {image: a, command: [b]}, sessions: {idleSeconds: 60}}`},
		bad: []string{
			`{type: Container, container: {image: a}, sessions: {max: 1}}`,
			`{type: External, external: {url: "http://a"}, sessions: {max: 1}}`,
		},
	},
	"transports is for types Tools and Stdio: a Container has container.path, an External server has external.url": {
		good: []string{`{transports: [{type: StreamableHTTP}]}`, `{type: Stdio, stdio: {image: a, command: [b]}, transports: [{type: StreamableHTTP}]}`},
		bad: []string{`{type: Container, container: {image: a}, transports: [{type: StreamableHTTP}]}`,
			`{type: External, external: {url: "http://a"}, transports: [{type: StreamableHTTP}]}`},
	},
	"two transports cannot share a path (the defaults are /mcp, /sse and /ws)": {
		good: []string{
			`{transports: [{type: StreamableHTTP}, {type: SSE}, {type: WebSocket}]}`,
			`{transports: [{type: WebSocket, path: /mcp}, {type: SSE, path: /ws}]}`,
		},
		bad: []string{
			`{transports: [{type: StreamableHTTP}, {type: SSE, path: /mcp}]}`,
			`{transports: [{type: StreamableHTTP, path: /sse}, {type: SSE}]}`,
			`{transports: [{type: StreamableHTTP}, {type: SSE, path: /a}, {type: WebSocket, path: /a}]}`,
			`{transports: [{type: SSE, path: /ws}, {type: WebSocket}]}`,
		},
	},
	"workload, networkPolicy, suspend, startupTimeoutSeconds and terminationGracePeriodSeconds need pods, and type External has none": {
		good: []string{`{type: Container, container: {image: a}, workload: {labels: {a: b}}, suspend: true, startupTimeoutSeconds: 1, terminationGracePeriodSeconds: 10}`},
		bad: []string{
			`{type: External, external: {url: "http://a"}, workload: {labels: {a: b}}}`,
			`{type: External, external: {url: "http://a"}, networkPolicy: {ingress: {}}}`,
			`{type: External, external: {url: "http://a"}, suspend: true}`,
			`{type: External, external: {url: "http://a"}, startupTimeoutSeconds: 1}`,
			`{type: External, external: {url: "http://a"}, terminationGracePeriodSeconds: 10}`,
		},
	},
	"networkPolicy.egress.upstreams needs type Tools or Stdio: nobody knows what the image of a Container connects to. Use namespaces and cidrs": {
		good: []string{
			`{networkPolicy: {egress: {upstreams: false}}}`,
			`{type: Container, container: {image: a}, networkPolicy: {ingress: {}, egress: {}}}`,
		},
		bad: []string{`{type: Container, container: {image: a}, networkPolicy: {egress: {upstreams: true}}}`},
	},
	"a CIDR is a network, for example 203.0.113.0/24 or 2001:db8::/64, with no bits set beyond its length": {
		good: []string{`203.0.113.0/24`, `"2001:db8::/64"`, `192.0.2.7/32`},
		bad:  []string{`192.0.2.7`, `192.0.2.7/24`, `192.0.2.0/33`, `a.example.com`, `"2001:db8::1/64"`, `"2001:DB8::/64"`},
	},
	"each of exceptCIDRs lies within one of cidrs, and is smaller": {
		good: []string{`{cidrs: [10.0.0.0/8], exceptCIDRs: [10.1.0.0/16]}`, `{cidrs: ["::/0", 0.0.0.0/0], exceptCIDRs: [10.1.0.0/16, "fd00::/8"]}`},
		bad: []string{
			`{exceptCIDRs: [10.0.0.0/8]}`, `{cidrs: [10.0.0.0/8], exceptCIDRs: [10.0.0.0/8]}`, `{cidrs: [10.0.0.0/8], exceptCIDRs: [11.0.0.0/16]}`,
			`{cidrs: [10.1.0.0/16], exceptCIDRs: [10.0.0.0/8]}`, `{cidrs: [0.0.0.0/0], exceptCIDRs: ["fd00::/8"]}`,
		},
	},
	"ports are those of cidrs: set cidrs": {
		good: []string{`{cidrs: [10.0.0.0/8], ports: [443]}`},
		bad:  []string{`{ports: [443]}`},
	},
	"probe.gateReadiness and probe.via need pods, and type External has none": {
		good: []string{`{type: Container, container: {image: a}, probe: {gateReadiness: true, via: Service}}`,
			`{type: External, external: {url: "http://a"}, probe: {intervalSeconds: 30}}`},
		bad: []string{`{type: External, external: {url: "http://a"}, probe: {gateReadiness: true}}`,
			`{type: External, external: {url: "http://a"}, probe: {via: Pods}}`},
	},
	"external.headers cannot use expression, which needs a call: use value, secretKeyRef or configMapKeyRef": {
		good: []string{`{type: External, external: {url: "http://a", headers: [{name: A, value: b}]}}`},
		bad:  []string{`{type: External, external: {url: "http://a", headers: [{name: A, expression: "'b'"}]}}`},
	},
	"probe.headers cannot use expression, which needs a call: use value, secretKeyRef or configMapKeyRef": {
		good: []string{`{headers: [{name: A, value: b}]}`},
		bad:  []string{`{headers: [{name: A, expression: "'b'"}]}`},
	},
	"timeoutSeconds (default 10) is at most intervalSeconds (default 30)": {
		good: []string{`{timeoutSeconds: 30}`, `{intervalSeconds: 10}`, `{timeoutSeconds: 5, intervalSeconds: 5}`},
		bad:  []string{`{timeoutSeconds: 31}`, `{intervalSeconds: 9}`, `{timeoutSeconds: 6, intervalSeconds: 5}`},
	},
	"auth, access, accessDefault, extensions and tls need type Tools or Stdio: a Container or an External server decides by itself who may call it, and how": {
		good: []string{`{auth: {apiKeys: {secretRef: {name: a}}}, access: [{when: "true"}], accessDefault: Deny, extensions: {}}`},
		bad: []string{
			`{type: Container, container: {image: a}, auth: {apiKeys: {secretRef: {name: a}}}}`,
			`{type: Container, container: {image: a}, access: [{when: "true"}]}`,
			`{type: External, external: {url: "http://a"}, accessDefault: Deny}`,
			`{type: External, external: {url: "http://a"}, extensions: {}}`,
			`{type: Container, container: {image: a}, tls: {secretRef: {name: a}}}`,
		},
	},

	// Auth, access, limits.
	"auth without jwt, serviceAccounts or apiKeys would let nobody in: set at least one": {
		good: []string{`{jwt: {issuer: "https://a", audiences: [a]}}`, `{serviceAccounts: {audiences: [a]}}`, `{apiKeys: {secretRef: {name: a}}}`},
		bad:  []string{`{}`},
	},
	"set at most one of jwksURI and jwks: without either, the issuer's own metadata says where its keys are": {
		good: []string{`{issuer: "https://a", audiences: [a]}`, `{issuer: "https://a", audiences: [a], jwksURI: "https://a"}`, `{issuer: "https://a", audiences: [a], jwks: "{}"}`},
		bad:  []string{`{issuer: "https://a", audiences: [a], jwksURI: "https://a", jwks: "{}"}`},
	},
	"tls is for fetching the issuer's keys, and jwks gives them already: leave one out": {
		good: []string{`{issuer: "https://a", audiences: [a], jwksURI: "https://a", tls: {serverName: a}}`, `{issuer: "https://a", audiences: [a], tls: {serverName: a}}`},
		bad:  []string{`{issuer: "https://a", audiences: [a], jwks: "{}", tls: {serverName: a}}`},
	},
	"a rule without requestsPerSecond and budget limits nothing: set one": {
		good: []string{`{requestsPerSecond: 1}`, `{budget: {calls: 1, windowSeconds: 1}}`},
		bad:  []string{`{}`, `{tools: ["*"], when: "true"}`},
	},

	"upstreams needs type Tools or Stdio: Espalier does not stand in front of a Container or an External server": {
		good: []string{`{upstreams: [{name: a, url: "http://a"}]}`},
		bad: []string{`{type: Container, container: {image: a}, upstreams: [{name: a, url: "http://a"}]}`,
			`{type: External, external: {url: "http://a"}, upstreams: [{name: a, serverRef: {name: b}}]}`},
	},
	"contract.onDrift Hide needs type Tools or Stdio: Espalier does not stand in front of a Container or an External server and can withhold nothing of it": {
		good: []string{`{contract: {onDrift: Hide, tools: [{name: a, digest: "v1:sha256:` + zeros + `"}]}}`,
			`{type: Container, container: {image: a}, contract: {onDrift: Report, tools: [{name: a, digest: "v1:sha256:` + zeros + `"}]}}`},
		bad: []string{`{type: External, external: {url: "http://a"}, contract: {onDrift: Hide, tools: [{name: a, digest: "v1:sha256:` + zeros + `"}]}}`},
	},
	"contract.tools[].upstreamDigest needs type Tools or Stdio: only those have upstreams": {
		good: []string{`{contract: {tools: [{name: a, upstreamDigest: "v1:sha256:` + zeros + `"}]}}`},
		bad:  []string{`{type: Container, container: {image: a}, contract: {tools: [{name: a, upstreamDigest: "v1:sha256:` + zeros + `"}]}}`},
	},
	"a contract pins instructions, tools or both": {
		good: []string{`{instructions: "v1:sha256:` + zeros + `"}`, `{tools: [{name: a, digest: "v1:sha256:` + zeros + `"}]}`},
		bad:  []string{`{}`, `{onDrift: Report}`},
	},
	"onDrift Hide needs tools: instructions cannot be withheld": {
		good: []string{`{onDrift: Report, instructions: "v1:sha256:` + zeros + `"}`, `{onDrift: Hide, tools: [{name: a, digest: "v1:sha256:` + zeros + `"}]}`},
		bad:  []string{`{onDrift: Hide, instructions: "v1:sha256:` + zeros + `"}`},
	},
	"a pinned tool needs digest, fields or upstreamDigest": {
		good: []string{`{name: a, digest: "v1:sha256:` + zeros + `"}`, `{name: a, fields: {title: "sha256:` + zeros + `"}}`, `{name: a, upstreamDigest: "v1:sha256:` + zeros + `"}`},
		bad:  []string{`{name: a}`},
	},
	"set exactly one of serverRef, url and openAPI": {
		good: []string{`{name: a, url: "http://a"}`, `{name: a, serverRef: {name: b}}`, `{name: a, openAPI: {document: {url: "http://a"}}}`},
		bad:  []string{`{name: a}`, `{name: a, url: "http://a", serverRef: {name: b}}`, `{name: a, url: "http://a", openAPI: {document: {url: "http://a"}}}`},
	},
	"headers, auth and tls need url: a serverRef inherits those of the MCPServer it names, and openAPI has its own": {
		good: []string{`{name: a, url: "http://a", headers: [{name: A, value: b}], tls: {serverName: a}}`},
		bad: []string{`{name: a, serverRef: {name: b}, headers: [{name: A, value: b}]}`, `{name: a, serverRef: {name: b}, tls: {serverName: a}}`,
			`{name: a, serverRef: {name: b}, auth: {oauthClientCredentials: ` + someClient + `}}`,
			`{name: a, openAPI: {document: {url: "http://a"}}, headers: [{name: A, value: b}]}`},
	},
	"an API speaks no protocol of MCP: leave out protocol": {
		good: []string{`{name: a, url: "http://a", protocol: Modern}`},
		bad:  []string{`{name: a, openAPI: {document: {url: "http://a"}}, protocol: Modern}`},
	},
	"set exactly one of url and configMapKeyRef": {
		good: []string{`{url: "http://a"}`, `{configMapKeyRef: {name: a, key: b}}`},
		bad:  []string{`{url: "http://a", configMapKeyRef: {name: a, key: b}}`},
	},
	"headers of an API cannot use expression, since its document is shared by all callers: use value, secretKeyRef or configMapKeyRef": {
		good: []string{`{document: {url: "http://a"}, headers: [{name: A, value: b}]}`},
		bad:  []string{`{document: {url: "http://a"}, headers: [{name: A, expression: "'b'"}]}`},
	},
	"the URL of an API has no placeholders: the paths of the document follow it": {
		good: []string{`"http://a/v1"`},
		bad:  []string{`"http://a/{v}"`},
	},
	"headers of an upstream cannot use expression, since its connection is shared by all callers: use value, secretKeyRef or configMapKeyRef": {
		good: []string{`{name: a, url: "http://a", headers: [{name: A, value: b}]}`},
		bad:  []string{`{name: a, url: "http://a", headers: [{name: A, expression: "'b'"}]}`},
	},
	"a reference stays in its own namespace: leave out namespace, or use url": {
		good: []string{`{name: a}`},
		bad:  []string{`{name: a, namespace: b}`},
	},
	"an override changes something: set rename, title, description, annotations or metadata": {
		good: []string{`{name: a, rename: b}`, `{name: a, title: b}`, `{name: a, description: b}`, `{name: a, annotations: {readOnlyHint: true}}`, `{name: a, metadata: {a: b}}`},
		bad:  []string{`{name: a}`},
	},

	// Tokens of authorization servers.
	"auth sets the header Authorization: leave it out of headers": {
		good: []string{`{name: a, method: GET, url: "http://a", document: {url: "http://a"}, auth: {oauthClientCredentials: ` + someClient + `}, headers: [{name: X-A, value: a}]}`, `{name: a, method: GET, url: "http://a", document: {url: "http://a"}, headers: [{name: authorization, value: a}]}`},
		bad:  []string{`{name: a, method: GET, url: "http://a", document: {url: "http://a"}, auth: {oauthClientCredentials: ` + someClient + `}, headers: [{name: X-A, value: a}, {name: authorization, value: a}]}`},
	},
	"external.auth sets the header Authorization: leave it out of external.headers": {
		good: []string{`{type: External, external: {url: "http://a", auth: {oauthClientCredentials: ` + someClient + `}, headers: [{name: X-A, value: a}]}}`},
		bad:  []string{`{type: External, external: {url: "http://a", auth: {oauthClientCredentials: ` + someClient + `}, headers: [{name: AUTHORIZATION, value: a}]}}`},
	},
	"oauthTokenExchange exchanges the callers' own tokens: set auth.jwt or auth.serviceAccounts": {
		good: []string{
			`{auth: {serviceAccounts: {audiences: [a]}}, upstreams: [{name: a, url: "http://a", auth: {oauthClientCredentials: ` + someClient + `, oauthTokenExchange: {subjectTokenType: JWT}}}]}`,
			`{upstreams: [{name: a, url: "http://a", auth: {oauthClientCredentials: ` + someClient + `}}]}`,
		},
		bad: []string{
			`{upstreams: [{name: a, url: "http://a"}, {name: b, url: "http://a", auth: {oauthClientCredentials: ` + someClient + `, oauthTokenExchange: {subjectTokenType: JWT}}}]}`,
			`{upstreams: [{name: a, openAPI: {document: {url: "http://a"}, auth: {oauthClientCredentials: ` + someClient + `, oauthTokenExchange: {subjectTokenType: JWT}}}}]}`,
			`{auth: {apiKeys: {secretRef: {name: a}}}, upstreams: [{name: b, url: "http://a", auth: {oauthClientCredentials: ` + someClient + `, oauthTokenExchange: {subjectTokenType: JWT}}}]}`,
		},
	},
	"burst needs requestsPerSecond": {
		good: []string{`{requestsPerSecond: 1, burst: 1}`, `{requestsPerSecond: 1}`},
		bad:  []string{`{burst: 1}`},
	},

	// Workload.
	"labels of mcp.espalier.dev/ and app.kubernetes.io/name, instance and managed-by are set by Espalier": {
		good: []string{`{app.kubernetes.io/part-of: a}`, `{espalier.dev/x: a}`},
		bad: []string{`{mcp.espalier.dev/server: a}`, `{mcp.espalier.dev/x: a}`, `{app.kubernetes.io/name: a}`,
			`{app.kubernetes.io/instance: a}`, `{app.kubernetes.io/managed-by: a}`},
	},
	"annotations of mcp.espalier.dev/ are set by Espalier": {
		good: []string{`{app.kubernetes.io/name: a}`},
		bad:  []string{`{mcp.espalier.dev/catalog: a}`},
	},
	"set exactly one of persistentVolumeClaim, configMap, secret and emptyDir; other sources go into podTemplate": {
		good: []string{`{name: a, emptyDir: {}}`, `{name: a, configMap: {name: b}}`, `{name: a, secret: {secretName: b}}`,
			`{name: a, persistentVolumeClaim: {claimName: b}}`},
		bad: []string{`{name: a}`, `{name: a, emptyDir: {}, configMap: {name: b}}`, `{name: a, hostPath: {path: /}}`},
	},
	"volume names that begin with espalier- are Espalier's": {
		good: []string{`espalier`, `my-espalier-data`},
		bad:  []string{`espalier-catalog`},
	},

	// References.
	"a reference stays in its own namespace: leave out namespace and create the Secret beside this object": {
		good: []string{`{name: a, key: b}`},
		bad:  []string{`{name: a, key: b, namespace: c}`},
	},
	"a reference stays in its own namespace: leave out namespace and create the ConfigMap beside this object": {
		good: []string{`{name: a, key: b}`},
		bad:  []string{`{name: a, key: b, namespace: c}`},
	},
	"tools, resources and prompts are served in their own namespace only: leave out namespace": {
		good: []string{`{name: a}`},
		bad:  []string{`{name: a, namespace: b}`},
	},

	// Connection.
	"set exactly one of value, expression, secretKeyRef and configMapKeyRef": {
		good: []string{`{name: A, value: ""}`, `{name: A, secretKeyRef: {name: a, key: b}}`, `{name: A, configMapKeyRef: {name: a, key: b}}`},
		bad: []string{`{name: A}`, `{name: A, value: b, expression: "'c'"}`,
			`{name: A, value: b, secretKeyRef: {name: a, key: b}}`,
			`{name: A, secretKeyRef: {name: a, key: b}, configMapKeyRef: {name: a, key: b}}`},
	},
	"this header belongs to the connection or the protocol and cannot be set": {
		good: []string{`{name: Hostess, value: a}`, `{name: Authorization, value: a}`},
		bad: []string{`{name: Host, value: a}`, `{name: CONTENT-LENGTH, value: "1"}`, `{name: transfer-encoding, value: a}`,
			`{name: Connection, value: a}`, `{name: Upgrade, value: a}`, `{name: Mcp-Session-Id, value: a}`,
			`{name: MCP-Protocol-Version, value: a}`, `{name: Mcp-Method, value: a}`, `{name: Mcp-Name, value: a}`},
	},
	"two headers have one name: HTTP does not tell upper case from lower": {
		good: []string{`[{name: A, value: x}, {name: B, value: x}]`},
		bad:  []string{`[{name: X-Key, value: x}, {name: x-key, value: x}]`},
	},
	"set exactly one of value and expression": {
		good: []string{`{name: city, value: ""}`, `{name: city, expression: args.city}`},
		bad:  []string{`{name: city}`, `{name: city, value: a, expression: args.city}`},
	},
	"set exactly one of secretKeyRef and configMapKeyRef": {
		good: []string{`{secretKeyRef: {name: a, key: b}}`, `{configMapKeyRef: {name: a, key: b}}`},
		bad:  []string{`{}`, `{secretKeyRef: {name: a, key: b}, configMapKeyRef: {name: a, key: b}}`},
	},
	"a URL begins with http:// or https://": {
		good: []string{`http://a`, `https://a`},
		bad:  []string{`file:///etc/passwd`, `ftp://example.com/`, `//example.com/`, `example.com/mcp`, `HTTP://example.com`, `httpx://example.com`},
	},
	"a URL holds no user and password: use headers with a secretKeyRef": {
		good: []string{`https://example.com/@me`, `https://example.com/?to=a@b`},
		bad:  []string{`http://user:pw@example.com/`, `http://user@example.com`, `http://a@b@example.com/`},
	},
	"a URL to dial has no fragment": {
		good: []string{`https://example.com/%23`},
		bad:  []string{`https://example.com/#a`, `https://example.com#`},
	},
	"a URL has a literal host and, optionally, a port: placeholders belong in the path": {
		good: []string{`http://[::1]:80/x`, `http://[fd00::1]/`, `http://10.0.0.1:8080`, `https://a-b_c.example.com:443/x?y=z`, `https://example.com?y=z`},
		bad: []string{`https://{host}/x`, `https://{sub}.example.com/`, `https://example.com:{port}/`, `https://example.com:/`, `https://example.com:123456/`,
			`https:///etc/passwd`, `https://:80/`, `https://-a.example.com/`, `https://[::1`, `https://::1/`, `https://exa%6dple.com/`,
			`'https://example.com\@evil.example.com/'`, `https://bücher.example/`},
	},
	"a URL has no spaces or control characters": {
		good: []string{`https://example.com/a%20b`},
		bad:  []string{`"https://example.com/a b"`, `"https://example.com/a\tb"`, `"https://example.com/a\r\nb"`, `"https://example.com/\x7f"`, `"https://example.com/\0"`},
	},

	// MCPTool.
	"the tool's name on the wire has at most 128 characters: set spec.name": {
		good: []string{`{metadata: {name: ` + x(129) + `}, spec: {name: a}}`, `{metadata: {name: ` + x(128) + `}, spec: {name: null}}`},
		bad:  []string{`{metadata: {name: ` + x(129) + `}, spec: {name: null}}`},
	},
	"set exactly one of serverRefs and serverSelector: it says which MCPServers of this namespace serve the tool": {
		good: []string{`{serverRefs: [{name: a}]}`, `{serverSelector: {matchLabels: {a: b}}}`},
		bad:  []string{`{}`, `{serverRefs: [{name: a}], serverSelector: {matchLabels: {a: b}}}`},
	},
	"set at most one of http, expression and upstream: a tool has one handler": {
		good: []string{`{serverRefs: [{name: a}], http: {method: GET, url: "http://a"}}`, `{serverRefs: [{name: a}], expression: {text: "'a'"}}`, `{serverRefs: [{name: a}], upstream: {name: u, tool: t}}`, `{serverRefs: [{name: a}]}`},
		bad: []string{
			`{serverRefs: [{name: a}], http: {method: GET, url: "http://a"}, expression: {text: "'a'"}}`,
			`{serverRefs: [{name: a}], upstream: {name: u, tool: t}, expression: {text: "'a'"}}`,
		},
	},
	"expression answers without a backend: set one of structured, text and content": {
		good: []string{`{serverRefs: [{name: a}], expression: {content: [{type: Text, expression: "'a'"}]}}`},
		bad:  []string{`{serverRefs: [{name: a}], expression: {isError: "true"}}`},
	},
	"an empty selector would match every server: name at least one label": {
		good: []string{`{matchExpressions: [{key: a, operator: Exists}]}`},
		bad:  []string{`{}`, `{matchLabels: {}}`, `{matchExpressions: []}`},
	},
	"a key has at most 64 characters, a value at most 256": {
		good: []string{`{` + x(64) + `: ` + x(256) + `}`},
		bad:  []string{`{` + x(65) + `: a}`, `{a: ` + x(257) + `}`},
	},
	"placeholders belong in the URL's path: use http.query for the query": {
		good: []string{`{method: GET, url: "http://a/{city}?x=1"}`},
		bad:  []string{`{method: GET, url: "http://a/?city={city}"}`, `{method: GET, url: "http://a?{city}"}`},
	},
	"a placeholder is {name}, closed within its path segment": {
		good: []string{`{method: GET, url: "http://a/{city}"}`, `{method: GET, url: "http://a/x-{city}.json"}`, `{method: GET, url: "http://a/{city}/{day}"}`,
			`{method: GET, url: "http://a/{city}{day}"}`},
		bad: []string{`{method: GET, url: "http://a/{city"}`, `{method: GET, url: "http://a/city}"}`, `{method: GET, url: "http://a/{}"}`,
			`{method: GET, url: "http://a/{a{b}}"}`, `{method: GET, url: "http://a/{a/b}"}`, `{method: GET, url: "http://a/{a}b}"}`, `{method: GET, url: "http://a/}{"}`},
	},
	"retries are for idempotent methods: GET, HEAD, PUT and DELETE": {
		good: []string{`{method: GET, url: "http://a", retries: 1}`, `{method: HEAD, url: "http://a", retries: 1}`, `{method: PUT, url: "http://a", retries: 1}`,
			`{method: DELETE, url: "http://a", retries: 1}`, `{method: POST, url: "http://a", retries: 0}`},
		bad: []string{`{method: POST, url: "http://a", retries: 1}`, `{method: PATCH, url: "http://a", retries: 1}`},
	},
	"body is for POST, PUT, PATCH and DELETE": {
		good: []string{`{method: POST, url: "http://a", body: {expression: args}}`, `{method: PUT, url: "http://a", body: {expression: args}}`,
			`{method: PATCH, url: "http://a", body: {expression: args}}`, `{method: DELETE, url: "http://a", body: {expression: args}}`},
		bad: []string{`{method: GET, url: "http://a", body: {expression: args}}`, `{method: HEAD, url: "http://a", body: {expression: args}}`},
	},

	// MCPResource.
	"set exactly one of serverRefs and serverSelector: it says which MCPServers of this namespace serve the resource": {
		good: []string{`{serverRefs: [{name: a}], uri: "a:b", text: a}`, `{serverSelector: {matchLabels: {a: b}}, uri: "a:b", text: a}`},
		bad:  []string{`{uri: "a:b", text: a}`, `{serverRefs: [{name: a}], serverSelector: {matchLabels: {a: b}}, uri: "a:b", text: a}`},
	},
	"set exactly one of uri (one resource) and uriTemplate (one for each value of its variables)": {
		good: []string{`{serverRefs: [{name: a}], uri: "a:b", text: a}`, `{serverRefs: [{name: a}], uriTemplate: "a:b/{c}", text: a}`},
		bad:  []string{`{serverRefs: [{name: a}], text: a}`, `{serverRefs: [{name: a}], uri: "a:b", uriTemplate: "a:b/{c}", text: a}`},
	},
	"set exactly one of text, blob, configMapKeyRef, secretKeyRef, expression and http: it says where the content comes from": {
		good: []string{`{serverRefs: [{name: a}], uri: "a:b", text: ""}`, `{serverRefs: [{name: a}], uri: "a:b", blob: aa+/}`,
			`{serverRefs: [{name: a}], uri: "a:b", configMapKeyRef: {name: a, key: b}}`, `{serverRefs: [{name: a}], uri: "a:b", secretKeyRef: {name: a, key: b}}`,
			`{serverRefs: [{name: a}], uri: "a:b", expression: {text: "''"}}`, `{serverRefs: [{name: a}], uri: "a:b", http: {url: "http://a"}}`},
		bad: []string{`{serverRefs: [{name: a}], uri: "a:b"}`, `{serverRefs: [{name: a}], uri: "a:b", text: a, blob: aaaa}`,
			`{serverRefs: [{name: a}], uri: "a:b", secretKeyRef: {name: a, key: b}, configMapKeyRef: {name: a, key: b}}`,
			`{serverRefs: [{name: a}], uri: "a:b", text: a, http: {url: "http://a"}}`, `{serverRefs: [{name: a}], uri: "a:b", text: a, expression: {text: "''"}}`},
	},
	"variables are those of uriTemplate: a uri has none": {
		good: []string{`{serverRefs: [{name: a}], uriTemplate: "a:b/{c}", text: a, variables: [{name: c, completions: [x]}]}`},
		bad:  []string{`{serverRefs: [{name: a}], uri: "a:b", text: a, variables: [{name: c, completions: [x]}]}`},
	},
	"a URI begins with a scheme, as in docs://runbooks/checkout, and has no spaces or braces": {
		good: []string{`docs://a/b`, `"urn:x:y"`, `"a+b.c-d:e"`, `https://example.com/?a=b#c`},
		bad:  []string{`docs`, `//a/b`, `"1a:b"`, `"a:b c"`, `"a:b{c}"`, `"a:b\n"`, `"a: "`},
	},
	"a URI template begins with a literal scheme, has no spaces, and at least one variable, as in docs://runbooks/{service}": {
		good: []string{`docs://{a}`, `"urn:x:{y}"`, `docs://a{?b,c}`},
		bad:  []string{`docs://abc`, `"{a}://bc"`, `"docs://{a} b"`, `/abc/{a}`},
	},
	"set exactly one of text and blob": {
		good: []string{`{text: "''"}`, `{blob: "b''"}`},
		bad:  []string{`{}`, `{text: "''", blob: "b''"}`},
	},

	// MCPPrompt.
	"the prompt's name on the wire has at most 128 characters: set spec.name": {
		good: []string{`{metadata: {name: ` + x(129) + `}, spec: {name: a}}`, `{metadata: {name: ` + x(128) + `}, spec: {name: null}}`},
		bad:  []string{`{metadata: {name: ` + x(129) + `}, spec: {name: null}}`},
	},
	"set exactly one of serverRefs and serverSelector: it says which MCPServers of this namespace serve the prompt": {
		good: []string{`{serverRefs: [{name: a}], messages: [{role: User, content: {type: Text, text: a}}]}`,
			`{serverSelector: {matchLabels: {a: b}}, messages: [{role: User, content: {type: Text, text: a}}]}`},
		bad: []string{`{messages: [{role: User, content: {type: Text, text: a}}]}`,
			`{serverRefs: [{name: a}], serverSelector: {matchLabels: {a: b}}, messages: [{role: User, content: {type: Text, text: a}}]}`},
	},
	"set exactly one of text, blob and expression; an EmbeddedResource without them is the resource that the server itself has at uri": {
		good: []string{`{type: Text, text: a}`, `{type: Text, expression: "'a'"}`, `{type: EmbeddedResource, uri: "a:b"}`, `{type: EmbeddedResource, uri: "a:b", blob: a+/=}`},
		bad: []string{`{type: Text}`, `{type: Text, text: a, expression: "'a'"}`, `{type: Image, mimeType: image/png}`, `{type: ResourceLink, uri: "a:b"}`,
			`{type: EmbeddedResource, uri: "a:b", text: a, blob: aaaa}`},
	},
	"text is for Text, EmbeddedResource and ResourceLink": {
		good: []string{`{type: Text, text: a}`, `{type: EmbeddedResource, uri: "a:b", text: a}`, `{type: ResourceLink, uri: "a:b", text: a}`},
		bad:  []string{`{type: Image, mimeType: image/png, text: a}`, `{type: Audio, mimeType: audio/wav, text: a}`},
	},
	"blob is for Image, Audio and EmbeddedResource": {
		good: []string{`{type: Image, mimeType: image/png, blob: aaaa}`, `{type: Audio, mimeType: audio/wav, blob: aaaa}`, `{type: EmbeddedResource, uri: "a:b", blob: a+/=}`},
		bad:  []string{`{type: Text, blob: aaaa}`, `{type: ResourceLink, uri: "a:b", blob: aaaa}`},
	},
	"EmbeddedResource and ResourceLink need exactly one of uri and uriExpression, which no other type has": {
		good: []string{`{type: EmbeddedResource, uri: "a:b"}`, `{type: EmbeddedResource, uriExpression: "'a:b'"}`, `{type: ResourceLink, uriExpression: "'a:b'", text: a}`},
		bad: []string{`{type: EmbeddedResource}`, `{type: EmbeddedResource, uri: "a:b", uriExpression: "'a:b'"}`, `{type: ResourceLink, text: a}`,
			`{type: Text, text: a, uri: "a:b"}`, `{type: Text, text: a, uriExpression: "'a:b'"}`},
	},

	// Result.
	"set at most one of structured, text and content": {
		good: []string{`{text: "'a'"}`, `{structured: args, isError: "false"}`},
		bad:  []string{`{text: "'a'", structured: args}`, `{text: "'a'", content: [{type: Text, expression: "'a'"}]}`},
	},
	"mimeType is needed for Image and Audio": {
		good: []string{`{type: Image, mimeType: image/png, expression: "'a'"}`, `{type: Audio, mimeType: audio/wav, expression: "'a'"}`, `{type: Text, expression: "'a'"}`},
		bad:  []string{`{type: Image, expression: "'a'"}`, `{type: Audio, expression: "'a'"}`},
	},
	"uri is for EmbeddedResource and ResourceLink, and needed there": {
		good: []string{`{type: EmbeddedResource, uri: "a:b", expression: "'a'"}`, `{type: ResourceLink, uri: "a:b", expression: "'a'"}`},
		bad:  []string{`{type: EmbeddedResource, expression: "'a'"}`, `{type: ResourceLink, expression: "'a'"}`, `{type: Text, uri: "a:b", expression: "'a'"}`},
	},
}
