// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"bytes"
	"encoding/json"
	"errors"
)

// JSON is any JSON value, kept byte for byte. It holds what MCP leaves open
// (JSON Schemas, _meta) and what would make a CRD too large (podTemplate).
//
// +kubebuilder:object:generate=false
type JSON struct {
	// Raw is the value's text. Empty is null.
	Raw []byte `json:"-"`
}

// MarshalJSON gives Raw, or null when it is empty.
func (j JSON) MarshalJSON() ([]byte, error) {
	if len(j.Raw) == 0 {
		return []byte("null"), nil
	}
	return j.Raw, nil
}

// UnmarshalJSON keeps data as Raw.
func (j *JSON) UnmarshalJSON(data []byte) error {
	if !json.Valid(data) {
		return errors.New("not a JSON value")
	}
	j.Raw = nil
	if !bytes.Equal(data, []byte("null")) {
		j.Raw = bytes.Clone(data)
	}
	return nil
}

// DeepCopyInto copies j into out.
func (j *JSON) DeepCopyInto(out *JSON) { out.Raw = bytes.Clone(j.Raw) }

// DeepCopy copies j.
func (j *JSON) DeepCopy() *JSON {
	if j == nil {
		return nil
	}
	out := &JSON{}
	j.DeepCopyInto(out)
	return out
}
