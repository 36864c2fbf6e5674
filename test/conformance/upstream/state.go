// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// signer makes request states that nobody else can make.
type signer struct{ key []byte }

func newSigner() *signer {
	s := &signer{key: make([]byte, sha256.Size)}
	// It never fails.
	_, _ = rand.Read(s.key)
	return s
}

func (s *signer) sum(text string) string {
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte(text))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// seal makes a state of a text.
func (s *signer) seal(text string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(text)) + "." + s.sum(text)
}

// open gives the text of a state that seal made, or an error of the protocol.
func (s *signer) open(state string) (string, error) {
	encoded, sum, _ := strings.Cut(state, ".")
	text, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil || !hmac.Equal([]byte(sum), []byte(s.sum(string(text)))) {
		return "", &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "requestState is not one that this server gave"}
	}
	return string(text), nil
}
