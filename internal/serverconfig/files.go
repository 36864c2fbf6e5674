// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package serverconfig

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// The catalog travels in an index and parts. The index names each part with
// its SHA-256; a reader takes only a complete set that matches. A small
// catalog (the rule) is one part beside its index in one ConfigMap, which the
// kubelet swaps atomically; a large one spreads over shards of their own.
const (
	// IndexKey is the index's key in its ConfigMap and its file's name.
	IndexKey = "index.json"
	// MaxShards beside the index ConfigMap.
	MaxShards = 3
	// MaxPartBytes keeps a ConfigMap well under the 1 MiB limit of the API.
	MaxPartBytes = 900 << 10
	// CompressAbove this size the payload is gzip.
	CompressAbove = 256 << 10
	// MaxPayloadBytes bounds what a reader inflates.
	MaxPayloadBytes = 64 << 20

	// CredentialsSecrets and CredentialsConfigMaps are the folders below the
	// credentials folder: secrets/NAME/KEY and configmaps/NAME/KEY.
	CredentialsSecrets    = "secrets"
	CredentialsConfigMaps = "configmaps"
)

// ErrTooLarge says that a catalog does not fit its ConfigMaps.
var ErrTooLarge = errors.New("catalog too large")

// ErrIncomplete says that index and parts on disk do not match (yet).
var ErrIncomplete = errors.New("catalog incomplete")

// Index lists the parts of one catalog.
type Index struct {
	Version int `json:"version"`
	// Digest of the payload, "sha256:HEX".
	Digest string `json:"digest"`
	// Encoding of the joined parts: "" or "gzip".
	Encoding string `json:"encoding,omitempty"`
	Parts    []Part `json:"parts"`
}

// Part is one piece of the payload.
type Part struct {
	// Key is the file's name.
	Key    string `json:"key"`
	SHA256 string `json:"sha256"`
}

// Set is a catalog cut for travel. Parts[0] goes with the index unless there
// are several: then part i goes into shard i+1 and the index stands alone.
type Set struct {
	Digest string
	Index  []byte
	Parts  [][]byte
	Keys   []string
}

// Encode gives the canonical JSON of c.
func Encode(c *Config) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(c); err != nil {
		return nil, err
	}
	return bytes.TrimRight(buf.Bytes(), "\n"), nil
}

// Digest of a payload as it stands in status, index and report.
func Digest(payload []byte) string {
	sum := sha256.Sum256(payload)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Cut makes a Set of c. It returns ErrTooLarge when it does not fit.
func Cut(c *Config) (*Set, error) {
	payload, err := Encode(c)
	if err != nil {
		return nil, err
	}
	set := &Set{Digest: Digest(payload)}
	index := Index{Version: Version, Digest: set.Digest}
	body := payload
	if len(payload) > CompressAbove {
		index.Encoding = "gzip"
		if body, err = deflate(payload); err != nil {
			return nil, err
		}
	}
	if len(body) > MaxShards*MaxPartBytes || len(payload) > MaxPayloadBytes {
		return nil, fmt.Errorf("%w: %d bytes after compression, %d fit", ErrTooLarge, len(body), MaxShards*MaxPartBytes)
	}
	for chunk := range slices.Chunk(body, MaxPartBytes) {
		key := fmt.Sprintf("catalog-%d", len(set.Parts))
		sum := sha256.Sum256(chunk)
		index.Parts = append(index.Parts, Part{Key: key, SHA256: hex.EncodeToString(sum[:])})
		set.Parts = append(set.Parts, chunk)
		set.Keys = append(set.Keys, key)
	}
	set.Index, err = json.Marshal(index)
	return set, err
}

// Join reads a catalog through read, which returns a file's bytes by its
// name. It returns the config and its digest, or an error that wraps
// ErrIncomplete when parts are missing or do not match their index.
func Join(read func(name string) ([]byte, error)) (*Config, string, error) {
	raw, err := read(IndexKey)
	if err != nil {
		return nil, "", err
	}
	var index Index
	if err := json.Unmarshal(raw, &index); err != nil {
		return nil, "", fmt.Errorf("decode catalog index: %w", err)
	}
	var body []byte
	for _, part := range index.Parts {
		chunk, err := read(part.Key)
		if err != nil {
			return nil, "", fmt.Errorf("%w: part %s: %w", ErrIncomplete, part.Key, err)
		}
		if sum := sha256.Sum256(chunk); hex.EncodeToString(sum[:]) != part.SHA256 {
			return nil, "", fmt.Errorf("%w: part %s does not match its index", ErrIncomplete, part.Key)
		}
		body = append(body, chunk...)
	}
	payload := body
	if index.Encoding == "gzip" {
		if payload, err = inflate(body); err != nil {
			return nil, "", fmt.Errorf("inflate catalog: %w", err)
		}
	}
	if digest := Digest(payload); digest != index.Digest {
		return nil, "", fmt.Errorf("%w: payload does not match its index", ErrIncomplete)
	}
	var c Config
	if err := json.Unmarshal(payload, &c); err != nil {
		return nil, "", fmt.Errorf("decode catalog: %w", err)
	}
	return &c, index.Digest, nil
}

// Missing returns the features that c requires and this build lacks.
func (c *Config) Missing() []string {
	var missing []string
	for _, f := range c.Requires {
		if !slices.Contains(Features, f) {
			missing = append(missing, f)
		}
	}
	return missing
}

func deflate(payload []byte) ([]byte, error) {
	var buf bytes.Buffer
	w, err := gzip.NewWriterLevel(&buf, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(payload); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

func inflate(body []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	payload, err := io.ReadAll(io.LimitReader(r, MaxPayloadBytes+1))
	if err != nil {
		return nil, err
	}
	if len(payload) > MaxPayloadBytes {
		return nil, ErrTooLarge
	}
	return payload, r.Close()
}
