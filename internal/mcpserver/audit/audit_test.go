// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		target, params string
		stdout         io.Writer
		on             bool
		says           string
	}{
		"off":                {"", "", io.Discard, false, ""},
		"off, said so":       {"", "false", io.Discard, false, ""},
		"stdout":             {"stdout", "", io.Discard, true, ""},
		"arguments":          {"stdout", "true", io.Discard, true, ""},
		"file":               {filepath.Join(dir, "log"), "", nil, true, ""},
		"arguments of none":  {"", "true", io.Discard, false, "say where it goes"},
		"no bool":            {"stdout", "some", io.Discard, false, "true or false"},
		"a client's stdout":  {"stdout", "", nil, false, "path of a file"},
		"relative":           {"log", "", io.Discard, false, "absolute path"},
		"no such folder":     {filepath.Join(dir, "none", "log"), "", io.Discard, false, "cannot be opened"},
		"a folder, no file ": {dir, "", io.Discard, false, "cannot be opened"},
	} {
		log, err := Open(c.target, c.params, c.stdout)
		if (log != nil) != c.on || (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, %v", name, log, err)
		}
		if log != nil && log.Params != (c.params == "true") {
			t.Errorf("%s: arguments %v", name, log.Params)
		}
		if err := log.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAppend: a file keeps what was there.
func TestAppend(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	for range 2 {
		log, err := Open(path, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		log.Write(&Line{Audit: "call", Tool: "a\nb"})
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := os.ReadFile(path)
	if err != nil || bytes.Count(raw, []byte("\n")) != 2 || !bytes.Contains(raw, []byte(`"tool":"a\nb"`)) {
		t.Errorf("the file holds %q, %v", raw, err)
	}
}

type sometimes struct{ fail bool }

func (w *sometimes) Write(p []byte) (int, error) {
	if w.fail {
		return 0, errors.New("no space")
	}
	return len(p), nil
}

// TestFailures: each line that is lost is told of, and which is the first of
// several.
func TestFailures(t *testing.T) {
	out := &sometimes{}
	log := New(out)
	var told []bool
	log.Failed = func(_ error, first bool) { told = append(told, first) }
	for _, fail := range []bool{false, true, true, false, true} {
		out.fail = fail
		log.Write(&Line{})
	}
	if len(told) != 3 || !told[0] || told[1] || !told[2] {
		t.Errorf("told %v", told)
	}
}

func TestParams(t *testing.T) {
	line := &Line{}
	line.SetParams([]byte(`{"a":1}`))
	large := &Line{}
	large.SetParams([]byte(`"` + strings.Repeat("x", maxParams) + `"`))
	got, err := json.Marshal([]*Line{line, large})
	if err != nil || !bytes.Contains(got, []byte(`"params":{"a":1}`)) || !bytes.Contains(got, []byte(`"paramsOmitted":16386`)) || bytes.Contains(got, []byte("xxx")) {
		t.Errorf("written %.300s, %v", got, err)
	}
}
