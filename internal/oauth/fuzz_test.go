// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package oauth

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
)

// answer is a token endpoint that answers all requests alike.
type answer struct {
	status    int
	mediaType string
	body      []byte
}

// RoundTrip implements http.RoundTripper.
func (a answer) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: a.status, Header: http.Header{"Content-Type": {a.mediaType}, "Location": {"https://elsewhere.example.com/"}},
		Body: io.NopCloser(bytes.NewReader(a.body)), Request: r,
	}, nil
}

// FuzzFetch: of whatever answer, a token can stand in a header, and an error
// holds none of the endpoint's words but a known code.
func FuzzFetch(f *testing.F) {
	const jsonType, form = "application/json", "application/x-www-form-urlencoded"
	f.Add(200, jsonType, []byte(`{"access_token":"a","token_type":"Bearer","expires_in":3600}`))
	f.Add(200, jsonType, []byte(`{"access_token":"a\r\nX: y","token_type":"bearer"}`))
	f.Add(200, jsonType, []byte(`{"access_token":"a","token_type":"mac","expires_in":"9e999"}`))
	f.Add(200, form, []byte(`access_token=a&expires_in=-1&token_type=bearer`))
	f.Add(400, jsonType, []byte(`{"error":"invalid_client","error_description":"a secret word"}`))
	f.Add(200, jsonType, []byte(`{"error":"a secret word"}`))
	f.Add(302, "text/html", []byte(`<html>`))
	f.Fuzz(func(t *testing.T, status int, mediaType string, body []byte) {
		if status < 200 || status > 599 {
			return
		}
		client := &http.Client{Transport: answer{status, mediaType, body}}
		var fetcher Fetcher
		token, err := fetcher.Fetch(t.Context(), client, &Request{TokenURL: "https://login.example.com/token", ClientID: "id", Secret: "hidden"})
		if err == nil {
			if status/100 != 2 || !fit(token.Value) || len(token.Value) > maxToken {
				t.Fatalf("status %d gives the token %q", status, token.Value)
			}
			return
		}
		var failure *Error
		if !errors.As(err, &failure) || token != nil {
			t.Fatalf("%T: %v, %v", err, err, token)
		}
		if failure.Err != nil || failure.Code != "" && !codes[failure.Code] {
			t.Fatalf("%+v", failure)
		}
		text := err.Error()
		if len(text) > 100 || strings.Contains(text, "hidden") || strings.Contains(text, "login.example.com") {
			t.Fatalf("it says %q", text)
		}
	})
}
