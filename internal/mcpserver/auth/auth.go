// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/internal/glob"
	"github.com/espalier-dev/espalier/internal/mcpserver/principal"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// HeaderAPIKey is where an API key may stand instead of in Authorization.
const HeaderAPIKey = "X-Api-Key"

// Options of a Keeper.
type Options struct {
	// KeysDir holds a folder for each Secret of API keys.
	KeysDir string
	Client  Client
	Log     *slog.Logger
	// Now is the clock; nil is the system's.
	Now func() time.Time
}

// Keeper makes authenticators, one per catalog, and keeps what outlives a
// catalog: the keys that were fetched.
type Keeper struct {
	options Options

	mu      sync.Mutex
	remote  map[string]*remoteKeys
	folders map[string]*keyFolder
}

// NewKeeper gives a Keeper.
func NewKeeper(options Options) *Keeper {
	if options.Now == nil {
		options.Now = time.Now
	}
	return &Keeper{options: options, remote: map[string]*remoteKeys{}, folders: map[string]*keyFolder{}}
}

// Authenticator recognises the callers of one catalog. It is safe for
// concurrent use.
type Authenticator struct {
	config *serverconfig.Auth // nil: everybody may come
	trust  []serverconfig.ProbeTrust
	now    func() time.Time

	jwt, accounts *issuer
	keys          *keyFolder
}

// Build makes the authenticator of a catalog and forgets what no catalog but
// older ones needed.
func (k *Keeper) Build(config *serverconfig.Config) *Authenticator {
	k.mu.Lock()
	defer k.mu.Unlock()
	a := &Authenticator{config: config.Auth, trust: []serverconfig.ProbeTrust{config.Probe}, now: k.options.Now}
	remote, folders := k.remote, k.folders
	k.remote, k.folders = map[string]*remoteKeys{}, map[string]*keyFolder{}
	if c := config.Auth; c != nil {
		if c.JWT != nil {
			a.jwt = &issuer{name: c.JWT.Issuer, audiences: c.JWT.Audiences, keys: k.keysOf(c.JWT, remote)}
		}
		if s := c.ServiceAccounts; s != nil {
			a.accounts = &issuer{name: s.Issuer, audiences: s.Audiences, keys: newFixedKeys(s.JWKS)}
		}
		if c.APIKeys != nil {
			a.keys = k.folder(c.APIKeys.Secret, folders)
		}
	}
	for name, old := range remote {
		if k.remote[name] == nil {
			old.close() // What still waits for it is told that there are no keys.
		}
	}
	return a
}

func (k *Keeper) keysOf(config *serverconfig.JWT, known map[string]*remoteKeys) keySet {
	if config.JWKS != nil {
		return newFixedKeys(config.JWKS)
	}
	// Plain data: it cannot fail to encode.
	id, _ := json.Marshal([]any{config.Issuer, config.JWKSURI, config.TLS})
	keys := known[string(id)]
	if keys == nil {
		f := &fetcher{config: config, client: k.options.Client}
		keys = newRemoteKeys(config.Issuer, k.options.Log, k.options.Now, f.fetch)
		keys.prepare()
	}
	k.remote[string(id)] = keys
	return keys
}

func (k *Keeper) folder(secret string, known map[string]*keyFolder) *keyFolder {
	folder := known[secret]
	if folder == nil {
		folder = newKeyFolder(filepath.Join(k.options.KeysDir, filepath.Base(secret)), k.options.Now)
	}
	k.folders[secret] = folder
	return folder
}

// KeysStatus says whether the Secret of API keys is mounted and since when
// its present keys are in use.
func (a *Authenticator) KeysStatus() (present bool, loadedAt time.Time) {
	if a == nil || a.keys == nil {
		return false, time.Time{}
	}
	return a.keys.status()
}

// Close ends all fetches.
func (k *Keeper) Close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, keys := range k.remote {
		keys.close()
	}
}

