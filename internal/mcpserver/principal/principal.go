// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package principal says who makes a request. A principal is made by the
// authentication of a transport and by nothing else; rules, expressions and
// handlers read it.
package principal

import (
	"time"

	"github.com/espalier-dev/espalier/internal/expression"
)

// Kind says how a caller was recognised.
type Kind string

// Kinds of principals.
const (
	// Anonymous showed no credential, and the server wants none.
	Anonymous Kind = "Anonymous"
	// JWT is a subject of auth.jwt's issuer.
	JWT Kind = "JWT"
	// ServiceAccount is one of the cluster's.
	ServiceAccount Kind = "ServiceAccount"
	// APIKey is a key of the Secret of auth.apiKeys.
	APIKey Kind = "APIKey"
	// Probe is the operator. It may look at lists, past access, and do
	// nothing else; no expression ever sees it.
	Probe Kind = "Probe"
)

// Principal is who makes a request. It is immutable.
type Principal struct {
	Kind    Kind
	Subject string
	Scopes  []string
	Claims  map[string]any
	// Expires is when the credential ends, and every stream with it; zero is
	// never.
	Expires time.Time

	value any
	// token is a func so that no verb of fmt and no encoder shows it.
	token func() string
}

// New gives a principal. None of the arguments may be changed afterwards.
func New(kind Kind, subject string, scopes []string, claims map[string]any, expires time.Time) *Principal {
	p := &Principal{Kind: kind, Subject: subject, Scopes: scopes, Claims: claims, Expires: expires}
	p.value = expression.Principal{Kind: string(kind), Subject: subject, Scopes: scopes, Claims: claims}.Var()
	return p
}

// WithToken gives p with the verified token that the caller showed.
func (p *Principal) WithToken(token string) *Principal {
	with := *p
	with.token = func() string { return token }
	return &with
}

// Token is the verified token that the caller showed, empty without one. It is
// for the exchange at a token endpoint and for nothing else: no backend, log or
// expression ever sees it.
func (p *Principal) Token() string {
	if p.token == nil {
		return ""
	}
	return p.token()
}

var anonymous = New(Anonymous, "", nil, nil, time.Time{})

// Nobody is the principal of a caller of whom nothing is known.
func Nobody() *Principal { return anonymous }

// Var is the value of the expression variable principal.
func (p *Principal) Var() any { return p.value }

// Key tells callers apart, for budgets and sessions. It is no text for people.
func (p *Principal) Key() string { return string(p.Kind) + "\x00" + p.Subject }
