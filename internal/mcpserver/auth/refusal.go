// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"net/http"
	"strings"
)

// Reasons of a Refusal, as they stand in data.reason and in metrics.
const (
	ReasonAuthRequired      = "AuthRequired"
	ReasonInvalidToken      = "InvalidToken"
	ReasonInsufficientScope = "InsufficientScope"
	ReasonSubjectNotAllowed = "SubjectNotAllowed"
	ReasonIssuerUnavailable = "IssuerUnavailable"
	ReasonNotReady          = "AuthNotReady"
)

// Refusal is why a request does not come in.
type Refusal struct {
	// Status is 401, 403, or 503 when it could not be found out.
	Status int
	// Reason in CamelCase.
	Reason string
	// Message for the caller; it repeats nothing that the caller sent.
	Message string
	// Challenge is the value of WWW-Authenticate; empty with 503.
	Challenge string
}

// required: no credential was shown.
func (a *Authenticator) required() *Refusal {
	return &Refusal{
		Status: http.StatusUnauthorized, Reason: ReasonAuthRequired,
		Message: "this server wants a credential", Challenge: a.challenge("", "", a.scopes()),
	}
}

// invalid: a credential was shown and is not good. why is in words of ours.
func (a *Authenticator) invalid(why string) *Refusal {
	return &Refusal{
		Status: http.StatusUnauthorized, Reason: ReasonInvalidToken,
		Message: "the credential is not valid: " + why, Challenge: a.challenge("invalid_token", why, a.scopes()),
	}
}

// insufficient: the token lacks a scope. All that are required are named, so
// that a client asks for them at once.
func (a *Authenticator) insufficient() *Refusal {
	return &Refusal{
		Status: http.StatusForbidden, Reason: ReasonInsufficientScope,
		Message:   "the token lacks a scope; required are: " + strings.Join(a.scopes(), " "),
		Challenge: a.challenge("insufficient_scope", "the token lacks a scope", a.scopes()),
	}
}

func (a *Authenticator) notAllowed() *Refusal {
	return &Refusal{
		Status: http.StatusForbidden, Reason: ReasonSubjectNotAllowed,
		Message: "this service account may not call the server", Challenge: a.challenge("", "", nil),
	}
}

func unavailable() *Refusal {
	return &Refusal{
		Status: http.StatusServiceUnavailable, Reason: ReasonIssuerUnavailable,
		Message: "the keys of the token's issuer cannot be had at the moment: try again later",
	}
}

// NotReady refuses while a catalog wants authentication that is not set up.
func NotReady() *Refusal {
	return &Refusal{Status: http.StatusServiceUnavailable, Reason: ReasonNotReady, Message: "authentication is not set up: try again later"}
}

func (a *Authenticator) scopes() []string {
	if a.config == nil || a.config.JWT == nil {
		return nil
	}
	return a.config.JWT.RequiredScopes
}

// challenge is RFC 6750 with the resource_metadata of RFC 9728. Its texts are
// ours or were checked by the CRD: they hold no quote.
func (a *Authenticator) challenge(code, description string, scopes []string) string {
	var parts []string
	add := func(name, value string) {
		if value != "" {
			parts = append(parts, name+`="`+value+`"`)
		}
	}
	add("error", code)
	add("error_description", description)
	add("scope", strings.Join(scopes, " "))
	add("resource_metadata", a.MetadataURL())
	if parts == nil {
		return "Bearer"
	}
	return "Bearer " + strings.Join(parts, ", ")
}