// Authenticate says who makes a request, or why it does not come in. Where
// the catalog has no auth everybody is Nobody, but for the operator's probe.
func (a *Authenticator) Authenticate(r *http.Request) (*principal.Principal, *Refusal) {
	text, bearer, ok := credential(r.Header)
	if a.config == nil {
		if p := a.probe(text); ok && bearer && p != nil {
			return p, nil
		}
		return principal.Nobody(), nil
	}
	switch {
	case !ok:
		return nil, a.invalid("the request shows more than one, or one of another scheme")
	case text == "":
		return nil, a.required()
	case len(text) > maxToken:
		return nil, a.invalid("it is too long")
	}
	if a.keys != nil {
		if subject, known := a.keys.subject(text); known {
			return principal.New(principal.APIKey, subject, nil, nil, time.Time{}), nil
		}
	}
	if !bearer {
		return nil, a.invalid("it is not known")
	}
	return a.token(r.Context(), text)
}

// credential finds what a request shows. It is one thing: of two, a proxy
// and this server might look at different ones.
func credential(header http.Header) (text string, bearer, ok bool) {
	authorization, key := header["Authorization"], header[HeaderAPIKey]
	switch {
	case len(authorization)+len(key) == 0:
		return "", false, true
	case len(authorization)+len(key) > 1:
		return "", false, false
	case len(key) == 1:
		return strings.TrimSpace(key[0]), false, true
	}
	scheme, rest, found := strings.Cut(authorization[0], " ")
	if !found || !strings.EqualFold(scheme, "Bearer") {
		return "", false, false
	}
	return strings.TrimSpace(rest), true, true
}

// probe gives the operator's principal, nil when it is somebody else.
func (a *Authenticator) probe(text string) *principal.Principal {
	expiry, err := verifyProbe(text, a.trust, a.now())
	if err != nil {
		return nil
	}
	return principal.New(principal.Probe, "", nil, nil, expiry)
}

// token recognises who shows a token by the issuer that it names.
func (a *Authenticator) token(ctx context.Context, text string) (*principal.Principal, *Refusal) {
	parsed, err := parseToken(text)
	switch {
	case err != nil && a.jwt == nil && a.accounts == nil:
		return nil, a.invalid("it is not known")
	case err != nil:
		return nil, a.invalid(err.Error())
	case parsed.issuer == ProbeIssuer:
		if p := a.probe(text); p != nil {
			return p, nil
		}
		return nil, a.invalid(errSignature.Error())
	case a.jwt != nil && parsed.issuer == a.jwt.name:
		return showing(text)(a.jwtCaller(ctx, parsed))
	case a.accounts != nil && parsed.issuer == a.accounts.name:
		return showing(text)(a.account(ctx, parsed))
	}
	return nil, a.invalid(errIssuer.Error())
}

// showing notes the token that a caller showed.
func showing(text string) func(*principal.Principal, *Refusal) (*principal.Principal, *Refusal) {
	return func(p *principal.Principal, refusal *Refusal) (*principal.Principal, *Refusal) {
		if p != nil {
			p = p.WithToken(text)
		}
		return p, refusal
	}
}

func (a *Authenticator) jwtCaller(ctx context.Context, t *token) (*principal.Principal, *Refusal) {
	c, refusal := a.verified(ctx, a.jwt, t)
	if refusal != nil {
		return nil, refusal
	}
	scopes := c.scopes()
	for _, required := range a.config.JWT.RequiredScopes {
		if !slices.Contains(scopes, required) {
			return nil, a.insufficient()
		}
	}
	expiry, _ := c.time("exp")
	return principal.New(principal.JWT, c.subject(), scopes, c, expiry), nil
}

func (a *Authenticator) account(ctx context.Context, t *token) (*principal.Principal, *Refusal) {
	c, refusal := a.verified(ctx, a.accounts, t)
	if refusal != nil {
		return nil, refusal
	}
	if subjects := a.config.ServiceAccounts.Subjects; subjects != nil && !glob.Any(subjects, c.text("sub")) {
		return nil, a.notAllowed()
	}
	expiry, _ := c.time("exp")
	return principal.New(principal.ServiceAccount, c.text("sub"), c.scopes(), c, expiry), nil
}

func (a *Authenticator) verified(ctx context.Context, i *issuer, t *token) (claims, *Refusal) {
	c, err := i.verify(ctx, t, a.now())
	switch {
	case errors.Is(err, errUnavailable):
		return nil, unavailable()
	case err != nil:
		return nil, a.invalid(err.Error())
	}
	return c, nil
}
