// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

// Field is one member of an object; Raw is its value as it was written.
type Field struct {
	Key string
	Raw []byte
}

// Object is a JSON object one level deep. Its fields point into the bytes
// that it was read from.
type Object []Field

// Get gives the raw value of key, nil when absent.
func (o Object) Get(key string) []byte {
	for i := range o {
		if o[i].Key == key {
			return o[i].Raw
		}
	}
	return nil
}

// Text gives the string at key.
func (o Object) Text(key string) (string, bool) {
	return Text(o.Get(key))
}

// Text gives the text of a raw JSON string.
func Text(raw []byte) (string, bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	s := scanner{data: raw}
	text, escaped, err := s.rawString()
	if err != nil {
		return "", false
	}
	return unquote(text, escaped), true
}

// IsObject reports whether raw, a valid value, is an object.
func IsObject(raw []byte) bool { return len(raw) > 0 && raw[0] == '{' }

// DecodeObject reads one object, one level deep.
func DecodeObject(data []byte) (Object, error) {
	s := scanner{data: data}
	if s.peek() != '{' {
		return nil, errSyntax
	}
	fields, err := s.fields(nil, 0)
	if err != nil {
		return nil, err
	}
	return fields, s.end()
}

// fields reads an object into dst.
func (s *scanner) fields(dst Object, depth int) (Object, error) {
	err := s.object(depth, func(key []byte, escaped bool) error {
		raw, err := s.raw(depth + 1)
		if err != nil {
			return err
		}
		dst = append(dst, Field{Key: internKey(key, escaped), Raw: raw})
		return nil
	})
	if err != nil {
		return nil, err
	}
	return dst, dst.unique()
}

// raw moves over a value and gives its bytes.
func (s *scanner) raw(depth int) ([]byte, error) {
	s.space()
	start := s.pos
	if err := s.skip(depth); err != nil {
		return nil, err
	}
	return s.data[start:s.pos], nil
}

// unique refuses doubled keys: which of two counts is a matter of taste, and
// an intermediary may have another.
func (o Object) unique() error {
	const few = 16
	if len(o) <= few {
		for i := range o {
			for j := range i {
				if o[i].Key == o[j].Key {
					return errDuplicate
				}
			}
		}
		return nil
	}
	seen := make(map[string]struct{}, len(o))
	for i := range o {
		if _, twice := seen[o[i].Key]; twice {
			return errDuplicate
		}
		seen[o[i].Key] = struct{}{}
	}
	return nil
}

// internKey spares an allocation for the keys that every message has.
func internKey(key []byte, escaped bool) string {
	if escaped {
		return unquote(key, true)
	}
	switch string(key) {
	case "jsonrpc":
		return "jsonrpc"
	case "id":
		return "id"
	case "method":
		return "method"
	case "params":
		return "params"
	case "name":
		return "name"
	case "arguments":
		return "arguments"
	case "_meta":
		return "_meta"
	case "cursor":
		return "cursor"
	case "io.modelcontextprotocol/protocolVersion":
		return "io.modelcontextprotocol/protocolVersion"
	case "io.modelcontextprotocol/clientInfo":
		return "io.modelcontextprotocol/clientInfo"
	case "io.modelcontextprotocol/clientCapabilities":
		return "io.modelcontextprotocol/clientCapabilities"
	}
	return string(key)
}
