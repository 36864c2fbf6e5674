// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-jose/go-jose/v4"

	"github.com/espalier-dev/espalier/internal/jwks"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// maxDocument is the largest metadata or key set, in bytes.
const maxDocument = 1 << 20

// Client gives the HTTP client for TLS settings; nil is the system's.
type Client func(*serverconfig.TLS) (*http.Client, error)

// fetcher gets the keys of one issuer.
type fetcher struct {
	config *serverconfig.JWT
	client Client
}

func (f *fetcher) fetch(ctx context.Context) ([]jose.JSONWebKey, error) {
	client, err := f.client(f.config.TLS)
	if err != nil {
		return nil, err
	}
	address := f.config.JWKSURI
	if address == "" {
		if address, err = f.discover(ctx, client); err != nil {
			return nil, err
		}
	}
	raw, err := get(ctx, client, address)
	if err != nil {
		return nil, fmt.Errorf("key set: %w", err)
	}
	keys, err := jwks.Parse(raw)
	if err != nil {
		return nil, fmt.Errorf("key set: %w", err)
	}
	return keys, nil
}

// discover asks the issuer's metadata for the address of its keys.
func (f *fetcher) discover(ctx context.Context, client *http.Client) (string, error) {
	var all error
	for _, address := range metadataURLs(f.config.Issuer) {
		raw, err := get(ctx, client, address)
		if err == nil {
			var found string
			if found, err = f.keysURL(raw); err == nil {
				return found, nil
			}
		}
		all = errors.Join(all, err)
		if ctx.Err() != nil {
			break
		}
	}
	return "", fmt.Errorf("metadata: %w", all)
}

// metadataURLs are where OpenID Connect Discovery and RFC 8414 put metadata.
func metadataURLs(issuer string) []string {
	u, err := url.Parse(issuer)
	if err != nil {
		return nil
	}
	origin, path := u.Scheme+"://"+u.Host, strings.TrimSuffix(u.EscapedPath(), "/")
	return []string{
		origin + path + "/.well-known/openid-configuration",
		origin + "/.well-known/oauth-authorization-server" + path,
	}
}

// keysURL holds the metadata to its issuer: another one's metadata could name
// keys of its own. An issuer of https has its keys there too.
func (f *fetcher) keysURL(raw []byte) (string, error) {
	var document struct {
		Issuer  string `json:"issuer"`
		JWKSURI string `json:"jwks_uri"`
	}
	if err := json.Unmarshal(raw, &document); err != nil {
		return "", errors.New("it is no JSON object")
	}
	if document.Issuer != f.config.Issuer {
		return "", errors.New("it is of another issuer")
	}
	u, err := url.Parse(document.JWKSURI)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && u.Scheme != "http" {
		return "", errors.New("it has no jwks_uri")
	}
	if u.Scheme == "http" && strings.HasPrefix(f.config.Issuer, "https:") {
		return "", errors.New("its jwks_uri is not https, as the issuer is")
	}
	return document.JWKSURI, nil
}

func get(ctx context.Context, client *http.Client, address string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, errors.New("its URL cannot be used")
	}
	request.Header.Set("Accept", "application/json")
	response, err := client.Do(request)
	if err != nil {
		// The error of net/http holds the URL, whose query may be a secret.
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d", response.StatusCode)
	}
	raw, err := io.ReadAll(io.LimitReader(response.Body, maxDocument+1))
	if err != nil {
		return nil, err
	}
	if len(raw) > maxDocument {
		return nil, fmt.Errorf("more than %d bytes", maxDocument)
	}
	return raw, nil
}
